"""A node that is not Ready has load that nobody sees; its pods are the node controller's business, and its kubelet ends no pod."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "source-not-ready"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    nodes = scene.state.nodes
    if nodes.ready[candidate.source]:
        return None
    name = nodes.names[candidate.source]
    return Refusal(NAME, f"node {name} is not Ready, so its kubelet would not end the pod", retryable=True)


GATE = Gate(
    name=NAME,
    order=210,
    describe="Pods on a node that is not Ready: its kubelet would not end them, and the node controller deals with them.",
    check=check,
)
