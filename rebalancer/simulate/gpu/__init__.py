"""GPUs of the embedded cluster: nodes that have them, who hands them out, what is done with them, and what dcgm-exporter says of it."""
