"""The closed list of gates, for whoever needs all their names, and as the page of the documentation that is generated from it."""

from __future__ import annotations

from rebalancer.guard.gate import all_gates

_HEAD = """# Gates

Every pod that might leave its node passes these gates. The first one that refuses is the one that reports, metrics
(`rebalancer_refusals_total{gate}`) and `rebalancer explain pod` name, with a sentence that carries the numbers.

The gates that look at the cluster and at what happened before are asked first, once a cycle. Those marked *plan* are asked again for each
move, because they also count what the growing plan has spent already: of two pods that would both pass alone, the second may be refused.
Keys such as `victims.minAge` are keys of the policy, under `spec`. This page is generated from the gates themselves.

| gate | refuses | asked |
|---|---|---|
"""


def gate_names() -> tuple[str, ...]:
    """Every gate name, in the order in which they are asked: the closed set of the metric label."""
    return tuple(gate.name for gate in all_gates())


def gates_markdown() -> str:
    """The content of docs/gates.md."""
    ordered = sorted(all_gates(), key=lambda gate: not gate.static)
    return _HEAD + "".join(f"| `{gate.name}` | {gate.describe} | {'cycle' if gate.static else 'plan'} |\n" for gate in ordered)
