"""How many pods one node may lose in a window."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.limits import over_limit

NAME = "budget-node"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    name = scene.state.nodes.names[candidate.source]
    return over_limit(
        scene,
        gate=NAME,
        subject=lambda: f"node {name}",
        key="perNode",
        value=scene.spec.budgets.per_node,
        pods=lambda: int(scene.headcount.by_node[candidate.source]),
        past=scene.window.by_node.get(name, 0),
        planned=scene.booked.by_node.get(candidate.source, 0),
    )


GATE = Gate(
    name=NAME,
    order=390,
    describe=(
        "Pods on a node that lost `budgets.perNode` pods (or that share of its running pods) within `budgets.window`, this plan included."
    ),
    check=check,
    static=False,
)
