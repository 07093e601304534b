"""What kube-scheduler sends to an extender and reads from it.

The outer keys have no JSON tags in Go: they are the capitalised names of its fields. Pods and nodes inside have their usual names. Of a pod
only what is judged by is read. Nodes that come as whole objects are kept as the bytes they came in, for they go back as they came.
Source: ``k8s.io/kube-scheduler/extender/v1``.
"""

from __future__ import annotations

import math
import re

import msgspec

from rebalancer.state.requests import ContainerRequest, PodRequest, amounts, in_units, incoming_request
from rebalancer.steer.judging import PodAsk
from rebalancer.steer.lineage import Lineage, lineage

GPU_RESOURCES = frozenset({"nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "aliyun.com/gpu-mem"})
_MIG = "nvidia.com/mig-"


class OwnerRef(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class MetaArgs(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[OwnerRef, ...] | None = None


class Resources(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resources: Resources | None = None
    restart_policy: str | None = None


class SpecArgs(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: dict[str, str] | None = None
    resources: Resources | None = None


class PodArgs(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaArgs = MetaArgs()
    spec: SpecArgs = SpecArgs()


class NodeListArgs(msgspec.Struct, frozen=True, gc=False):
    items: list[msgspec.Raw] | None = None


class ExtenderArgs(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    pod: PodArgs | None = None
    nodes: NodeListArgs | None = None
    node_names: list[str] | None = None


class _NodeMeta(msgspec.Struct, frozen=True, gc=False):
    name: str


class NodeHead(msgspec.Struct, frozen=True, gc=False):
    metadata: _NodeMeta


class NodeList(msgspec.Struct, frozen=True, gc=False):
    items: list[msgspec.Raw]
    metadata: dict[str, str] = {}


class FilterResult(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    nodes: NodeList | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    host: str
    score: int


class ErrorBody(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    error: str


def is_gpu(resource: str) -> bool:
    """Whether it is a GPU, a part of one, or memory of one."""
    return resource in GPU_RESOURCES or resource.startswith(_MIG)


_decode_head = msgspec.json.Decoder(NodeHead).decode
_BEGINNING = re.compile(rb'\{(?:"(?:kind|apiVersion)":"[A-Za-z0-9/]*",){0,2}"metadata":\{"name":"([a-z0-9.-]{1,253})"')
"""Of a Node as Go writes it."""


def name_of(node: msgspec.Raw) -> str:
    """The name stands at the beginning of an object of many kilobytes, which need not be read once more for it. Raises DecodeError."""
    match = _BEGINNING.match(node)
    return match[1].decode() if match else _decode_head(node).metadata.name


def ask_of(pod: PodArgs) -> PodAsk:
    """What the pod asks for as kube-scheduler counts it. A quantity that cannot be read leaves the amounts unknown, and nothing else."""
    spec = pod.spec
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    names = {
        name for each in containers if each.resources for part in (each.resources.requests, each.resources.limits) for name in part or ()
    }
    exempt = any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())
    whose = _lineage_of(pod.metadata)
    gpu = any(map(is_gpu, names))
    try:
        wanted = incoming_request(_request_of(spec))
    except (ValueError, OverflowError):
        return PodAsk(gpu=gpu, exempt=exempt, lineage=whose)
    known = {name: in_units(name, wanted[name]) for name in ("cpu", "memory") if name in wanted}
    return PodAsk({name: value for name, value in known.items() if math.isfinite(value)}, gpu=gpu, exempt=exempt, lineage=whose)


def _lineage_of(meta: MetaArgs) -> Lineage | None:
    for owner in meta.owner_references or ():
        if owner.controller and meta.uid:
            return lineage(
                uid=meta.uid,
                namespace=meta.namespace,
                kind=owner.kind,
                name=owner.name,
                controller_uid=owner.uid,
                labels=meta.labels or {},
            )
    return None


def _request_of(spec: SpecArgs) -> PodRequest:
    return PodRequest(
        containers=tuple(_container(each) for each in spec.containers or ()),
        init_containers=tuple(_container(each) for each in spec.init_containers or ()),
        overhead=amounts(spec.overhead),
        level=amounts(spec.resources.requests) if spec.resources and spec.resources.requests else None,
    )


def _container(container: Container) -> ContainerRequest:
    return ContainerRequest(
        request=amounts(container.resources.requests if container.resources else None),
        sidecar=container.restart_policy == "Always",
    )
