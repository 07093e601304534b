"""Metrics of a registry in the Prometheus text format, as every process of ours serves them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector


def exposition(registry: CollectorRegistry) -> bytes:
    return generate_latest(_Exposed(registry))


class _Exposed(Collector):
    """The registry without the ``_created`` series of the client library, which double every counter and say nothing here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            if metric.type in ("counter", "histogram"):
                metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
