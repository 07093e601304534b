"""An embedded cluster on loopback: API server, scheduler, owners, load and a Prometheus endpoint, for demo, tests and faults."""
