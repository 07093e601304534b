"""A scripted cluster of three nodes whose CPU and memory are measured by node_exporter and cAdvisor, to be spoilt by a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebalancer.collect.metrics import read_samples
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory, Samples, SignalSamples
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Spec
from tests.support.scripted_prometheus import ScriptedPrometheus, fresh, matrix, vector

AT = 1_750_000_000.0
GIB = 2.0**30
NODES = ("n1", "n2", "n3")
LABELS = [{"instance": f"10.0.0.{number}:9100", "job": "node"} for number in (1, 2, 3)]

NODE_CPU = "sum without (cpu, mode) (rate(node_cpu_seconds_total"
NODE_MEMORY = "avg_over_time(node_memory_MemTotal_bytes"
CPU_AGE = 'max without (cpu, mode) (timestamp(node_cpu_seconds_total{cpu="0"'
CPU_LAST = "max without (cpu, mode) (max_over_time(timestamp("
MEMORY_AGE = "max without () (timestamp(node_memory_MemAvailable_bytes"
POD_CPU = "container_cpu_usage_seconds_total"
POD_MEMORY = "container_memory_working_set_bytes"


def healthy(server: ScriptedPrometheus, *, windows: int = 10) -> None:
    """Every node uses 1, 2, 3 cores and as many GiB in all windows; each has a pod web-<n> that uses half of it."""
    server.on(NODE_CPU, matrix(*((labels, [float(k)] * windows) for k, labels in enumerate(LABELS, start=1))))
    server.on(NODE_MEMORY, matrix(*((labels, [k * GIB] * windows) for k, labels in enumerate(LABELS, start=1))))
    server.on(CPU_AGE, fresh(*LABELS))
    server.on(MEMORY_AGE, fresh(*LABELS))
    pods = [
        {"namespace": "default", "pod": f"web-{name}", "node": name, "instance": f"10.0.0.{k}:10250"} for k, name in enumerate(NODES, 1)
    ]
    server.on(POD_CPU, vector(*((labels, k / 2) for k, labels in enumerate(pods, start=1))))
    server.on(POD_MEMORY, vector(*((labels, k * GIB / 2) for k, labels in enumerate(pods, start=1))))


def node_cpu(server: ScriptedPrometheus, *series: tuple[Mapping[str, str], Sequence[float | str | None]]) -> None:
    server.on(NODE_CPU, matrix(*series))


def read(
    prometheus: Prometheus, directory: NodeDirectory, *, spec: Spec | None = None, seconds: float = 20, at: float = AT, pods: int = 0
) -> Samples:
    return read_samples(prometheus, spec=spec or Spec(), directory=directory, at=at, deadline=Deadline.after(seconds), pods=pods)


def signal(samples: Samples, name: str = "cpu") -> SignalSamples:
    return next(one for one in samples.signals if one.signal.name == name)
