"""What the sharing of GPUs by memory reads and writes at the API server: few fields of pods and nodes, registers, bindings.

No selector of the API finds pods by a resource that they ask for, so all pods are read, with a decoder that makes objects of a dozen
fields and skips the rest; which of them matter is decided above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesNotFound
from rebalancer.kube.binding import Binding, bind_pod, overtake
from rebalancer.kube.configmaps import StoredMap, read_config_map, write_config_map
from rebalancer.kube.lists import Listed, Resource, list_all
from rebalancer.kube.operations import object_path, pod_path

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

UNHEALTHY_PREFIX = "unhealthy-gpu-"
UNHEALTHY_NAMESPACE = "kube-system"
REGISTER_PREFIX = "rebalancer-gpushare-"
OVERTAKEN = "rebalancer.dev/gpu-binding"
"""A mark that stands on a pod for a moment; see `overtake`."""
_LONGEST_NAME = 253
_LABELS: Final = {"app.kubernetes.io/managed-by": "rebalancer", "app.kubernetes.io/component": "gpushare"}


class GpuLimitsWire(msgspec.Struct, frozen=True, gc=False, rename={"gpu_memory": "aliyun.com/gpu-mem"}):
    gpu_memory: str | None = None


class GpuResourcesWire(msgspec.Struct, frozen=True, gc=False):
    limits: GpuLimitsWire | None = None


class GpuContainerWire(msgspec.Struct, frozen=True, gc=False):
    resources: GpuResourcesWire | None = None


_POD_KEYS = {
    "index": "ALIYUN_COM_GPU_MEM_IDX",
    "of_pod": "ALIYUN_COM_GPU_MEM_POD",
    "allocation": "scheduler.framework.gpushare.allocation",
}


class GpuAnnotationsWire(msgspec.Struct, frozen=True, gc=False, rename=_POD_KEYS):
    index: str | None = None
    of_pod: str | None = None
    allocation: str | None = None

    def written(self) -> dict[str, str]:
        """Those that are there, by their names."""
        return {key: text for field, key in _POD_KEYS.items() if (text := getattr(self, field)) is not None}


class GpuPodMetaWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: GpuAnnotationsWire | None = None


class GpuPodSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str | None = None
    containers: tuple[GpuContainerWire, ...] | None = None
    init_containers: tuple[GpuContainerWire, ...] | None = None


class GpuPodStatusWire(msgspec.Struct, frozen=True, gc=False):
    phase: str | None = None


class GpuPodWire(msgspec.Struct, frozen=True, gc=False):
    metadata: GpuPodMetaWire
    spec: GpuPodSpecWire = GpuPodSpecWire()
    status: GpuPodStatusWire = GpuPodStatusWire()


class GpuCapacityWire(
    msgspec.Struct, frozen=True, gc=False, rename={"gpu_memory": "aliyun.com/gpu-mem", "gpu_count": "aliyun.com/gpu-count"}
):
    gpu_memory: str | None = None
    gpu_count: str | None = None

    def amounts(self) -> dict[str, str]:
        named = {"aliyun.com/gpu-mem": self.gpu_memory, "aliyun.com/gpu-count": self.gpu_count}
        return {name: text for name, text in named.items() if text is not None}


class GpuNodeStatusWire(msgspec.Struct, frozen=True, gc=False):
    capacity: GpuCapacityWire | None = None
    allocatable: GpuCapacityWire | None = None


class GpuLoadWire(msgspec.Struct, frozen=True, gc=False, rename={"load": "rebalancer.dev/gpu-load"}):
    load: str | None = None


class GpuNodeMetaWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""
    annotations: GpuLoadWire | None = None


class GpuNodeWire(msgspec.Struct, frozen=True, gc=False):
    metadata: GpuNodeMetaWire
    status: GpuNodeStatusWire = GpuNodeStatusWire()


class UnhealthyDataWire(msgspec.Struct, frozen=True, gc=False):
    gpus: str | None = None


class UnhealthyMetaWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    resource_version: str = ""


class UnhealthyWire(msgspec.Struct, frozen=True, gc=False):
    """A ConfigMap that names the unhealthy devices of a node."""

    metadata: UnhealthyMetaWire
    data: UnhealthyDataWire | None = None


class _RegisterWire(msgspec.Struct, frozen=True):
    metadata: dict[str, object]
    data: dict[str, str] | None = None


GPU_PODS: Final = Resource(name="pods", path="/api/v1/pods", item=GpuPodWire)
GPU_NODES: Final = Resource(name="nodes", path="/api/v1/nodes", item=GpuNodeWire)
UNHEALTHY_DEVICES: Final = Resource(name="configmaps", path=f"/api/v1/namespaces/{UNHEALTHY_NAMESPACE}/configmaps", item=UnhealthyWire)


def register_name(node: str) -> str:
    """The ConfigMap of the register of ``node``; of a node whose name leaves no room for the prefix, by its hash."""
    name = REGISTER_PREFIX + node
    return name if len(name) <= _LONGEST_NAME else REGISTER_PREFIX + sha256(node.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class GpuSharing:
    """The calls of a binder, each of them to the API server itself: nothing here is remembered. Every method raises KubernetesError.

    ``namespace``: where registers are kept.
    """

    client: KubeClient
    namespace: str

    def read_pod(self, *, namespace: str, name: str, deadline: Deadline) -> GpuPodWire | None:
        """The pod as it is now; None if there is none."""
        try:
            return self.client.get(pod_path(namespace=namespace, name=name), deadline=deadline).into(GpuPodWire)
        except KubernetesNotFound:
            return None

    def pods_on(self, node: str, *, deadline: Deadline) -> Listed[GpuPodWire]:
        """All pods that are bound to ``node`` now. Without a resourceVersion in the question the answer is not older than it."""
        return list_all(self.client, GPU_PODS, deadline=deadline, query=(("fieldSelector", f"spec.nodeName={node}"),))

    def read_register(self, node: str, *, deadline: Deadline) -> StoredMap | None:
        return read_config_map(self.client, namespace=self.namespace, name=register_name(node), deadline=deadline)

    def write_register(self, node: str, data: Mapping[str, str], *, previous: StoredMap | None, deadline: Deadline) -> StoredMap:
        """Raises as `write_config_map`."""
        name = register_name(node)
        return write_config_map(
            self.client, namespace=self.namespace, name=name, data=data, previous=previous, deadline=deadline, labels=_LABELS
        )

    def registers(self, *, deadline: Deadline) -> list[StoredMap]:
        """All of them."""
        path = f"/api/v1/namespaces/{quote(self.namespace, safe='')}/configmaps"
        resource = Resource(name="configmaps", path=path, item=_RegisterWire)
        selector = ",".join(f"{key}={value}" for key, value in _LABELS.items())
        listed = list_all(self.client, resource, deadline=deadline, query=(("labelSelector", selector),))
        return [
            StoredMap(
                namespace=self.namespace,
                name=str(each.metadata.get("name", "")),
                data=each.data or {},
                resource_version=str(each.metadata.get("resourceVersion", "")),
                metadata=each.metadata,
            )
            for each in listed.items
        ]

    def delete_register(self, stored: StoredMap, *, deadline: Deadline) -> None:
        """Delete it as it was read. Raises KubernetesConflict when somebody wrote since."""
        path = object_path(api_version="v1", plural="configmaps", namespace=stored.namespace, name=stored.name)
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": stored.resource_version}}
        self.client.request("DELETE", path, body=body, deadline=deadline, write=True)

    def bind(
        self, *, namespace: str, name: str, uid: str, version: str, node: str, annotations: Mapping[str, str], deadline: Deadline
    ) -> Binding:
        return bind_pod(
            self.client,
            namespace=namespace,
            name=name,
            uid=uid,
            version=version,
            node=node,
            annotations=annotations,
            deadline=deadline,
        )

    def overtake(self, *, namespace: str, name: str, version: str, deadline: Deadline) -> bool:
        return overtake(self.client, namespace=namespace, name=name, version=version, key=OVERTAKEN, deadline=deadline)
