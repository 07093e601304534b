"""The cluster as columns: built once a cycle, immutable afterwards, free of the raw API objects and of policy.

What may live here: the tables (nodes, pods, workloads, budgets), the interned scheduling constraints and label sets, the rules that
turn a pod spec into numbers, the load ledger, the history that decisions look back on, snapshot files.
Nothing here reads a clock or talks to anybody. Unknown numbers are NaN and stay NaN.
"""
