"""Where requests and usage disagree: by node, by workload, by namespace.

A node's skew is load - packing, in ratios. A workload's or a namespace's skew is usage - request, in the signal's unit, over the pods that
were measured: a pod without a measurement is counted as unmeasured, neither as using nothing nor as using what it asked for. Estimates stay
out of it for the same reason. ``worst`` makes signals of different units comparable: a node's largest absolute skew; for pods, the skew as
a share of what all known nodes together have of the signal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.plan.document import coverage_report, known
from rebalancer.plan.model import API_VERSION, CoverageReport
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import on_a_node
from rebalancer.units import format_time


class NodeSkewSignal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    packing: float | None
    load: float | None
    skew: float | None


class NodeSkew(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    name: str
    pool: str | None
    node_class: str = msgspec.field(name="class")
    quadrant: str | None
    worst: float | None
    signals: dict[str, NodeSkewSignal]


class PodsSkewSignal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """``request`` is of all pods, ``measuredRequest`` of the measured ones; ``skew`` and ``ratio`` compare usage with the latter."""

    unit: str
    request: float | None
    measured_request: float | None
    usage: float | None
    skew: float | None
    ratio: float | None
    measured: int
    unmeasured: int


class PodsSkew(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A workload or a namespace (``kind`` Namespace, ``namespace`` its own name)."""

    kind: str
    namespace: str
    name: str
    pods: int
    worst: float | None
    signals: dict[str, PodsSkewSignal]


class PoolSkewSignal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    mean: float | None
    stddev: float | None


class PoolSkew(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    name: str
    nodes: int
    signals: dict[str, PoolSkewSignal]


class SkewReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Nodes, workloads and namespaces come worst first; those of which nothing is known come last."""

    api_version: str = API_VERSION
    kind: str = "SkewReport"
    cluster: str
    created_at: str
    window_seconds: float
    coverage: CoverageReport
    quadrants: dict[str, int]
    """quadrant -> nodes; ``unknown`` counts the rest."""
    bare_pods: int
    """Pods without a workload; they are in the namespaces only."""
    pools: tuple[PoolSkew, ...]
    nodes: tuple[NodeSkew, ...]
    workloads: tuple[PodsSkew, ...]
    namespaces: tuple[PodsSkew, ...]


@dataclass(frozen=True, slots=True)
class _Sums:
    """Columns (groups,) of one signal."""

    request: FloatArray
    measured_request: FloatArray
    usage: FloatArray
    measured: IntArray
    capacity: float
    unit: str


def skew_report(*, state: ClusterState, findings: Findings) -> SkewReport:
    """The report of a state and what detection said of it."""
    rows = np.flatnonzero(on_a_node(state))
    owned = rows[state.pods.workload[rows] >= 0]
    names, codes = np.unique(np.array([state.pods.namespaces[row] for row in rows], dtype=np.str_), return_inverse=True)
    refs = state.workloads.refs
    quadrants = Counter("unknown" if quadrant is None else quadrant.value for quadrant in findings.quadrant)
    return SkewReport(
        cluster=state.cluster,
        created_at=format_time(state.at),
        window_seconds=state.window_s,
        coverage=coverage_report(state.coverage),
        quadrants=dict(sorted(quadrants.items())),
        bare_pods=len(rows) - len(owned),
        pools=_pools(state, findings),
        nodes=_nodes(state, findings),
        workloads=_groups(state, owned, state.pods.workload[owned], [(ref.kind, ref.namespace, ref.name) for ref in refs]),
        namespaces=_groups(state, rows, np.asarray(codes, dtype=np.int64), [("Namespace", str(name), str(name)) for name in names]),
    )


def _pools(state: ClusterState, findings: Findings) -> tuple[PoolSkew, ...]:
    sizes = np.bincount(findings.pool[findings.pool >= 0], minlength=len(findings.pools))
    return tuple(
        PoolSkew(
            name=pool.name,
            nodes=int(sizes[row]),
            signals={
                signal.name: PoolSkewSignal(mean=known(findings.pool_mean[row, column]), stddev=known(findings.pool_stddev[row, column]))
                for column, signal in enumerate(state.signals)
            },
        )
        for row, pool in enumerate(findings.pools)
    )


def _worst_first(worst: FloatArray, names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=lambda row: (-worst[row] if math.isfinite(worst[row]) else math.inf, names[row]))


def _nodes(state: ClusterState, findings: Findings) -> tuple[NodeSkew, ...]:
    skew = findings.load - findings.packing
    worst = _largest(np.abs(skew))
    return tuple(
        NodeSkew(
            name=state.nodes.names[row],
            pool=findings.pools[findings.pool[row]].name if findings.pool[row] >= 0 else None,
            node_class=NodeClass(int(findings.node_class[row])).word,
            quadrant=None if (quadrant := findings.quadrant[row]) is None else quadrant.value,
            worst=known(worst[row]),
            signals={
                signal.name: NodeSkewSignal(
                    packing=known(findings.packing[row, column]), load=known(findings.load[row, column]), skew=known(skew[row, column])
                )
                for column, signal in enumerate(state.signals)
            },
        )
        for row in _worst_first(worst, state.nodes.names)
    )


def _largest(values: FloatArray) -> FloatArray:
    """(rows,): the largest known value of each row; NaN where none is known."""
    if values.shape[1] == 0:
        return np.full(values.shape[0], np.nan)
    largest = np.max(np.where(np.isnan(values), -np.inf, values), axis=1)
    return np.where(np.isneginf(largest), np.nan, largest)


def _sums(state: ClusterState, rows: IntArray, group: IntArray, groups: int) -> list[_Sums]:
    found = []
    for column, signal in enumerate(state.signals):
        measured = state.pods.measured[rows, column]
        has = ~np.isnan(measured)
        count = np.bincount(group[has], minlength=groups)
        usage = np.where(count > 0, np.bincount(group[has], weights=measured[has], minlength=groups), np.nan)
        request = measured_request = np.full(groups, np.nan)
        if signal.resource is not None and signal.resource in state.resource_index:
            asked = state.pods.request[rows, state.resource_index[signal.resource]]
            request = np.bincount(group, weights=asked, minlength=groups)
            measured_request = np.where(count > 0, np.bincount(group[has], weights=asked[has], minlength=groups), np.nan)
        capacity = state.nodes.capacity[:, column]
        total = float(capacity[~np.isnan(capacity)].sum())
        found.append(_Sums(request, measured_request, usage, count, total, signal.unit))
    return found


def _groups(state: ClusterState, rows: IntArray, group: IntArray, names: Sequence[tuple[str, str, str]]) -> tuple[PodsSkew, ...]:
    """One entry for each group that has pods. ``group`` (rows,): the row of ``names`` that a pod belongs to."""
    if not names:
        return ()
    pods = np.bincount(group, minlength=len(names))
    sums = _sums(state, rows, group, len(names))
    shares = [np.abs(s.usage - s.measured_request) / s.capacity if s.capacity > 0 else np.full(len(names), np.nan) for s in sums]
    worst = _largest(np.stack(shares, axis=1)) if shares else np.full(len(names), np.nan)
    order = _worst_first(worst, [f"{namespace}/{name} {kind}" for kind, namespace, name in names])
    return tuple(
        PodsSkew(
            kind=names[row][0],
            namespace=names[row][1],
            name=names[row][2],
            pods=int(pods[row]),
            worst=known(worst[row]),
            signals={signal.name: _pods_signal(s, row, int(pods[row])) for signal, s in zip(state.signals, sums, strict=True)},
        )
        for row in order
        if pods[row]
    )


def _pods_signal(sums: _Sums, row: int, pods: int) -> PodsSkewSignal:
    usage, asked = float(sums.usage[row]), float(sums.measured_request[row])
    return PodsSkewSignal(
        unit=sums.unit,
        request=known(sums.request[row]),
        measured_request=known(asked),
        usage=known(usage),
        skew=known(usage - asked),
        ratio=known(usage / asked) if asked > 0 else None,
        measured=int(sums.measured[row]),
        unmeasured=pods - int(sums.measured[row]),
    )
