"""Every list that a cycle needs from the API server, read once, in an order that leaves no loose ends.

Pods come first and what they point to afterwards: a node, an owner or a claim that was created in between is then found. Disruption budgets
come late, since what they allow changes fastest. All lists are required: without workloads a rollout is not seen, without claims a pod is
promised a node that its disk cannot reach, so a list that is forbidden or absent ends the cycle instead of weakening a rule.

Nothing is decided here; `assemble` turns the objects into the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from rebalancer.collect.gangs.objects import GangObjects
from rebalancer.collect.gpu.assembling import GpuObjects
from rebalancer.collect.pod_columns import PodColumns
from rebalancer.collect.pod_table import PodTable
from rebalancer.collect.samples import NodeDirectory, PodKey
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError, KubernetesForbidden, KubernetesNotFound
from rebalancer.gpu.names import GPUSHARE_COUNT
from rebalancer.gpu.nodes.koordinator import CORE as KOORDINATOR_CORE
from rebalancer.kube import resources
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gpu_sharing import UNHEALTHY_DEVICES
from rebalancer.kube.lists import Resource, list_all
from rebalancer.kube.operations import describe
from rebalancer.kube.wire import (
    AutoscalerWire,
    BudgetWire,
    ClaimWire,
    MetadataWire,
    NodeWire,
    PersistentVolumeWire,
    PriorityClassWire,
)
from rebalancer.kube.wire_pods import PodWire
from rebalancer.kube.wire_workloads import DaemonSetWire, DeploymentWire, JobWire, ReplicaSetWire, StatefulSetWire
from rebalancer.state.gangs import GangSystem

T = TypeVar("T", bound=msgspec.Struct)

_IDENTITY_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObjects:
    """The API objects of one cycle. ``odd``: "<list>: <reason>" -> objects that could not be read and were left out."""

    cluster: str
    """uid of the kube-system namespace."""
    nodes: list[NodeWire] = field(default_factory=list)
    pods: list[PodWire] = field(default_factory=list)
    namespaces: list[MetadataWire] = field(default_factory=list)
    replica_sets: list[ReplicaSetWire] = field(default_factory=list)
    deployments: list[DeploymentWire] = field(default_factory=list)
    stateful_sets: list[StatefulSetWire] = field(default_factory=list)
    daemon_sets: list[DaemonSetWire] = field(default_factory=list)
    jobs: list[JobWire] = field(default_factory=list)
    cron_jobs: list[MetadataWire] = field(default_factory=list)
    autoscalers: list[AutoscalerWire] = field(default_factory=list)
    priority_classes: list[PriorityClassWire] = field(default_factory=list)
    claims: list[ClaimWire] = field(default_factory=list)
    volumes: list[PersistentVolumeWire] = field(default_factory=list)
    budgets: list[BudgetWire] = field(default_factory=list)
    gpus: GpuObjects = field(default_factory=GpuObjects)
    gangs: GangObjects = field(default_factory=GangObjects)
    odd: Mapping[str, int] = field(default_factory=dict)
    columns: PodColumns | None = None
    """The same pods as columns, where they are kept from one read to the next."""


class ClusterSource(Protocol):
    """Where a cycle gets the cluster's objects from."""

    def read(self, *, deadline: Deadline) -> ClusterObjects:
        """All objects as they are now. Raises as `read_cluster`."""
        ...

    def rest(self) -> None:
        """Nothing is read for a while: keep nothing, and ask for nothing."""
        ...


class Reader(Protocol):
    """Gives all objects of one resource after the other."""

    def read(self, resource: Resource[T]) -> tuple[list[T], Mapping[str, int]]:
        """The objects, and reason -> number of those that could not be read."""
        ...


class ListedCluster:
    """Lists everything each time: nothing is kept, nothing can be out of date."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def read(self, *, deadline: Deadline) -> ClusterObjects:
        return read_cluster(self._client, deadline=deadline)

    def rest(self) -> None:
        """Nothing is kept anyway."""


@dataclass(frozen=True, slots=True)
class _Lister:
    client: KubeClient
    deadline: Deadline

    def read(self, resource: Resource[T]) -> tuple[list[T], Mapping[str, int]]:
        listed = list_all(self.client, resource, deadline=self.deadline)
        return listed.items, listed.odd


@dataclass(slots=True)
class _Counting:
    """Keeps count of what could not be read."""

    reader: Reader
    odd: Counter[str] = field(default_factory=Counter)

    def read(self, resource: Resource[T]) -> list[T]:
        items, odd = self.reader.read(resource)
        for reason, count in odd.items():
            self.odd[f"{resource.name}: {reason}"] += count
        return items

    def read_if_there(self, versions: Sequence[Resource[T]], *, counted: bool = True) -> Sequence[T] | None:
        """Of the first version that the API has; nothing where it has none. None without the right to list it, which may be counted."""
        for resource in versions:
            try:
                return self.read(resource)
            except KubernetesNotFound:
                continue
            except KubernetesForbidden:
                if counted:
                    self.odd[f"{resource.name}: may not be listed"] += 1
                return None
        return ()


def read_cluster(client: KubeClient, *, deadline: Deadline) -> ClusterObjects:
    """Read everything. Raises what `list_all` raises (unreachable, forbidden, absent, expired, throttled past the deadline), and
    KubernetesError when the cluster has no kube-system namespace and so no identity."""
    return gather(_Lister(client, deadline))


def gather(each: Reader, *, table: Callable[[], PodTable] = PodTable) -> ClusterObjects:
    """Put together what a reader gives. Raises what it raises, and KubernetesError as `read_cluster`.

    ``table``: of the pods, asked for once they are read; from one that is kept only what has changed is read anew.
    """
    reader = _Counting(each)
    pods = reader.read(resources.PODS)
    columns = table().read(pods)
    nodes = reader.read(resources.NODES)
    namespaces = reader.read(resources.NAMESPACES)
    replica_sets = reader.read(resources.REPLICA_SET_OWNERS)
    if _some_pod_ends_at_a_replica_set(pods, replica_sets):
        replica_sets = reader.read(resources.REPLICA_SETS)
    return ClusterObjects(
        cluster=_identity(namespaces),
        pods=pods,
        nodes=nodes,
        namespaces=namespaces,
        replica_sets=replica_sets,
        deployments=reader.read(resources.DEPLOYMENTS),
        stateful_sets=reader.read(resources.STATEFUL_SETS),
        daemon_sets=reader.read(resources.DAEMON_SETS),
        jobs=reader.read(resources.JOBS),
        cron_jobs=reader.read(resources.CRON_JOBS),
        autoscalers=reader.read(resources.AUTOSCALERS),
        priority_classes=reader.read(resources.PRIORITY_CLASSES),
        claims=reader.read(resources.CLAIMS),
        volumes=reader.read(resources.VOLUMES),
        budgets=reader.read(resources.BUDGETS),
        gpus=_gpu_objects(reader, pods, nodes),
        gangs=_gang_objects(reader, columns),
        odd=dict(reader.odd),
        columns=columns,
    )


def _gpu_objects(reader: _Counting, pods: Iterable[PodWire], nodes: Iterable[NodeWire]) -> GpuObjects:
    """What only GPUs need, where some pod or node points to it."""
    claimed = any(pod.spec.resource_claims or pod.status.extended_resource_claim_status for pod in pods)
    resources_of = [node.status.allocatable or () for node in nodes]
    booked, shared = (any(name in each for each in resources_of) for name in (KOORDINATOR_CORE, GPUSHARE_COUNT))
    return GpuObjects(
        claims=reader.read_if_there(resources.DEVICE_CLAIMS) if claimed else (),
        slices=(reader.read_if_there(resources.RESOURCE_SLICES) or ()) if claimed else (),
        devices=(reader.read_if_there((resources.NODE_DEVICES,)) or ()) if booked else (),
        unhealthy=(reader.read_if_there((UNHEALTHY_DEVICES,)) or ()) if shared else (),
    )


def _gang_objects(reader: _Counting, pods: PodColumns) -> GangObjects:
    """What says how many of the pods belong together, where some pod carries the mark of the kind."""
    marked = pods.marked()
    marks = {mark for number in np.unique(marked.numbers).tolist() for mark in marked.marks[number]}
    if not marks:
        return GangObjects()
    systems, forbidden = {mark.system for mark in marks}, []

    def listed(versions: Sequence[Resource[T]], *, when: bool = True) -> Sequence[T]:
        found = reader.read_if_there(versions, counted=False) if when else ()
        if found is None:
            operation = describe("GET", versions[0].path)
            forbidden.append(f"{operation.resource}.{operation.group}")
        return found or ()

    groups = resources.POD_GROUPS
    light = bool(systems & {GangSystem.COSCHEDULING, GangSystem.KOORDINATOR})
    native, kinds = GangSystem.KUBERNETES in systems, {mark.kind for mark in marks}
    of_coscheduling = (*listed((groups["coscheduling"],), when=light), *listed((groups["koordinator"],), when=light))
    return GangObjects(
        groups={
            GangSystem.COSCHEDULING: of_coscheduling,
            GangSystem.KOORDINATOR: of_coscheduling,
            GangSystem.VOLCANO: listed((groups["volcano"],), when=GangSystem.VOLCANO in systems),
            GangSystem.KAI: listed((groups["kai"],), when=GangSystem.KAI in systems),
        },
        native_groups=listed(resources.NATIVE_POD_GROUPS, when=native),
        native_workloads=listed(resources.NATIVE_WORKLOADS, when=native),
        training_jobs={kind: listed(versions, when=kind in kinds) for kind, versions in resources.TRAINING_JOBS.items()},
        forbidden=tuple(forbidden),
    )


def _identity(namespaces: Iterable[MetadataWire]) -> str:
    for namespace in namespaces:
        if namespace.metadata.name == _IDENTITY_NAMESPACE and namespace.metadata.uid:
            return namespace.metadata.uid
    raise KubernetesError(
        f"the list of namespaces holds no {_IDENTITY_NAMESPACE} with a uid, so the cluster cannot be told from another",
        remedy="check that the kubeconfig context points at a Kubernetes API server and not at one of its virtual workspaces",
    )


def _some_pod_ends_at_a_replica_set(pods: Iterable[PodWire], replica_sets: Iterable[ReplicaSetWire]) -> bool:
    """Whether a ReplicaSet without an owner has pods: then its replicas count, and its metadata does not hold them."""
    roots = {rs.metadata.uid for rs in replica_sets if rs.spec is None and rs.metadata.controller is None}
    if not roots:
        return False
    return any(owner.controller and owner.uid in roots for pod in pods for owner in pod.metadata.owner_references or ())


def node_directory(objects: ClusterObjects) -> NodeDirectory:
    """What helps to find the node behind a series: names, addresses that belong to one node alone, and where each pod is."""
    addresses: dict[str, str] = {}
    shared: set[str] = set()
    for node in objects.nodes:
        name = node.metadata.name
        for address in {entry.address for entry in node.status.addresses or () if entry.address}:
            if addresses.setdefault(address, name) != name:
                shared.add(address)
    pod_nodes: Mapping[PodKey, str]
    if objects.columns is not None:
        pod_nodes = objects.columns.places()
    else:
        pod_nodes = {(pod.metadata.namespace, pod.metadata.name): pod.spec.node_name for pod in objects.pods if pod.spec.node_name}
    return NodeDirectory(
        names=frozenset(node.metadata.name for node in objects.nodes),
        addresses={address: name for address, name in addresses.items() if address not in shared},
        pod_nodes=pod_nodes,
    )
