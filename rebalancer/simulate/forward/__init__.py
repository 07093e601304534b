"""A fast-forward world: the embedded cluster's model without HTTP and without objects, a simulated day in seconds.

Columns of numpy instead of JSON: `ground` is what does not change while a world runs (nodes, replica slots, owners, budgets), `pods` who
runs where, `demand` what each slot wants at a moment, `happenings` what comes from outside (bursts, failures, arrivals, rollouts),
`gauges` what Prometheus would remember of it, late and over windows, `observing` the `ClusterState` that is made of all that, `placing` the
stock scheduler, `world` the clock that drives them. A `strategy` looks at a state and orders evictions and soft taints; `running` lets
strategies live through the same world one after the other, and `tally` counts what came of it.

`scenario` is the file that an operator writes, `fleet` makes a ground from it, `from_snapshot` from a snapshot, `traces` reads real load.
May import everything below `simulate`; knows no strategy but `do_nothing`: the project's own is bound to it in `runtime`, others by whoever
brings them.
"""
