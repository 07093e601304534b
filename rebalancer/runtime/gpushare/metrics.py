"""What the sharing of GPUs tells Prometheus: how bindings ended and how long they took, and what the filter made of nodes.

Labels come from closed sets and counters stand at 0 before anything happens, as everywhere. They are served beside those of the extender.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from rebalancer.runtime.gpushare.binder import BindEnd
from rebalancer.runtime.metric_snapshot import PREFIX

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_FILTERED = ("passed", "refused")


class ShareMetrics:
    """Thread-safe."""

    def __init__(self, *, registry: CollectorRegistry) -> None:
        words = "Pods that kube-scheduler asked to bind to a shared GPU, by how that ended."
        self._bindings = Counter(f"{PREFIX}gpushare_bindings_total", words, ("result",), registry=registry)
        words = "Time from the question to the answer of a binding."
        self._seconds = Histogram(f"{PREFIX}gpushare_binding_duration_seconds", words, registry=registry, buckets=_BUCKETS)
        words = "Nodes in questions about shared GPUs, by what the filter made of them."
        self._nodes = Counter(f"{PREFIX}gpushare_nodes_total", words, ("result",), registry=registry)
        for end in BindEnd:
            self._bindings.labels(end.value)
        for result in _FILTERED:
            self._nodes.labels(result)

    def filtered(self, *, nodes: int, refused: int) -> None:
        self._nodes.labels("refused").inc(refused)
        self._nodes.labels("passed").inc(nodes - refused)

    def ended(self, end: BindEnd, *, seconds: float) -> None:
        self._bindings.labels(end.value).inc()
        self._seconds.observe(max(0.0, seconds))
