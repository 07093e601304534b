"""What a list item looks like on the wire, part one: metadata, selectors, nodes, namespaces, volumes, and the small kinds.

Only the fields that some rule reads are named; the decoder skips the rest without making objects of it, which is why ten thousand pods
cost a quarter of a second and not a quarter of a minute. Everything that Go may leave out or write as ``null`` is optional, so that one
odd object is one odd object. Zero and absent are the same in Go's ``omitempty``: whoever reads a number from here must know which it is.

Pods are in `wire_pods`, their owners in `wire_workloads`. No rule lives in these files.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

_ANNOTATION_KEYS = {
    "evict": "rebalancer.dev/evict",
    "pod_class": "rebalancer.dev/class",
    "checkpointed": "rebalancer.dev/checkpointed",
    "candidate": "rebalancer.dev/candidate",
    "descheduler_evict": "descheduler.alpha.kubernetes.io/evict",
    "descheduler_prefer_no_eviction": "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    "safe_to_evict": "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "safe_to_evict_local_volumes": "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
    "karpenter_do_not_disrupt": "karpenter.sh/do-not-disrupt",
    "karpenter_do_not_evict": "karpenter.sh/do-not-evict",
    "karpenter_do_not_consolidate": "karpenter.sh/do-not-consolidate",
    "config_mirror": "kubernetes.io/config.mirror",
    "config_source": "kubernetes.io/config.source",
    "pod_deletion_cost": "controller.kubernetes.io/pod-deletion-cost",
    "koordinator_eviction_cost": "scheduling.koordinator.sh/eviction-cost",
    "koordinator_gang": "gang.scheduling.koordinator.sh/name",
    "group_name": "scheduling.k8s.io/group-name",
    "volcano_group_name": "scheduling.volcano.sh/group-name",
    "kai_group_name": "pod-group-name",
}


class AnnotationsWire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename=_ANNOTATION_KEYS.get):
    """The annotations that some rule reads, and none of the kilobytes that nobody does. To read another one, add it above as well."""

    evict: str | None = None
    pod_class: str | None = None
    checkpointed: str | None = None
    candidate: str | None = None
    descheduler_evict: str | None = None
    descheduler_prefer_no_eviction: str | None = None
    safe_to_evict: str | None = None
    safe_to_evict_local_volumes: str | None = None
    karpenter_do_not_disrupt: str | None = None
    karpenter_do_not_evict: str | None = None
    karpenter_do_not_consolidate: str | None = None
    config_mirror: str | None = None
    config_source: str | None = None
    pod_deletion_cost: str | None = None
    koordinator_eviction_cost: str | None = None
    koordinator_gang: str | None = None
    group_name: str | None = None
    volcano_group_name: str | None = None
    kai_group_name: str | None = None


class OwnerWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class MetaWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    uid: str = ""
    namespace: str = ""
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: AnnotationsWire | None = None
    owner_references: tuple[OwnerWire, ...] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    resource_version: str = ""

    @property
    def controller(self) -> OwnerWire | None:
        """The one owner reference that is marked as the controller."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class MetadataWire(msgspec.Struct, frozen=True, gc=False):
    """An object of which the metadata is all that is read: namespaces, CronJobs, the owners of ReplicaSets."""

    metadata: MetaWire


class RequirementWire(msgspec.Struct, frozen=True, gc=False):
    """An expression of a label selector or of a node term."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class SelectorWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[RequirementWire, ...] | None = None


class NodeTermWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    match_expressions: tuple[RequirementWire, ...] | None = None
    match_fields: tuple[RequirementWire, ...] | None = None


class NodeSelectorWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_selector_terms: tuple[NodeTermWire, ...] | None = None


class ConditionWire(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str = "Unknown"
    reason: str | None = None


class NodeMetaWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Nodes keep all their annotations: few objects, and over-sell and load annotations are read by name."""

    name: str
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: datetime | None = None
    resource_version: str = ""

    @property
    def namespace(self) -> str:
        return ""


class TaintWire(msgspec.Struct, frozen=True, gc=False):
    key: str
    value: str | None = None
    effect: str = ""


class NodeSpecWire(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool | None = None
    taints: tuple[TaintWire, ...] | None = None


class AddressWire(msgspec.Struct, frozen=True, gc=False):
    type: str
    address: str


class NodeStatusWire(msgspec.Struct, frozen=True, gc=False):
    capacity: dict[str, str] | None = None
    allocatable: dict[str, str] | None = None
    conditions: tuple[ConditionWire, ...] | None = None
    addresses: tuple[AddressWire, ...] | None = None


class NodeWire(msgspec.Struct, frozen=True, gc=False):
    metadata: NodeMetaWire
    spec: NodeSpecWire = NodeSpecWire()
    status: NodeStatusWire = NodeStatusWire()


class PriorityClassWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    value: int = 0


class ClaimSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str | None = None
    access_modes: tuple[str, ...] | None = None


class PhaseWire(msgspec.Struct, frozen=True, gc=False):
    phase: str | None = None


class ClaimWire(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim."""

    metadata: MetaWire
    spec: ClaimSpecWire = ClaimSpecWire()
    status: PhaseWire = PhaseWire()


class VolumeNodeAffinityWire(msgspec.Struct, frozen=True, gc=False):
    required: NodeSelectorWire | None = None


class PersistentVolumeSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_affinity: VolumeNodeAffinityWire | None = None


class PersistentVolumeWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: PersistentVolumeSpecWire = PersistentVolumeSpecWire()


class BudgetSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    selector: SelectorWire | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Integers that Go always writes, so an absent one means that the disruption controller has not looked at the budget yet."""

    disruptions_allowed: int | None = None
    current_healthy: int | None = None
    desired_healthy: int | None = None
    expected_pods: int | None = None
    observed_generation: int | None = None


class BudgetWire(msgspec.Struct, frozen=True, gc=False):
    """A PodDisruptionBudget."""

    metadata: MetaWire
    spec: BudgetSpecWire = BudgetSpecWire()
    status: BudgetStatusWire = BudgetStatusWire()


class ScaleTargetWire(msgspec.Struct, frozen=True, gc=False):
    kind: str
    name: str


class AutoscalerSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    scale_target_ref: ScaleTargetWire


class AutoscalerStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    last_scale_time: datetime | None = None


class AutoscalerWire(msgspec.Struct, frozen=True, gc=False):
    """A HorizontalPodAutoscaler."""

    metadata: MetaWire
    spec: AutoscalerSpecWire
    status: AutoscalerStatusWire = AutoscalerStatusWire()
