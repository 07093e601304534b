"""Every list that a cycle or the extender reads, by name, path and shape: the reading half of the rights that the project needs."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from rebalancer.kube.lists import Resource
from rebalancer.kube.sharing import share_pod_parts
from rebalancer.kube.wire import (
    AutoscalerWire,
    BudgetWire,
    ClaimWire,
    MetadataWire,
    NodeWire,
    PersistentVolumeWire,
    PriorityClassWire,
)
from rebalancer.kube.wire_devices import DeviceClaimWire, NodeDevicesWire, ResourceSliceWire
from rebalancer.kube.wire_events import EventWire
from rebalancer.kube.wire_gangs import NativePodGroupWire, NativeWorkloadWire, PodGroupWire, TrainingJobWire
from rebalancer.kube.wire_pods import PodWire
from rebalancer.kube.wire_steering import BoundPodWire, ConfigMapWire, NodeLoadWire
from rebalancer.kube.wire_workloads import DaemonSetWire, DeploymentWire, JobWire, ReplicaSetWire, StatefulSetWire

NODES: Final = Resource(name="nodes", path="/api/v1/nodes", item=NodeWire)
PODS: Final = Resource(name="pods", path="/api/v1/pods", item=PodWire, sharing=share_pod_parts)
NAMESPACES: Final = Resource(name="namespaces", path="/api/v1/namespaces", item=MetadataWire, metadata_only=True)
CLAIMS: Final = Resource(name="persistentvolumeclaims", path="/api/v1/persistentvolumeclaims", item=ClaimWire)
VOLUMES: Final = Resource(name="persistentvolumes", path="/api/v1/persistentvolumes", item=PersistentVolumeWire)
REPLICA_SET_OWNERS: Final = Resource(name="replicasets", path="/apis/apps/v1/replicasets", item=ReplicaSetWire, metadata_only=True)
"""Each Deployment keeps ten old ReplicaSets with whole pod templates; who owns them is all that is needed of most."""
REPLICA_SETS: Final = Resource(name="replicasets", path="/apis/apps/v1/replicasets", item=ReplicaSetWire)
DEPLOYMENTS: Final = Resource(name="deployments", path="/apis/apps/v1/deployments", item=DeploymentWire)
STATEFUL_SETS: Final = Resource(name="statefulsets", path="/apis/apps/v1/statefulsets", item=StatefulSetWire)
DAEMON_SETS: Final = Resource(name="daemonsets", path="/apis/apps/v1/daemonsets", item=DaemonSetWire)
JOBS: Final = Resource(name="jobs", path="/apis/batch/v1/jobs", item=JobWire)
CRON_JOBS: Final = Resource(name="cronjobs", path="/apis/batch/v1/cronjobs", item=MetadataWire, metadata_only=True)
AUTOSCALERS: Final = Resource(name="horizontalpodautoscalers", path="/apis/autoscaling/v2/horizontalpodautoscalers", item=AutoscalerWire)
PRIORITY_CLASSES: Final = Resource(name="priorityclasses", path="/apis/scheduling.k8s.io/v1/priorityclasses", item=PriorityClassWire)
BUDGETS: Final = Resource(name="poddisruptionbudgets", path="/apis/policy/v1/poddisruptionbudgets", item=BudgetWire)
DEVICE_CLAIMS: Final = tuple(
    Resource(name="resourceclaims", path=f"/apis/resource.k8s.io/{version}/resourceclaims", item=DeviceClaimWire)
    for version in ("v1", "v1beta1")
)
"""Newest version first; a server has one of them or none."""
RESOURCE_SLICES: Final = tuple(
    Resource(name="resourceslices", path=f"/apis/resource.k8s.io/{version}/resourceslices", item=ResourceSliceWire)
    for version in ("v1", "v1beta1")
)
NODE_DEVICES: Final = Resource(name="devices", path="/apis/scheduling.koordinator.sh/v1alpha1/devices", item=NodeDevicesWire)
POD_GROUPS: Final = {
    "coscheduling": Resource(name="podgroups", path="/apis/scheduling.x-k8s.io/v1alpha1/podgroups", item=PodGroupWire),
    "koordinator": Resource(name="podgroups", path="/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups", item=PodGroupWire),
    "volcano": Resource(name="podgroups", path="/apis/scheduling.volcano.sh/v1beta1/podgroups", item=PodGroupWire),
    "kai": Resource(name="podgroups", path="/apis/scheduling.run.ai/v2alpha2/podgroups", item=PodGroupWire),
}
"""By whose they are."""
NATIVE_POD_GROUPS: Final = tuple(
    Resource(name="podgroups", path=f"/apis/scheduling.k8s.io/{version}/podgroups", item=NativePodGroupWire)
    for version in ("v1beta1", "v1alpha2")
)
NATIVE_WORKLOADS: Final = tuple(
    Resource(name="workloads", path=f"/apis/scheduling.k8s.io/{version}/workloads", item=NativeWorkloadWire)
    for version in ("v1beta1", "v1alpha2", "v1alpha1")
)
TRAINING_JOBS: Final = {
    kind: tuple(
        Resource(name=f"{kind.lower()}s", path=f"/apis/kubeflow.org/{version}/{kind.lower()}s", item=TrainingJobWire)
        for version in versions
    )
    for kind, versions in {
        "PyTorchJob": ("v1",),
        "TFJob": ("v1",),
        "MPIJob": ("v2beta1", "v1"),
        "XGBoostJob": ("v1",),
        "PaddleJob": ("v1",),
        "JAXJob": ("v1",),
    }.items()
}
"""By kind of the owner; newest version first."""
NODE_LOADS: Final = Resource(name="nodes", path="/api/v1/nodes", item=NodeLoadWire)
"""Nodes as the extender reads them."""
BOUND_PODS: Final = Resource(name="pods", path="/api/v1/pods", item=BoundPodWire, query=(("fieldSelector", "spec.nodeName!="),))
"""A pod comes into this watch when it is bound."""

BINDINGS: Final = Resource(
    name="events",
    path="/apis/events.k8s.io/v1/events",
    item=EventWire,
    query=(("fieldSelector", "reason=Scheduled,type=Normal"),),
)
"""What schedulers say when they bind a pod; the API server forgets it after an hour."""

WATCHED: Final = (PODS, NODES, REPLICA_SET_OWNERS, DEPLOYMENTS, JOBS, CLAIMS, VOLUMES)
"""What the service keeps current by watch: what grows with the number of pods, and the nodes, which are large.

The rest is small, or changes more often than it is looked at (autoscalers write their status every 15 s), so that a list is cheaper. What
disruption budgets allow is wanted as late as possible.
"""

ALL_LISTS: Final = (
    PODS,
    NODES,
    NAMESPACES,
    BUDGETS,
    REPLICA_SETS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
    CRON_JOBS,
    AUTOSCALERS,
    PRIORITY_CLASSES,
    CLAIMS,
    VOLUMES,
)
"""What the preflight asks the API server for the right to list."""


def one_config_map(*, namespace: str, name: str) -> Resource[ConfigMapWire]:
    """A list and a watch of one ConfigMap, for which the right to that one is enough."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
    return Resource(name="configmaps", path=path, item=ConfigMapWire, query=(("fieldSelector", f"metadata.name={name}"),))


OPTIONAL_LISTS: Final[tuple[Resource[Any], ...]] = (DEVICE_CLAIMS[0], RESOURCE_SLICES[0], NODE_DEVICES)
"""What is listed where the API has it and a pod or node points to it: devices by claim, and koordinator's."""
GANG_LISTS: Final[tuple[Resource[Any], ...]] = (
    *POD_GROUPS.values(),
    NATIVE_POD_GROUPS[0],
    NATIVE_WORKLOADS[0],
    *(versions[0] for versions in TRAINING_JOBS.values()),
)
"""The same for pods that belong together: their groups, and jobs of distributed training."""
