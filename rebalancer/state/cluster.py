"""The whole cluster at one moment: the tables and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rebalancer.state.arrays import FloatArray
from rebalancer.state.devices import NO_GPUS, Gpus
from rebalancer.state.gangs import NO_GANGS, Gangs
from rebalancer.state.scheduling import Constraints, LabelSet
from rebalancer.state.tables import Budget, Nodes, Pods, Signal, WorkloadRef, Workloads


@dataclass(frozen=True, slots=True)
class Share:
    """``known`` of ``of``."""

    known: int
    of: int

    @property
    def ratio(self) -> float:
        """1.0 when there is nothing to know."""
        return self.known / self.of if self.of else 1.0


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the cluster the metrics cover, by signal, and what was thrown away on the way."""

    nodes: Mapping[str, Share]
    pods: Mapping[str, Share]
    oldest_sample_s: Mapping[str, float]
    """signal -> age of the oldest sample that is still used; NaN when there is none."""
    dropped: Mapping[str, int]
    """reason -> samples that were not used (nan, negative, stale, foreign, duplicate, ...)."""
    notes: tuple[str, ...] = ()
    """Sentences for people: which label resolved node names, partial answers, inert signals."""
    failed: Mapping[str, str] | None = None
    """signal -> why no query of it could be answered."""
    warnings: tuple[str, ...] = ()
    """What Prometheus said with its answers, each once: some of them are partial, and what is missing in them is unknown."""


@dataclass(frozen=True, slots=True)
class Yesterday:
    """What nodes used a day ago, a while before this time of the day and after it."""

    ahead_s: FloatArray
    """(points,) ascending seconds from this time of the day; what is above 0 is to come today."""
    load: FloatArray
    """(nodes, signals, points): usage then, as a share of the capacity of now; NaN unknown."""


@dataclass(frozen=True)
class ClusterState:
    """Not slotted, for the cached name look-ups; the tables are frozen and so is this."""

    cluster: str
    """Identity of the cluster: the uid of its kube-system namespace."""
    at: float
    """When it was read, unix seconds."""
    resources: tuple[str, ...]
    signals: tuple[Signal, ...]
    nodes: Nodes
    pods: Pods
    workloads: Workloads
    budgets: tuple[Budget, ...]
    label_sets: tuple[LabelSet, ...]
    constraints: tuple[Constraints, ...]
    controllers: tuple[str, ...]
    """uid of each direct controller; its row is `Pods.controller`."""
    namespaces: Mapping[str, Mapping[str, str]]
    """name -> labels."""
    priorities: Mapping[str, int]
    """PriorityClass name -> value."""
    tenants: tuple[str, ...]
    coverage: Coverage
    window_s: float
    """The window that usage is a mean over."""
    step_s: float
    """Distance of two confirmation windows in `Nodes.history`."""
    yesterday: Yesterday | None = None
    """None: it was not asked for."""
    gpus: Gpus = NO_GPUS
    """What is asked for and held of GPUs; empty where there is none, and in snapshots that were taken before there were such tables."""

    gangs: Gangs = NO_GANGS
    """Which pods live and die together; not told in snapshots that were taken before there was such a table."""

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.nodes.names)}

    @cached_property
    def pod_index(self) -> Mapping[str, int]:
        """uid -> row."""
        return {uid: row for row, uid in enumerate(self.pods.uids)}

    @cached_property
    def workload_index(self) -> Mapping[WorkloadRef, int]:
        return {ref: row for row, ref in enumerate(self.workloads.refs)}

    @cached_property
    def resource_index(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.resources)}

    @cached_property
    def signal_index(self) -> Mapping[str, int]:
        return {signal.name: row for row, signal in enumerate(self.signals)}

    def pod_name(self, pod: int) -> str:
        return f"{self.pods.namespaces[pod]}/{self.pods.names[pod]}"

    def workload_of(self, pod: int) -> WorkloadRef | None:
        row = int(self.pods.workload[pod])
        return None if row < 0 else self.workloads.refs[row]
