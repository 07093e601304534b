"""What the extender reads of the cluster: the loads that are written on nodes, which pod was just bound where, and the controller's state.

Of each kind the fewest fields: a watch of all pods of a large cluster tells hundreds of objects a second, and each second of decoding is
one in which kube-scheduler is not answered.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from rebalancer.kube.wire import MetaWire, NodeMetaWire, OwnerWire
from rebalancer.kube.wire_pods import ResourcesWire


class NodeSizeWire(msgspec.Struct, frozen=True, gc=False):
    """``capacity``: the machine; ``allocatable``: what of it pods may have."""

    capacity: dict[str, str] | None = None
    allocatable: dict[str, str] | None = None


class NodeLoadWire(msgspec.Struct, frozen=True, gc=False):
    """A node: its annotations, its labels and how large it is."""

    metadata: NodeMetaWire
    status: NodeSizeWire = NodeSizeWire()


class BoundMetaWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    uid: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[OwnerWire, ...] | None = None
    resource_version: str = ""


class BoundContainerWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resources: ResourcesWire | None = None
    restart_policy: str | None = None


class BoundSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str | None = None
    containers: tuple[BoundContainerWire, ...] | None = None
    init_containers: tuple[BoundContainerWire, ...] | None = None
    overhead: dict[str, str] | None = None
    resources: ResourcesWire | None = None


class TransitionWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str
    status: str = "Unknown"
    last_transition_time: datetime | None = None


class BoundStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str | None = None
    conditions: tuple[TransitionWire, ...] | None = None
    start_time: datetime | None = None


class BoundPodWire(msgspec.Struct, frozen=True, gc=False):
    """A pod that has a node."""

    metadata: BoundMetaWire
    spec: BoundSpecWire = BoundSpecWire()
    status: BoundStatusWire = BoundStatusWire()

    @property
    def bound_at(self) -> float | None:
        """Unix seconds: the API server notes with the binding when the pod was scheduled; None where neither it nor the kubelet did."""
        for condition in self.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time is not None:
                return condition.last_transition_time.timestamp()
        return None if self.status.start_time is None else self.status.start_time.timestamp()


class ConfigMapWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    data: dict[str, str] | None = None
