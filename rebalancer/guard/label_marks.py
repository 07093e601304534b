"""The labels of pods that some gate reads, looked for once in each set of labels and not once a gate and candidate.

Nearly all pods have none of them, and then a gate has nothing more to ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rebalancer.guard.annotations import MARKER_READERS
from rebalancer.state.cluster import ClusterState

QUEUE_MARKS = frozenset(
    (
        "kueue.x-k8s.io/managed",
        "kueue.x-k8s.io/queue-name",
        "kueue.x-k8s.io/local-queue-name",
        "kueue.x-k8s.io/cluster-queue-name",
        "kueue.x-k8s.io/pod-group-name",
    )
)
RAY_MARKS = frozenset(("ray.io/node-type", "ray.io/cluster", "ray.io/ft-enabled"))
_KEYS = frozenset(MARKER_READERS) | QUEUE_MARKS | RAY_MARKS
AGENT_KEYS = ("app.kubernetes.io/name", "app.kubernetes.io/component", "app", "k8s-app", "name")
AGENTS = frozenset(
    (
        "amd-gpu-device-plugin",
        "amd-gpu-metrics-exporter",
        "amdgpu-device-plugin",
        "dcgm-exporter",
        "device-metrics-exporter",
        "gpu-feature-discovery",
        "gpu-manager",
        "gpushare",
        "gpushare-device-plugin",
        "gpushare-device-plugin-ds",
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
"""What device plugins, exporters and others that keep devices are called."""
NONE: Mapping[str, str] = {}


def _read(labels: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    found = {key: value for key, value in labels if key in _KEYS or (value in AGENTS and key in AGENT_KEYS)}
    return found or NONE


class LabelMarks:
    """Of one state."""

    def __init__(self, state: ClusterState) -> None:
        self._rows, self._sets = state.pods.labels, state.label_sets
        self._found: dict[int, Mapping[str, str]] = {}

    def of(self, pod: int) -> Mapping[str, str]:
        """Those of the pod's labels that a gate reads: markers of schedulers, queues and Ray, and names of agents."""
        row = int(self._rows[pod])
        found = self._found.get(row)
        if found is None:
            found = self._found[row] = _read(self._sets[row].labels)
        return found
