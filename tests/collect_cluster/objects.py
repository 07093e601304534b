"""API objects as the server writes them, in a few words each, and the state that is assembled from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TypeVar

import msgspec
import numpy as np

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import ClusterObjects
from rebalancer.collect.samples import Samples, SignalSamples
from rebalancer.kube.wire import NodeWire
from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Signal
from rebalancer.units import format_time

NOW = 1_750_000_000.0
DAY = 86400.0
WINDOW = 300.0
WINDOWS = 3
CPU = Signal("cpu", "cores", "cpu")
MEMORY = Signal("memory", "bytes", "memory")

Json = dict[str, object]
T = TypeVar("T", bound=msgspec.Struct)


def decoded(kind: type[T], *objects: Json) -> list[T]:
    return [msgspec.json.decode(json.dumps(each).encode(), type=kind) for each in objects]


def meta(name: str, *, namespace: str | None = "default", age_s: float = DAY, owner: Json | None = None, **fields: object) -> Json:
    found: Json = {"name": name, "uid": f"uid-{name}", "creationTimestamp": format_time(NOW - age_s), **fields}
    if namespace is not None:
        found["namespace"] = namespace
    if owner is not None:
        found["ownerReferences"] = [owner]
    return found


def owner(kind: str, name: str, *, api_version: str = "apps/v1", controller: bool = True) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": controller}


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    ready: str = "True",
    extended: Mapping[str, str] | None = None,
    addresses: Sequence[tuple[str, str]] = (),
    **metadata: object,
) -> Json:
    return {
        "metadata": meta(name, namespace=None, **metadata),
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi", **(extended or {})},
            "capacity": {"cpu": "10", "memory": "40Gi"},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
            "addresses": [{"type": kind, "address": address} for kind, address in addresses],
        },
    }


def container(name: str = "main", *, cpu: str | None = "1", memory: str | None = "1Gi", **more: object) -> Json:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    return {"name": name, "image": "example.com/image:1", "resources": {"requests": requests}, **more}


def pod(
    name: str,
    *,
    on: str | None = None,
    namespace: str = "default",
    age_s: float = DAY,
    phase: str | None = None,
    ready: bool = True,
    containers: Sequence[Json] | None = None,
    spec: Mapping[str, object] | None = None,
    status: Mapping[str, object] | None = None,
    owner: Json | None = None,
    **metadata: object,
) -> Json:
    """Running and Ready when it is on a node, else Pending; it started when it was created."""
    bound = {"nodeName": on} if on is not None else {}
    started = {"startTime": format_time(NOW - age_s)} if on is not None else {}
    return {
        "metadata": {**meta(name, namespace=namespace, age_s=age_s, owner=owner, **metadata), "uid": f"uid-{namespace}-{name}"},
        "spec": {"containers": list(containers) if containers is not None else [container()], **bound, **(spec or {})},
        "status": {
            "phase": phase or ("Running" if on is not None else "Pending"),
            "qosClass": "Burstable",
            "conditions": [{"type": "Ready", "status": "True" if ready and on is not None else "False"}],
            **started,
            **(status or {}),
        },
    }


def samples(
    *,
    nodes: Mapping[str, Mapping[str, float | Sequence[float]]] | None = None,
    pods: Mapping[str, Mapping[tuple[str, str, str], float]] | None = None,
    unknown: Mapping[str, Mapping[str, str]] | None = None,
    capacity: Mapping[str, Mapping[str, float]] | None = None,
    signals: Sequence[Signal] = (CPU, MEMORY),
    age_s: float = 30.0,
    failed: Mapping[str, str] | None = None,
) -> Samples:
    """``nodes``: signal -> node -> usage, flat over the windows or given window by window; ``pods``: signal -> (namespace, pod, node)."""
    found = []
    for signal in signals:
        usage = {
            name: np.broadcast_to(np.asarray(value, dtype=np.float64), (WINDOWS,)).copy()
            for name, value in (nodes or {}).get(signal.name, {}).items()
        }
        found.append(
            SignalSamples(
                signal=signal,
                node_usage=usage,
                node_age_s=dict.fromkeys(usage, age_s),
                node_unknown=(unknown or {}).get(signal.name, {}),
                pod_usage=(pods or {}).get(signal.name, {}),
                capacity=(capacity or {}).get(signal.name),
                failed=(failed or {}).get(signal.name, ""),
            )
        )
    return Samples(signals=tuple(found), window_s=WINDOW, step_s=60.0, windows=WINDOWS)


def state_of(
    *, nodes: Sequence[Json], pods: Sequence[Json] = (), measured: Samples | None = None, late_s: float = 180.0, **lists: object
) -> ClusterState:
    """Assemble nodes, pods and, by the field of `ClusterObjects`, whatever else there is."""
    objects = ClusterObjects(cluster="uid-kube-system", nodes=decoded(NodeWire, *nodes), pods=decoded(PodWire, *pods), **lists)  # type: ignore[arg-type]
    return assemble(objects, measured or samples(), at=NOW, late_s=late_s)


def row_of(state: ClusterState, pod_name: str, namespace: str = "default") -> int:
    return state.pod_index[f"uid-{namespace}-{pod_name}"]


def same_state(one: ClusterState, other: ClusterState) -> None:
    """Every column and every shared value of two states is equal."""
    for table in ("nodes", "pods", "workloads"):
        for column in fields(getattr(one, table)):
            a, b = (getattr(getattr(each, table), column.name) for each in (one, other))
            assert np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else np.array_equal(a, b), (
                column.name
            )
    for name in ("label_sets", "constraints", "controllers", "resources", "coverage"):
        assert repr(getattr(one, name)) == repr(getattr(other, name)), name
