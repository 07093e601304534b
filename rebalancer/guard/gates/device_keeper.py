"""Pods that keep devices for others: without them the GPUs of their node are lost to everybody, or nobody knows what they do.

Most are pods of DaemonSets anyhow. KAI's reservation pods are bare, and an agent may be run by any kind of owner.
"""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.state.gpu import Scheme

NAME = "device-keeper"
_KEYS = ("app.kubernetes.io/name", "app.kubernetes.io/component", "app", "k8s-app", "name")
_AGENTS = frozenset(
    (
        "amd-gpu-device-plugin",
        "amd-gpu-metrics-exporter",
        "amdgpu-device-plugin",
        "dcgm-exporter",
        "device-metrics-exporter",
        "gpu-feature-discovery",
        "gpushare",
        "gpushare-device-plugin",
        "gpushare-device-plugin-ds",
        "gpu-manager",
        "hami-device-plugin",
        "hami-vgpu-monitor",
        "kai-resource-reservation",
        "nvidia-dcgm",
        "nvidia-dcgm-exporter",
        "nvidia-device-plugin",
        "nvidia-device-plugin-daemonset",
        "nvidia-device-plugin-ds",
        "nvidia-driver-daemonset",
        "nvidia-mig-manager",
        "nvidia-mps-control-daemon",
        "runai-reservation",
        "volcano-device-plugin",
    )
)


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    if any(ask.scheme is Scheme.KAI_RESERVATION for ask in state.gpus.asks_of(candidate.pod)):
        return Refusal(NAME, "it reserves a GPU for the pods that share it, and holds it for as long as they run", retryable=False)
    labels = state.label_sets[int(state.pods.labels[candidate.pod])]
    found = next(((key, value) for key in _KEYS if (value := labels.get(key)) in _AGENTS), None)
    if found is None:
        return None
    return Refusal(NAME, f"its label {found[0]}: {found[1]} makes it an agent of its node's devices", retryable=False)


GATE = Gate(
    name=NAME,
    order=80,
    describe="Pods that reserve GPUs for others, and the device plugins, exporters and other agents of devices.",
    check=check,
)
