"""An autoscaler that takes a node away moves all of its pods; a second mover would only evict some of them twice."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "node-being-removed"
REMOVERS = {
    "karpenter.sh/disrupted": "karpenter",
    "karpenter.sh/disruption": "karpenter",
    "ToBeDeletedByClusterAutoscaler": "cluster-autoscaler",
}
"""Taint key -> who puts it on a node that is about to go (karpenter's second key is that of its v1beta1)."""


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    nodes = scene.state.nodes
    for taint in nodes.taints[candidate.source]:
        remover = REMOVERS.get(taint.key)
        if remover is not None:
            name = nodes.names[candidate.source]
            return Refusal(NAME, f"node {name} is being removed by {remover} (taint {taint.key}), which moves its pods", retryable=True)
    return None


GATE = Gate(
    name=NAME,
    order=220,
    describe="Pods on a node that karpenter or cluster-autoscaler is removing: its pods are moved by them.",
    check=check,
)
