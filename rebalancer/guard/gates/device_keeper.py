"""Pods that keep devices for others: without them the GPUs of their node are lost to everybody, or nobody knows what they do.

Most are pods of DaemonSets anyhow. KAI's reservation pods are bare, and an agent may be run by any kind of owner.
"""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.label_marks import AGENT_KEYS
from rebalancer.state.gpu import Scheme

NAME = "device-keeper"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    if any(ask.scheme is Scheme.KAI_RESERVATION for ask in state.gpus.asks_of(candidate.pod)):
        return Refusal(NAME, "it reserves a GPU for the pods that share it, and holds it for as long as they run", retryable=False)
    labels = scene.label_marks.of(candidate.pod)
    found = next(((key, labels[key]) for key in AGENT_KEYS if key in labels), None) if labels else None
    if found is None:
        return None
    return Refusal(NAME, f"its label {found[0]}: {found[1]} makes it an agent of its node's devices", retryable=False)


GATE = Gate(
    name=NAME,
    order=80,
    describe="Pods that reserve GPUs for others, and the device plugins, exporters and other agents of devices.",
    check=check,
)
