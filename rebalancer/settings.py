"""Where things are: addresses, credentials, ports, files. What the operator wants is in `policy`, and the two are never mixed."""
