"""What the simulated scheduler sees in one pass: node columns and the pods on them, taken from raw objects.

Amounts are whole numbers as kube-scheduler counts them (millicores, bytes, units). Shapes: ``nodes`` is the number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import TERMINAL, Request, amounts, effective_request, is_terminating, phase
from rebalancer.simulate.selectors import matches
from rebalancer.simulate.world import World

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod that occupies a node."""

    pod: Json
    node: int
    namespace: str
    labels: dict[str, str]
    terminating: bool


@dataclass(frozen=True, slots=True)
class Demand:
    """What one pod asks for: by its spec, with the defaults that scores assume, and by its containers alone."""

    request: Request
    nonzero: Request
    scored: Request
    """What LeastAllocated counts for the incoming pod: containers only, with defaults."""


class Demands:
    """The requests of pods, computed once a pod."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Demand] = {}

    def of(self, pod: Json) -> Demand:
        uid = pod["metadata"]["uid"]
        demand = self._by_uid.get(uid)
        if demand is None:
            demand = self._by_uid[uid] = Demand(
                request=effective_request(pod),
                nonzero=effective_request(pod, nonzero=True),
                scored=effective_request(pod, nonzero=True, pod_level=False),
            )
        return demand

    def forget(self, uid: str) -> None:
        self._by_uid.pop(uid, None)


@dataclass(slots=True)
class Snapshot:
    names: list[str]
    index: dict[str, int]
    labels: list[dict[str, str]]
    taints: list[list[Json]]
    unschedulable: Bools
    allocatable: dict[str, Floats]
    """resource -> (nodes,)"""
    requested: dict[str, Floats]
    nonzero: dict[str, Floats]
    """``cpu`` and ``memory`` -> (nodes,), with the defaults that scores assume."""
    pod_count: Floats
    placed: list[Placed]
    namespaces: dict[str, dict[str, str]]
    find: Callable[[str, str, str], Json | None]
    """(plural, name, namespace) -> an object that a rule needs, such as a claim or a volume."""
    services: list[Json] = field(default_factory=list)
    in_namespace: dict[str, list[Placed]] = field(default_factory=dict)
    holders: list[Placed] = field(default_factory=list)
    """The placed pods that have inter-pod terms of their own."""
    with_ports: list[Placed] = field(default_factory=list)
    _domains: dict[str, list[str | None]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.names)

    def domain(self, key: str) -> list[str | None]:
        """The value of a label on each node; None where a node has none."""
        if key not in self._domains:
            self._domains[key] = [labels.get(key) for labels in self.labels]
        return self._domains[key]

    def resource(self, table: dict[str, Floats], name: str) -> Floats:
        return table.get(name, np.zeros(self.size))

    def place(self, pod: Json, node: int, demand: Demand) -> None:
        """Count a pod on a node."""
        for name, amount in demand.request.items():
            if name not in self.requested:
                self.requested[name] = np.zeros(self.size)
            self.requested[name][node] += amount
        for name in ("cpu", "memory"):
            self.nonzero[name][node] += demand.nonzero.get(name, 0.0)
        self.pod_count[node] += 1
        labels = pod["metadata"].get("labels") or {}
        placed = Placed(pod, node, pod["metadata"]["namespace"], labels, is_terminating(pod))
        self.placed.append(placed)
        self.in_namespace.setdefault(placed.namespace, []).append(placed)
        affinity = pod["spec"].get("affinity") or {}
        if affinity.get("podAffinity") or affinity.get("podAntiAffinity"):
            self.holders.append(placed)
        if any("ports" in c for c in [*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())]):
            self.with_ports.append(placed)


def take_snapshot(world: World, demands: Demands) -> Snapshot:
    """The nodes and the bound pods that have not finished."""
    nodes = list(world.objects("nodes"))
    names = [node["metadata"]["name"] for node in nodes]
    size = len(names)
    allocatable: dict[str, Floats] = {}
    for row, node in enumerate(nodes):
        for name, amount in amounts(node.get("status", {}).get("allocatable")).items():
            allocatable.setdefault(name, np.zeros(size))[row] = amount
    snapshot = Snapshot(
        names=names,
        index={name: row for row, name in enumerate(names)},
        labels=[node["metadata"].get("labels") or {} for node in nodes],
        taints=[list(node["spec"].get("taints") or ()) for node in nodes],
        unschedulable=np.array([bool(node["spec"].get("unschedulable")) for node in nodes], dtype=bool),
        allocatable=allocatable,
        requested={name: np.zeros(size) for name in allocatable},
        nonzero={"cpu": np.zeros(size), "memory": np.zeros(size)},
        pod_count=np.zeros(size),
        placed=[],
        namespaces={ns["metadata"]["name"]: ns["metadata"].get("labels") or {} for ns in world.objects("namespaces")},
        find=world.find,
        services=list(world.objects("services")),
    )
    for pod in world.objects("pods"):
        at = snapshot.index.get(pod["spec"].get("nodeName", ""))
        if at is not None and phase(pod) not in TERMINAL:
            snapshot.place(pod, at, demands.of(pod))
    return snapshot


def in_namespaces(term: Json, owner_namespace: str, namespace: str, namespaces: dict[str, dict[str, str]]) -> bool:
    """True when a pod of ``namespace`` is within reach of an affinity term of a pod in ``owner_namespace``."""
    listed, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if not listed and selector is None:
        return namespace == owner_namespace
    return namespace in listed or (selector is not None and matches(selector, namespaces.get(namespace, {})))


def term_selects(term: Json, owner_namespace: str, namespace: str, labels: dict[str, str], namespaces: dict[str, dict[str, str]]) -> bool:
    """True when an affinity term of a pod in ``owner_namespace`` matches a pod with these labels in ``namespace``."""
    return matches(term.get("labelSelector"), labels) and in_namespaces(term, owner_namespace, namespace, namespaces)
