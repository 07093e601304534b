"""What lives longer than a call: one cycle, the schedule, the HTTP server, metrics, signals, history. The only reader of the clock."""
