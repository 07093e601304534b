"""What a pod looks like on the wire: where it is, what it asks for, what ties it to nodes, how it is doing.

See `wire` for what is named here and why. Container names, images, commands, environments, mounts, probes: nobody reads them.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final

import msgspec

from rebalancer.kube.wire import NodeSelectorWire, NodeTermWire, SelectorWire
from rebalancer.kube.wire_pod_meta import PodMetaWire

_put: Final = msgspec.structs.force_setattr
"""Past `frozen`: of a struct that was made a moment ago."""


class ResourcesWire(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, str] | None = None


class UsedClaimWire(msgspec.Struct, frozen=True, gc=False):
    """A resource claim of the pod that a container uses."""

    name: str


class ContainerResourcesWire(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None
    claims: tuple[UsedClaimWire, ...] | None = None


class PortWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class ContainerWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    resources: ContainerResourcesWire | None = None
    ports: tuple[PortWire, ...] | None = None
    restart_policy: str | None = None


class PreferredNodeWire(msgspec.Struct, frozen=True, gc=False):
    weight: int = 0
    preference: NodeTermWire = NodeTermWire()


class NodeAffinityWire(msgspec.Struct, frozen=True, gc=False):
    required: NodeSelectorWire | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNodeWire, ...] | None = msgspec.field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class PodTermWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    topology_key: str = ""
    label_selector: SelectorWire | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: SelectorWire | None = None


class WeightedPodTermWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    weight: int = 0
    pod_affinity_term: PodTermWire = PodTermWire()


class PodAffinityWire(msgspec.Struct, frozen=True, gc=False):
    required: tuple[PodTermWire, ...] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedPodTermWire, ...] | None = msgspec.field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class AffinityWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_affinity: NodeAffinityWire | None = None
    pod_affinity: PodAffinityWire | None = None
    pod_anti_affinity: PodAffinityWire | None = None


class TolerationWire(msgspec.Struct, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class SpreadWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: SelectorWire | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class EmptyDirWire(msgspec.Struct, frozen=True, gc=False):
    medium: str | None = None


class PresentWire(msgspec.Struct, frozen=True, gc=False):
    """An object of which only the presence matters (hostPath, ephemeral)."""


class ClaimSourceWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    claim_name: str


class VolumeWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    empty_dir: EmptyDirWire | None = None
    host_path: PresentWire | None = None
    ephemeral: PresentWire | None = None
    persistent_volume_claim: ClaimSourceWire | None = None


class ResourceClaimWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    resource_claim_name: str | None = None


class SchedulingGroupWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pod_group_name: str | None = None


class WorkloadRefWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str | None = None


class PodSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    containers: tuple[ContainerWire, ...] | None = None
    init_containers: tuple[ContainerWire, ...] | None = None
    overhead: dict[str, str] | None = None
    resources: ResourcesWire | None = None
    node_name: str | None = None
    priority: int | None = None
    node_selector: dict[str, str] | None = None
    affinity: AffinityWire | None = None
    tolerations: tuple[TolerationWire, ...] | None = None
    topology_spread_constraints: tuple[SpreadWire, ...] | None = None
    scheduler_name: str | None = None
    volumes: tuple[VolumeWire, ...] | None = None
    resource_claims: tuple[ResourceClaimWire, ...] | None = None
    restart_policy: str | None = None
    scheduling_group: SchedulingGroupWire | None = None
    workload_ref: WorkloadRefWire | None = None


class PodConditionWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """When it came to be is taken out by `PodStatusWire`, or no two pods would have equal conditions."""

    type: str
    status: str = "Unknown"
    reason: str | None = None
    last_transition_time: str | None = None


class GivenDeviceWire(msgspec.Struct, frozen=True, gc=False):
    resource_id: str = msgspec.field(default="", name="resourceID")
    health: str | None = None


class GivenDevicesWire(msgspec.Struct, frozen=True, gc=False):
    """Devices of one resource that the kubelet has given to a container."""

    name: str = ""
    resources: tuple[GivenDeviceWire, ...] | None = None


class ContainerStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    restart_count: int = 0
    allocated_resources: dict[str, str] | None = None
    resources: ResourcesWire | None = None
    allocated_resources_status: tuple[GivenDevicesWire, ...] | None = None


class ClaimStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The object that was made for a claim of the pod: of a template, say."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str | None = None
    conditions: tuple[PodConditionWire, ...] | None = None
    start_time: datetime | None = None
    qos_class: str | None = None
    container_statuses: tuple[ContainerStatusWire, ...] | None = None
    init_container_statuses: tuple[ContainerStatusWire, ...] | None = None
    resources: ResourcesWire | None = None
    allocated_resources: dict[str, str] | None = None
    resource_claim_statuses: tuple[ClaimStatusWire, ...] | None = None
    extended_resource_claim_status: ClaimStatusWire | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    ready_since: float = math.nan
    """From the condition Ready, where it is True: unix seconds. NaN unknown."""

    def __post_init__(self) -> None:
        for condition in self.conditions or ():
            moment = condition.last_transition_time
            if moment is None:
                continue
            if condition.type == "Ready" and condition.status == "True":
                _put(self, "ready_since", _unix_seconds(moment))
            _put(condition, "last_transition_time", None)


def _unix_seconds(moment: str) -> float:
    """NaN for what is no time: nothing that matters hangs on it."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return math.nan


class PodWire(msgspec.Struct, frozen=True, gc=False):
    metadata: PodMetaWire
    spec: PodSpecWire = PodSpecWire()
    status: PodStatusWire = PodStatusWire()
