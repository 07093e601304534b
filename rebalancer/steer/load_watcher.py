"""The API of load-watcher, from which the Trimaran plugins of kube-scheduler take the load of nodes: what it answers, as bytes.

    GET /watcher            every node        200, or 500 while there is no data
    GET /watcher?host=n     one node          404 for one that is not known
    GET /watcher/health                       200, or 503 while there is no data

Values are per cent of what the node has to give. The key order is that of load-watcher, and numbers are plain decimals: its client counts
keys as it reads, and has no use for exponents. Clients ask for no window; they take the one that they get and look at its end alone, to add
the pods bound after it. TargetLoadPacking takes the last of a node's means and latest values, so that the mean stands behind the latest.

A number that is unknown is left out, and a node without any is not in the answer: to a plugin it then scores lowest, where a made-up number
would make it look idle. Contract: ``pkg/watcher`` of load-watcher, ``pkg/trimaran`` of scheduler-plugins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_deviation, on_a_node, sum_by_node
from rebalancer.units import format_duration

TYPES: Mapping[str, str] = {"cpu": "CPU", "memory": "Memory"}
"""signal -> what the API calls it."""
FRESH_FOR_S = 300.0
"""Trimaran is promised data of at most five minutes; its client keeps what it got for ever, so that the age is judged here."""
FEWEST_WINDOWS = 3
"""Of which a deviation is told."""
SOURCE = "rebalancer"
_DECIMALS = 4
_MOST = 1000.0
"""A ratio beyond that is no load, whatever made it; nor is one below 0."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class WatchedLoads:
    """What is told of the nodes: ratios, (nodes, types) in the order of `TYPES`; NaN is left out."""

    nodes: tuple[str, ...]
    mean: FloatArray
    deviation: FloatArray
    latest: FloatArray
    window_s: float
    """Over which ``mean`` was taken."""
    at: float
    """When it ended, Unix seconds."""


@dataclass(frozen=True, slots=True)
class WatcherAnswer:
    """``body`` is JSON."""

    status: int
    body: bytes = b""


class _Metric(msgspec.Struct, frozen=True, gc=False):
    name: str
    type: str
    operator: str
    rollup: str
    value: float | int


class _NodeMetrics(msgspec.Struct, frozen=True, gc=False):
    metrics: list[_Metric]
    tags: dict[str, str] = {}
    metadata: dict[str, str] = {}


class _Window(msgspec.Struct, frozen=True, gc=False):
    duration: str
    start: int
    end: int


class _Data(msgspec.Struct, frozen=True):
    nodes: dict[str, _NodeMetrics] = msgspec.field(name="NodeMetricsMap")


class _Watcher(msgspec.Struct, frozen=True):
    timestamp: int
    window: _Window
    source: str
    data: _Data


def watched_loads(state: ClusterState, load: FloatArray) -> WatchedLoads:
    """``load`` (nodes, signals): the load ledger's, NaN unknown.

    The deviation is that of the node's own load over the last confirmation windows, which is what load-watcher tells; where those are too
    few, what the pods' deviations add up to, as far as they are known.
    """
    columns = [state.signal_index.get(name, -1) for name in TYPES]
    of_windows = _of_windows(state.nodes.history)
    deviation = np.where(np.isnan(of_windows), _of_pods(state), of_windows)
    return WatchedLoads(
        nodes=state.nodes.names,
        mean=_picked(load, columns),
        deviation=_picked(deviation, columns),
        latest=np.full((len(state.nodes.names), len(TYPES)), np.nan),
        window_s=state.window_s,
        at=state.at,
    )


def watcher(loads: WatchedLoads | None, *, host: str = "", now: float, why_none: str) -> WatcherAnswer:
    """The answer of ``/watcher``. ``host``: the node that is asked about, or empty; ``why_none``: a sentence for where there is no data."""
    missing = _missing(loads, now=now, why_none=why_none)
    if loads is None or missing:
        return WatcherAnswer(500, _error(missing))
    known = _known(loads)
    if not host:
        return WatcherAnswer(200, _document(loads, np.flatnonzero(known).tolist()))
    rows = [row for row, name in enumerate(loads.nodes) if name == host and known[row]]
    if not rows:
        return WatcherAnswer(404, _error("nothing is known of a node of that name"))
    return WatcherAnswer(200, _document(loads, rows))


def health(loads: WatchedLoads | None, *, now: float, why_none: str) -> WatcherAnswer:
    """The answer of ``/watcher/health``, without a body when all is well."""
    missing = _missing(loads, now=now, why_none=why_none)
    return WatcherAnswer(503, _error(missing)) if missing else WatcherAnswer(200)


def _missing(loads: WatchedLoads | None, *, now: float, why_none: str) -> str:
    if loads is None:
        return why_none
    age = now - loads.at
    if age > FRESH_FOR_S:
        return f"the last reading of the cluster is {age:.0f} s old, at most {FRESH_FOR_S:.0f} s are told"
    return "" if _known(loads).any() else "the load of no node is known"


def _known(loads: WatchedLoads) -> BoolArray:
    """(nodes,) bool: something is known of the load, not only of how it swings."""
    return np.asarray((~np.isnan(_percent(loads.mean)) | ~np.isnan(_percent(loads.latest))).any(axis=1), dtype=np.bool_)


def _percent(ratio: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where((ratio >= 0) & (ratio <= _MOST), ratio * 100, np.nan)


def _document(loads: WatchedLoads, rows: list[int]) -> bytes:
    end, rollup = int(loads.at), format_duration(loads.window_s)
    columns = [
        (signal, kind, operator, _percent(values[:, column]).tolist())
        for column, (signal, kind) in enumerate(TYPES.items())
        for operator, values in (("Latest", loads.latest), ("AVG", loads.mean), ("STD", loads.deviation))
    ]
    nodes = {
        loads.nodes[row]: _NodeMetrics(
            [
                _Metric(signal, kind, operator, rollup, _plain(values[row]))
                for signal, kind, operator, values in columns
                if not math.isnan(values[row])
            ]
        )
        for row in rows
    }
    return _encode(_Watcher(end, _Window(rollup, int(loads.at - loads.window_s), end), SOURCE, _Data(nodes)))


def _plain(value: float) -> float | int:
    """As Go writes it: no exponent, and no fraction where there is none."""
    rounded = round(value, _DECIMALS)
    return int(rounded) if rounded.is_integer() else rounded


def _error(words: str) -> bytes:
    return _encode({"error": words})


def _picked(values: FloatArray, columns: list[int]) -> FloatArray:
    """(nodes, types): NaN for a signal that is not measured."""
    unknown = np.full((len(values), 1), np.nan)
    return np.ascontiguousarray(np.append(values, unknown, axis=1)[:, columns])


def _of_windows(history: FloatArray) -> FloatArray:
    """(nodes, signals): standard deviation of the load over its known windows; NaN where they are too few."""
    known = np.isfinite(history)
    count = known.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, history, 0.0).sum(axis=2) / count
        variance = np.where(known, (history - mean[:, :, None]) ** 2, 0.0).sum(axis=2) / count
    return np.where(count >= FEWEST_WINDOWS, np.sqrt(variance), np.nan)


def _of_pods(state: ClusterState) -> FloatArray:
    """(nodes, signals): share of the capacity; NaN where the deviation of no pod is known."""
    known = sum_by_node(state, np.where(np.isnan(state.pods.deviation), np.nan, 1.0), on_a_node(state)) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = node_deviation(state) / state.nodes.capacity
    return np.where(known & np.isfinite(share), share, np.nan)
