"""A static pod belongs to the kubelet of its node: evicting the mirror leaves the containers running."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "mirror"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    if not scene.state.pods.mirror[candidate.pod]:
        return None
    return Refusal(NAME, "it is a static pod: the kubelet of its node runs it, whatever the API says", retryable=False)


GATE = Gate(
    name=NAME,
    order=20,
    describe="Static pods and their mirrors, which the kubelet of the node runs whatever the API says.",
    check=check,
)
