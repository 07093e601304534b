"""After a pod has left a node, the measurements need time to show it; draining on would be draining blind."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.units import format_duration

NAME = "cooldown-node"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    name = scene.state.nodes.names[candidate.source]
    last_at = scene.last_moves.get(name)
    if last_at is None or scene.reclaiming:
        return None
    rest = scene.spec.cooldown.node
    left = rest - max(0.0, scene.state.at - last_at)
    if left <= 0:
        return None
    reason = f"node {name} rests {format_duration(rest)} after its last eviction, {format_duration(left)} of it left (policy cooldown.node)"
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=370,
    describe=(
        "Pods on a node from which a pod was evicted less than `cooldown.node` ago; not where room is given back to a tenant, which "
        "goes by requests."
    ),
    check=check,
)
