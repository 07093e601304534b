"""The page of the documentation that lists every refusal: those of the gates, and those that planning itself makes.

It stands here and not in `guard`, because `guard` knows nothing of plans.
"""

from __future__ import annotations

from rebalancer.guard.gate import all_gates
from rebalancer.plan.reasons import PlanGate

_HEAD = """# Gates

Every pod that might leave its node passes these gates. The first one that refuses is the one that reports, metrics
(`rebalancer_refusals_total{gate}`) and `rebalancer explain pod` name, with a sentence that carries the numbers.

The gates that look at the cluster and at what happened before are asked first, once a cycle. Those marked *plan* are asked again for
each move, because they also count what the growing plan has spent already: of two pods that would both pass alone, the second may be
refused. Keys such as `victims.minAge` are keys of the [policy](policy.md), under `spec`. This page is generated from the gates
themselves; `make docs` writes it.

| gate | refuses | asked |
|---|---|---|
"""

_PLANNING = """
## Refusals of planning

A pod that every gate lets go may still stay, because no move of it would help. These refusals are reported and counted like those of
the gates.

| gate | when |
|---|---|
"""


def gates_markdown() -> str:
    """The content of docs/gates.md."""
    ordered = sorted(all_gates(), key=lambda gate: not gate.static)
    gates = "".join(f"| `{gate.name}` | {gate.describe} | {'cycle' if gate.static else 'plan'} |\n" for gate in ordered)
    return _HEAD + gates + _PLANNING + "".join(f"| `{gate.value}` | {gate.describe} |\n" for gate in PlanGate)
