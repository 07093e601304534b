"""A small town of twelve nodes: the objects that an API server knows of it, and the series that exporters would write about it.

Node ``n00`` is hot: seven of its eight cores are busy, three of them for ``web-hot``, which alone brings it under target. Everybody else is
far from any mark. Objects and series come from the same two tables, so that what a plan says can be told from what was put in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rebalancer.simulate.budgets import BudgetController
from rebalancer.simulate.controllers import OwnerControllers
from rebalancer.simulate.kubelet import Kubelet
from rebalancer.simulate.scheduler import Scheduler
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import deployment, node, owner_of, pod, template
from tests.support.prometheus_server import Samples, counter, gauge

GIB = 2.0**30
CORES = 8.0
MEMORY = 32 * GIB
SYSTEM_CORES = 0.51
SYSTEM_BYTES = 2 * GIB
NODES = tuple(f"n{number:02d}" for number in range(12))
HOT = "n00"
VICTIM = "web-hot"
MONITORING = "monitoring"
EVERY_S = 15.0
BEFORE_S = 1500.0
DAY_S = 86_400.0


@dataclass(frozen=True)
class Running:
    """One pod: whose it is, where it runs, and what it uses of each signal."""

    name: str
    workload: str
    node: str
    cores: float
    memory: float = GIB
    namespace: str = "shop"


def _pods() -> tuple[Running, ...]:
    on_the_hot_node = [
        Running(VICTIM, "web", HOT, 3.0),
        Running("api-hot", "api", HOT, 2.0),
        Running("cache-hot", "cache", HOT, 1.5),
        Running("idle-hot", "idle", HOT, 0.01),
    ]
    siblings = [
        Running(f"{workload}-{place}", workload, NODES[1 + (3 * number + place) % 11], 0.4)
        for number, workload in enumerate(("web", "api", "cache", "idle"))
        for place in (1, 2)
    ]
    fillers = [Running(f"filler-{name}", "filler", name, 1.0, memory=2 * GIB) for name in NODES[1:]]
    exporters = [Running(exporter_pod(name), "exporter", name, 0.02, memory=GIB / 16, namespace=MONITORING) for name in NODES]
    return (*on_the_hot_node, *siblings, *fillers, *exporters)


def exporter_pod(name: str) -> str:
    return f"exporter-{name}"


PODS = _pods()


def cores_of(name: str) -> float:
    """What the whole node uses."""
    return SYSTEM_CORES + sum(one.cores for one in PODS if one.node == name)


def memory_of(name: str) -> float:
    return SYSTEM_BYTES + sum(one.memory for one in PODS if one.node == name)


# ---- objects ----------------------------------------------------------------------------------------------------------


def town(now: float) -> World:
    """The objects, settled, at ``now`` (unix seconds); every pod has run for a day. Owners, scheduler and kubelets live."""
    world = World(seed=3, now=now - DAY_S)
    for name in ("kube-system", "shop", MONITORING):
        world.create("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
    for name in NODES:
        node(world, name, cpu=str(int(CORES)), memory=str(int(MEMORY)))
    owners = {"exporter": world.create("daemonsets", _daemon_set())}
    for workload in dict.fromkeys(one.workload for one in PODS if one.namespace == "shop"):
        replicas = sum(one.workload == workload for one in PODS)
        owners[workload] = deployment(world, workload, replicas, namespace="shop", cpu="500m")
    for one in PODS:
        cpu, memory = ("10m", "64Mi") if one.workload == "exporter" else ("500m", "1Gi")
        owner, labels = owner_of(owners[one.workload]), {"app": one.workload}
        pod(world, one.name, namespace=one.namespace, on=one.node, owner=owner, labels=labels, cpu=cpu, memory=memory)
    world.agents.extend((OwnerControllers(world), Scheduler(world), Kubelet(world), BudgetController(world)))
    world.advance(DAY_S)
    return world


def _daemon_set() -> dict[str, object]:
    labels = {"app": "exporter"}
    spec = {"selector": {"matchLabels": labels}, "template": template(labels, cpu="10m")}
    return {"metadata": {"name": "exporter", "namespace": MONITORING}, "spec": spec}


def address(name: str) -> str:
    """The InternalIP that the API server lists."""
    return f"10.9.0.{NODES.index(name) + 1}"


# ---- series -----------------------------------------------------------------------------------------------------------


def instants(now: float, *, since: float = -BEFORE_S, until: float = 0.0) -> list[float]:
    """Moments of scrapes, in seconds around ``now``."""
    return [now + since + EVERY_S * step for step in range(int((until - since) / EVERY_S) + 1)]


@dataclass(frozen=True)
class Labels:
    """How an installation labels its series. Placeholders: {name}, {address}, {foreign} (an address that no API object has)."""

    node: Mapping[str, str]
    pod: Mapping[str, str]
    unames: bool = False
    pod_info: bool = False
    kubelet_only: bool = False

    def of_node(self, name: str) -> dict[str, str]:
        return _filled(self.node, name)

    def of_pod(self, one: Running) -> dict[str, str]:
        return {**_filled(self.pod, one.node), "namespace": one.namespace, "pod": one.name}


def _filled(labels: Mapping[str, str], name: str) -> dict[str, str]:
    foreign = f"192.168.77.{NODES.index(name) + 1}"
    return {key: value.format(name=name, address=address(name), foreign=foreign) for key, value in labels.items()}


NODE_LABEL = Labels(
    node={"job": "node", "node": "{name}", "instance": "{foreign}:9100"},
    pod={"job": "kubelet", "node": "{name}", "instance": "{foreign}:10250"},
)
VARIANTS: Mapping[str, Labels] = {
    "a node label": NODE_LABEL,
    "instance as address and port": Labels(
        node={"job": "node", "instance": "{address}:9100"}, pod={"job": "kubelet", "instance": "{address}:10250"}
    ),
    "the uname of a foreign instance": Labels(
        node={"job": "node", "instance": "{foreign}:9100"}, pod={"job": "kubelet", "instance": "{address}:10250"}, unames=True
    ),
    "the pod of the exporter": Labels(
        node={"job": "node", "instance": "{foreign}:9100", "namespace": MONITORING, "pod": "exporter-{name}"},
        pod={"job": "kubelet", "node": "{name}", "instance": "{foreign}:10250"},
    ),
    "the exporter's pod of kube-state-metrics": Labels(
        node={"job": "node", "instance": "{foreign}:9100", "namespace": "elsewhere", "pod": "host-agent-{name}"},
        pod={"job": "kubelet", "node": "{name}", "instance": "{foreign}:10250"},
        pod_info=True,
    ),
    "the kubelet's resource metrics": Labels(
        node={"job": "resource", "node": "{name}", "instance": "{foreign}:10250"},
        pod={"job": "resource", "node": "{name}", "instance": "{foreign}:10250"},
        kubelet_only=True,
    ),
}


@dataclass(frozen=True)
class Weather:
    """What is out of the ordinary. ``silent``: node -> seconds around now at which its exporter's samples stop."""

    silent: Mapping[str, float] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    nan_memory: frozenset[str] = frozenset()
    twice: frozenset[str] = frozenset()


def series(now: float, labels: Labels = NODE_LABEL, *, weather: Weather = Weather(), until: float = 0.0) -> Iterator[Samples]:
    """Everything that is scraped of the town, from 25 minutes before ``now`` until ``until`` seconds after."""
    for name in NODES:
        if name in weather.missing:
            continue
        times = instants(now, until=weather.silent.get(name, until))
        memory = float("nan") if name in weather.nan_memory else memory_of(name)
        yield from node_series(labels, name, cores=cores_of(name), memory=memory, times=times)
        if name in weather.twice:
            doubled = replace(labels, node={**labels.node, "replica": "b"})
            yield from node_series(doubled, name, cores=cores_of(name), memory=memory, times=times)
    for one in PODS:
        yield from pod_series(labels, one, times=instants(now, until=until))


def node_series(labels: Labels, name: str, *, cores: float, memory: float, times: Sequence[float]) -> Iterator[Samples]:
    own = labels.of_node(name)
    if labels.kubelet_only:
        yield counter("node_cpu_usage_seconds_total", own, cores, times=times)
        yield gauge("node_memory_working_set_bytes", own, memory, times=times)
        return
    for mode, rate in (("user", cores * 0.8), ("system", cores * 0.2), ("idle", CORES - cores)):
        yield counter("node_cpu_seconds_total", {**own, "cpu": "0", "mode": mode}, rate, times=times)
    yield gauge("node_memory_MemTotal_bytes", own, MEMORY, times=times)
    yield gauge("node_memory_MemAvailable_bytes", own, MEMORY - memory, times=times)
    if labels.unames:
        yield gauge("node_uname_info", {"instance": own["instance"], "nodename": name}, 1, times=times)
    if labels.pod_info:
        info = {"namespace": own["namespace"], "pod": own["pod"], "node": name, "uid": f"uid-{name}"}
        yield gauge("kube_pod_info", info, 1, times=times)


def pod_series(labels: Labels, one: Running, *, times: Iterable[float]) -> Iterator[Samples]:
    times = list(times)
    if labels.kubelet_only:
        yield counter("pod_cpu_usage_seconds_total", labels.of_pod(one), one.cores, times=times)
        yield gauge("pod_memory_working_set_bytes", labels.of_pod(one), one.memory, times=times)
        return
    container = {**labels.of_pod(one), "container": "main", "id": f"/{one.name}"}
    yield counter("container_cpu_usage_seconds_total", container, one.cores, times=times)
    yield gauge("container_memory_working_set_bytes", container, one.memory, times=times)
