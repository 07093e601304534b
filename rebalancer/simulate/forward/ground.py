"""What stays as it is while a world runs: the nodes, the replica slots with what their pods ask for, the owners, the budgets.

A slot is one replica position of one owner (the third pod of a Deployment, say). Pods come and go in it; requests, labels, constraints and
the traffic belong to the slot, so a replacement takes all of them over, as the pods of one template do.

Shapes: ``nodes``, ``slots``, ``owners`` rows; ``resources`` and ``signals`` as in `ClusterState`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.scheduling import Constraints, LabelSet, Selector, Taint
from rebalancer.state.tables import JobRules, PodClass, PodVolumes, Signal, WorkloadRef


class Renewal(IntEnum):
    """When an owner makes a new pod for one that leaves."""

    AT_ONCE = 0
    """A ReplicaSet does not count pods that are terminating, so the replacement starts beside them."""
    WHEN_GONE = 1
    """A StatefulSet gives the same name again, a Job and a DaemonSet wait too."""
    NEVER = 2
    """A bare pod has nobody."""


@dataclass(frozen=True, slots=True)
class NodeColumns:
    names: tuple[str, ...]
    labels: tuple[Mapping[str, str], ...]
    annotations: tuple[Mapping[str, str], ...]
    taints: tuple[tuple[Taint, ...], ...]
    """Without this project's soft taints, which the world puts on and takes off."""
    unschedulable: BoolArray
    ready: BoolArray
    """(nodes,) at the start."""
    created_at: FloatArray
    allocatable: FloatArray
    """(nodes, resources)."""
    capacity: FloatArray
    """(nodes, signals); NaN unknown."""
    system: FloatArray
    """(nodes, signals): usage that no pod explains; NaN where the node's usage is unknown, which it then stays."""


@dataclass(frozen=True, slots=True)
class SlotColumns:
    owner: IntArray
    """(slots,): row in `OwnerColumns`; -1 for a bare pod."""
    controller: IntArray
    """(slots,): row in ``Ground.controllers`` at the start; -1 none."""
    names: tuple[str, ...]
    """Name of the slot's first pod; replacements that get a new name add a number."""
    namespaces: tuple[str, ...]
    tenant: IntArray
    labels: IntArray
    constraints: IntArray
    request: FloatArray
    """(slots, resources) of the pods that are there at the start."""
    incoming_request: FloatArray
    """(slots, resources) of every later pod."""
    scored_request: FloatArray
    """(slots, 2)."""
    scored_incoming: FloatArray
    """(slots, 2)."""
    priority: IntArray
    qos: IntArray
    classes: tuple[PodClass, ...]
    mirror: BoolArray
    annotations: tuple[Mapping[str, str], ...]
    volumes: tuple[PodVolumes, ...]
    budgets: tuple[tuple[int, ...], ...]
    restart_policy: tuple[str, ...]
    scheduling_group: tuple[str, ...]
    base: FloatArray
    """(slots, signals): usage at the slot's own level, before any wave; NaN unknown."""
    startup_s: FloatArray
    """(slots, 2): a new pod is Ready after a time between the two."""
    shutdown_s: FloatArray
    """(slots,): from the eviction to the end of the pod."""
    born_at: FloatArray
    """(slots,): creation of the pod that is there at the start, unix seconds; a later time for slots of owners that arrive later."""
    leaves_at: FloatArray
    """(slots,): when the owner goes for good; infinity for most."""


@dataclass(frozen=True, slots=True)
class OwnerColumns:
    refs: tuple[WorkloadRef, ...]
    uids: tuple[str, ...]
    renewal: IntArray
    """(owners,): `Renewal`."""
    counted: BoolArray
    """(owners,): the kind says how many replicas it wants; False: neither that nor how many are Ready is known."""
    scaled_at: FloatArray
    annotations: tuple[Mapping[str, str], ...]
    jobs: tuple[JobRules | None, ...]
    ordered: BoolArray


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """A disruption budget whose ``desired`` healthy pods are the same at all times, since replica numbers are."""

    namespace: str
    name: str
    selector: Selector | None
    desired: int
    always_allow_unhealthy: bool = False
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Ground:
    cluster: str
    start: float
    """Unix seconds at which the simulation begins."""
    resources: tuple[str, ...]
    signals: tuple[Signal, ...]
    nodes: NodeColumns
    slots: SlotColumns
    owners: OwnerColumns
    budgets: tuple[BudgetRules, ...]
    label_sets: tuple[LabelSet, ...]
    constraints: tuple[Constraints, ...]
    controllers: tuple[str, ...]
    namespaces: Mapping[str, Mapping[str, str]]
    priorities: Mapping[str, int]
    tenants: tuple[str, ...]

    @property
    def signal_column(self) -> Mapping[str, int]:
        return {signal.name: column for column, signal in enumerate(self.signals)}
