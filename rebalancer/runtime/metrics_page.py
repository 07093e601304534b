"""The page of the documentation that lists every metric, generated from the registries that serve them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from rebalancer.policy.reference import table
from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.runtime.gpushare.metrics import ShareMetrics
from rebalancer.runtime.metric_snapshot import GAUGES, PREFIX
from rebalancer.runtime.metrics import Metrics

_MOST_VALUES = 12
"""Of a label whose closed set is larger, the page says where the set is written."""

_HEAD = f"""# Metrics

`rebalancer run` serves these on `/metrics`, in the Prometheus text format. Every name begins with `{PREFIX}`. Values of labels that are
listed are a closed set, and counters with such labels stand at 0 before anything happens; a value that is not in its set counts as
`other`. Loads, shares and marks are ratios (0.7 is 70 %), times are seconds, ages count from now. **A number that is unknown has no
sample, or is NaN.**

Gauges of nodes, pools, tenants and coverage are those of the last cycle that could read the cluster. This page is generated from the
registry; `make docs` writes it.
"""


class _Recording(CollectorRegistry):
    """Remembers what is registered: the registry of the library tells nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        self.collectors.append(collector)
        super().register(collector)


def metrics_markdown() -> str:
    """The content of docs/metrics.md."""
    head = ("metric", "type", "labels", "meaning")
    service, extender = _Recording(), _Recording()
    Metrics(registry=service)
    sharing = _Recording()
    ExtenderMetrics(registry=extender)
    ShareMetrics(registry=sharing)
    parts = {
        "The service": _declared(service),
        "The cluster": _observed(),
        "The extender": _declared(extender),
        "Sharing of GPUs": _declared(sharing),
    }
    words = {
        "The extender": "`rebalancer extender` serves these, and nothing of the above.\n\n",
        "Sharing of GPUs": "`rebalancer extender` serves these too, with `extender.gpushare.enabled`.\n\n",
    }
    sections = [f"## {name}\n\n{words.get(name, '')}{table(head, rows)}" for name, rows in parts.items()]
    return "\n".join([_HEAD, *sections])


def _declared(registry: _Recording) -> Iterator[tuple[str, str, str, str]]:
    for collector in registry.collectors:
        if not isinstance(collector, MetricWrapperBase):
            continue  # what the last cycle saw has its own table
        for family in collector.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = ", ".join(_label(label, family) for label in collector._labelnames)  # the library has no public word for it
            yield f"`{name}`", family.type, labels, family.documentation


def _label(name: str, family: Metric) -> str:
    """The label, with its values when they are a closed set that fits a cell."""
    if name == "gate":
        return "`gate`: one of the [gates](gates.md)"
    values = tuple(dict.fromkeys(sample.labels[name] for sample in family.samples if name in sample.labels))
    return f"`{name}`: {', '.join(values)}" if 1 < len(values) <= _MOST_VALUES else f"`{name}`"


def _observed() -> Iterator[tuple[str, str, str, str]]:
    for name, (words, labels) in GAUGES.items():
        yield f"`{PREFIX}{name}`", "gauge", ", ".join(f"`{label}`" for label in labels), words
