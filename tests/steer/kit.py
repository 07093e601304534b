"""Views of a few nodes, and the questions of kube-scheduler, in short words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rebalancer.steer.load_annotations import SERIES, node_annotations, read_nodes, zone_named
from rebalancer.steer.node_view import NodeView, node_view
from rebalancer.steer.own_annotation import LOAD, NodeLoad, SignalLoad, format_node_load, read_node_loads

NOW = 1_767_323_045.0
"""2026-01-02T03:04:05Z."""
SHANGHAI = zone_named("Asia/Shanghai")
REAL_NODE = (0.08320, 0.94400, 0.94400, 0.69384, 0.67092, 0.67092)


def crane(*loads: float, hot: int | None = None, at: float = NOW) -> dict[str, str]:
    """Annotations of a node: cpu 5m, 1h, 1d; memory 5m, 1h, 1d."""
    written = node_annotations(dict(zip(SERIES, loads, strict=True)), hot=hot, at=at, zone=SHANGHAI)
    return {key: value for key, value in written.items() if value is not None}


def own(*, expires_at: float = NOW + 480, deviation: float = float("nan"), **loads: float) -> dict[str, str]:
    signals = {name: SignalLoad(avg_5m=load, deviation=deviation) for name, load in loads.items()}
    return {LOAD: format_node_load(NodeLoad(NOW, expires_at, signals))}


def view(nodes: Mapping[str, Mapping[str, str]]) -> NodeView:
    rows = list(nodes.values())
    return node_view(list(nodes), crane=read_nodes(rows, zone=SHANGHAI), own=read_node_loads(rows), made_at=NOW)


def question(names: Sequence[str], *, pod: Mapping[str, object] | None = None, whole: bool = False) -> bytes:
    """As Go writes it: names with nodeCacheCapable, whole objects without."""
    nodes = {"metadata": {}, "items": [{"metadata": {"name": name, "labels": {"kept": "as is"}}} for name in names]} if whole else None
    body = {"Pod": pod or {"metadata": {"name": "p"}}, "Nodes": nodes, "NodeNames": None if whole else list(names)}
    return json.dumps(body).encode()
