"""What tests of the extender's feeding share: nodes and pods as the API server tells them, and a report that remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rebalancer.errors import KubernetesError
from rebalancer.kube.wire_steering import BoundPodWire, NodeLoadWire
from rebalancer.units import format_time
from tests.steer.kit import NOW
from tests.watch.kit import Noted

Json = dict[str, Any]


def node_json(
    name: str,
    annotations: Mapping[str, str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    cpu: str = "8",
    allocatable: str | None = None,
) -> Json:
    return {
        "metadata": {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})},
        "status": {"capacity": {"cpu": cpu, "memory": "32Gi"}, "allocatable": {"cpu": allocatable or cpu, "memory": "32Gi"}},
    }


def node(name: str, annotations: Mapping[str, str] | None = None, **more: Any) -> NodeLoadWire:
    return msgspec.convert(node_json(name, annotations, **more), NodeLoadWire)


def bound_json(
    name: str,
    on: str | None,
    *,
    at: float | None = NOW,
    cpu: str | None = "2",
    version: int = 1,
    uid: str = "",
    phase: str = "Pending",
    controller: str = "rs-1",
    resource: str = "",
) -> Json:
    """A pod of the ReplicaSet ``web-5d4f`` that was bound at ``at``."""
    requests = {"cpu": cpu, **({resource: "1"} if resource else {})} if cpu is not None else {}
    owner = {"kind": "ReplicaSet", "name": "web-5d4f", "uid": controller, "controller": True, "apiVersion": "apps/v1"}
    scheduled = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(at)}] if at is not None else []
    meta = {"name": name, "namespace": "shop", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {
        "metadata": {**meta, "labels": {"pod-template-hash": "5d4f"}, "ownerReferences": [owner]},
        "spec": {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {"phase": phase, "conditions": scheduled},
    }


def bound(name: str, on: str | None, **more: Any) -> BoundPodWire:
    return msgspec.convert(bound_json(name, on, **more), BoundPodWire, strict=False)


@dataclass
class Told(Noted):
    """A report that remembers, of lists too."""

    unreadable_ones: list[tuple[str, str]] = field(default_factory=list)
    readable_ones: list[str] = field(default_factory=list)

    def unreadable(self, resource: str, error: KubernetesError) -> None:
        self.unreadable_ones.append((resource, error.message))

    def readable(self, resource: str) -> None:
        self.readable_ones.append(resource)
