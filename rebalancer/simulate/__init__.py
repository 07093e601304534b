"""An embedded cluster on loopback: API server, scheduler, owners, load and a Prometheus endpoint, for demo, tests and faults.

The world (`world`) is a store of plain JSON objects with a virtual clock. Agents act on it as the real ones do: `controllers` (owners),
`kubelet`, `scheduler`, `budgets`. `load` and `history` say what every pod really used at any moment, `series` shows that as raw
Prometheus samples, `promql` evaluates queries over them. `api_server` and `prometheus` serve both over HTTP, `faults` breaks them on
demand, `scenario` builds worlds from a seed, `embedded` ties everything together.

Objects in the store are never changed in place: an update puts a new object there, so that a list or a watch can hand out what it read
without copying, and a page can be encoded once.
"""
