"""When something is wrong with the cluster or with our own moves, nothing moves until it is right again."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "breaker"


def check(_candidate: Candidate, scene: Scene) -> Refusal | None:
    reason = scene.history.breaker
    return Refusal(NAME, f"the breaker is open: {reason}", retryable=True) if reason else None


GATE = Gate(
    name=NAME,
    order=430,
    describe=(
        "Every pod while the breaker is open: too many nodes not Ready, pods pending after our evictions, or moves that "
        "do not deliver (`breaker`)."
    ),
    check=check,
)
