"""Nodes that an extender knows, and what kube-scheduler asks about them, both from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from rebalancer.state.arrays import by_column
from rebalancer.state.tables import WorkloadRef
from rebalancer.steer.load_annotations import SERIES, node_annotations, read_nodes, zone_named
from rebalancer.steer.node_view import NodeView, node_view
from rebalancer.steer.own_annotation import LOAD, SIGNALS, NodeLoad, SignalLoad, format_node_load, read_node_loads
from rebalancer.steer.reservations import Reservation, Reservations

HOT_SHARE = 0.1
NODE_BYTES = 12_000
"""Of a Node object as kube-scheduler sends it: fifty images with two names each are most of it."""
RESERVED = 20
ZONES = 3
WORKERS = 16
_SHANGHAI = zone_named("Asia/Shanghai")


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """``nodes`` that are known and ``asked`` of them that are asked about, all unless given; ``judge``: own or dynamic."""

    nodes: int
    judge: str
    asked: int = 0
    seed: int = 7


def node_names(scene: Scene) -> list[str]:
    return sorted(f"ip-10-{number // 256}-{number % 256}.eu-central-1.compute.internal" for number in range(scene.nodes))


def known_nodes(scene: Scene, *, now: float) -> NodeView:
    """A view in which one node in ten is over every mark, of CPU alone, and the others are spread below."""
    chance, names = random.Random(scene.seed), node_names(scene)
    rows = []
    for _ in names:
        cpu = chance.uniform(0.75, 0.95) if chance.random() < HOT_SHARE else chance.uniform(0.05, 0.6)
        memory = chance.uniform(0.1, 0.6)
        loads = dict(zip(SERIES, (cpu, cpu, cpu, memory, memory, memory), strict=True))
        crane = {key: value for key, value in node_annotations(loads, hot=chance.randrange(3), at=now, zone=_SHANGHAI).items() if value}
        signals = {name: SignalLoad(avg_5m=load, deviation=0.05) for name, load in zip(SIGNALS, (cpu, memory), strict=False)}
        rows.append({**crane, LOAD: format_node_load(NodeLoad(now, now + 3600.0, signals))})
    capacity = by_column((len(names), len(SIGNALS)))
    capacity[:, :2] = 64.0, 2.0**38
    return node_view(names, crane=read_nodes(rows, zone=_SHANGHAI), own=read_node_loads(rows), made_at=now, capacity=capacity)


def reserved(scene: Scene, *, now: float) -> Reservations:
    """Moves of other workloads, which are all in question and none of whose replacements this is."""
    names = random.Random(scene.seed).sample(node_names(scene), RESERVED)
    owner = WorkloadRef("Deployment", "elsewhere", "other")
    planned = [Reservation(f"moved-{name}", owner, "", "elsewhere", name, now, {"cpu": 1.0, "memory": 2.0**30}) for name in names]
    return Reservations(lasts_s=3600.0).with_planned(planned, now=now)


def pod() -> dict[str, object]:
    """A replica of a Deployment with two containers, as the API server shows it, without what nobody here reads."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c", "uid": "4f1c", "controller": True}
    requests = {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}}
    variables = [{"name": f"SETTING_{number}", "value": f"value {number}"} for number in range(30)]
    container = {"name": "web", "image": "registry.example/web:1.2.3", "resources": requests, "env": variables}
    metadata = {
        "name": "web-7d4b9c-x2k4l",
        "namespace": "shop",
        "uid": "9b7e",
        "labels": {"app": "web", "pod-template-hash": "7d4b9c"},
        "ownerReferences": [owner],
    }
    return {"metadata": metadata, "spec": {"containers": [container, {**container, "name": "proxy"}]}, "status": {"phase": "Pending"}}


def question(names: Sequence[str], *, whole: bool) -> bytes:
    """As Go writes it: names with nodeCacheCapable, whole objects without."""
    nodes = {"metadata": {}, "items": [_node(name) for name in names]} if whole else None
    return msgspec.json.encode({"Pod": pod(), "Nodes": nodes, "NodeNames": None if whole else names})


def questions(scene: Scene, *, whole: bool, different: int) -> list[bytes]:
    """In another order each time, and about others where not all are asked about."""
    chance, names = random.Random(scene.seed), node_names(scene)
    return [question(as_they_pass(names, chance, most=scene.asked or scene.nodes), whole=whole) for _ in range(different)]


def as_they_pass(names: Sequence[str], chance: random.Random, *, most: int) -> list[str]:
    """In the order in which kube-scheduler lists nodes: zones take turns, the start goes on from pod to pod, and the workers that filter
    take a stretch each, of the square root of all, and list what passes while the others do the same."""
    by_zone = [names[zone::ZONES] for zone in range(ZONES)]
    listed = [name for turn in zip_longest(*by_zone) for name in turn if name is not None]
    start = chance.randrange(len(listed))
    size = max(1, math.isqrt(len(listed)))
    listed = (listed[start:] + listed[:start])[:most]
    found: list[str] = []
    for first in range(0, len(listed), size * WORKERS):
        stretches = [listed[at : at + size] for at in range(first, min(first + size * WORKERS, len(listed)), size)]
        ready = [(chance.random() * 0.5 + place, name) for stretch in stretches for place, name in enumerate(stretch)]
        found.extend(name for _, name in sorted(ready))
    return found


def _node(name: str) -> dict[str, object]:
    image = {"names": [f"registry.example/team/service@sha256:{'0' * 64}", "registry.example/team/service:1.2.3"], "sizeBytes": 123456789}
    images = [image] * (NODE_BYTES // len(msgspec.json.encode(image)))
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "eu-central-1a", "kubernetes.io/os": "linux"}
    amounts = {"cpu": "64", "memory": "263921856Ki", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts, "images": images}
    return {"metadata": {"name": name, "uid": "5d0e", "labels": labels}, "spec": {"providerID": f"aws:///{name}"}, "status": status}
