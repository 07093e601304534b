"""Nodes, pods and questions of gpushare in short words, in the figures of its design document: devices of 16276 MiB."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rebalancer.steer.gpushare.allocations import Share, bind_annotations, share_of
from rebalancer.steer.gpushare.devices import Devices
from rebalancer.steer.gpushare.ledger import Holder, NodeLedger, node_ledger

Json = dict[str, object]
NOW = 1_767_323_045.0
"""2026-01-02T03:04:05Z."""
EACH = 16276
ASK = 8138


def held(name: str, device: int, amount: int, *, namespace: str = "default") -> Holder:
    return Holder(f"uid-{name}", namespace, name, Share(of_device=((device, amount),)))


def lost(name: str, amount: int) -> Holder:
    """A pod whose device nobody can name."""
    return Holder(f"uid-{name}", "default", name, share_of({}, asked=amount))


def ledger(node: str, *holders: Holder, devices: int = 2, unhealthy: Sequence[int] = ()) -> NodeLedger:
    return node_ledger(node, Devices(devices, EACH * devices), holders, unhealthy=frozenset(unhealthy))


def gpu_node(name: str, *, devices: int = 2, each: int = EACH, annotations: Mapping[str, str] | None = None) -> Json:
    """A Node object of the API."""
    shared = {"aliyun.com/gpu-mem": str(each * devices), "aliyun.com/gpu-count": str(devices)}
    resources = {"cpu": "16", "memory": "64Gi", "pods": "110", **(shared if devices else {})}
    return {
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {},
        "status": {"capacity": resources, "allocatable": resources},
    }


def gpu_pod(
    name: str,
    *asks: int,
    node: str = "",
    device: int | None = None,
    phase: str = "Pending",
    namespace: str = "default",
    early: int = 0,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """A Pod object of the API, one container an ask. ``device``: it is annotated as this extender does it."""
    containers: list[Json] = [{"name": f"c{i}", "resources": {"limits": {"aliyun.com/gpu-mem": str(ask)}}} for i, ask in enumerate(asks)]
    spec: Json = {"containers": containers or [{"name": "c"}]}
    if early:
        spec["initContainers"] = [{"name": "i", "resources": {"limits": {"aliyun.com/gpu-mem": str(early)}}}]
    if node:
        spec["nodeName"] = node
    written = {} if device is None else bind_annotations(device=device, of_pod=sum(asks), of_device=EACH, at=NOW)
    metadata = {"name": name, "namespace": namespace, "annotations": {**written, **(annotations or {})}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def filter_question(names: Sequence[str], pod: Mapping[str, object], *, whole: bool = False) -> bytes:
    """As Go writes it: names with nodeCacheCapable, whole objects without."""
    nodes = {"metadata": {}, "items": [{"metadata": {"name": name, "labels": {"kept": "as is"}}} for name in names]} if whole else None
    return json.dumps({"Pod": pod, "Nodes": nodes, "NodeNames": None if whole else list(names)}).encode()


def bind_question(pod: Mapping[str, object], node: str) -> bytes:
    """As Go writes it, for a pod as the API server knows it."""
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    return json.dumps(
        {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"], "Node": node}
    ).encode()
