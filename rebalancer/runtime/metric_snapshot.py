"""Gauges of the last observation: nodes, pools, tenants, coverage.

They are built whole from the columns of a cycle and replaced whole by the next one, so a node that is gone leaves nothing behind, and
thousands of nodes cost no lock each. A number that is unknown has no sample: a gap is honest, zero would be a lie.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.detect.tenants.accounts import Accounts
from rebalancer.plan.gpu_report import GpuReport
from rebalancer.plan.grades import GRADES, carried
from rebalancer.runtime.gpu_gauges import GPU_GAUGES, gpu_families
from rebalancer.runtime.tenant_gauges import TENANT_GAUGES, tenant_families
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState, Coverage
from rebalancer.state.devices import FaultReason
from rebalancer.state.tables import Phase

PREFIX = "rebalancer_"
GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "node_load_ratio": ("Usage of a node over its capacity, by the load ledger; absent while unknown.", ("node", "signal")),
    "node_packing_ratio": ("Requests of a node's pods over its allocatable.", ("node", "signal")),
    "node_sample_age_seconds": ("Age of the newest raw sample behind a node's usage.", ("node", "signal")),
    "node_class": ("1 for the class that a node is in.", ("node", "class")),
    "soft_taints": ("Nodes that carry the soft taint of that grade, whoever put it there.", ("grade",)),
    "nodes": ("Nodes of a pool by class.", ("pool", "class")),
    "pool_load_mean_ratio": ("Mean load of a pool's known nodes.", ("pool", "signal")),
    "pool_load_stddev_ratio": ("Standard deviation of the load of a pool's known nodes.", ("pool", "signal")),
    "pool_threshold_ratio": ("Marks that a pool is judged by, deviations resolved.", ("pool", "signal", "mark")),
    "tenant_requested": ("What a tenant's pods ask for, in base units.", ("tenant", "resource")),
    "tenant_used": ("What a tenant's pods use, of those whose usage is known.", ("tenant", "resource")),
    "tenant_used_coverage_ratio": ("Share of a tenant's pods whose usage is known.", ("tenant", "resource")),
    "metric_coverage_ratio": ("Share of nodes and pods whose usage is known.", ("subject", "signal")),
    "metric_oldest_sample_seconds": ("Age of the oldest sample that is still used.", ("signal",)),
    "gpu_faults": ("What is said of GPUs and cannot be read or does not go together.", ("reason",)),
    **GPU_GAUGES,
    **TENANT_GAUGES,
}
"""name without the prefix -> (documentation, labels): the closed list, so that the documentation needs no cluster."""
_MARKS = ("low", "target", "high")


class SnapshotCollector(Collector):
    """Hands out the families that were built last. Swapping a tuple is atomic: a scrape sees one cycle, never half of two."""

    def __init__(self) -> None:
        self._families: tuple[GaugeMetricFamily, ...] = ()

    def replace(self, families: Iterable[GaugeMetricFamily]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing, so that registering does not ask for values that are not there yet."""
        return iter(())


def families_of(
    state: ClusterState, findings: Findings, gpus: GpuReport | None = None, accounts: Accounts | None = None
) -> Iterator[GaugeMetricFamily]:
    """Everything that one observation says about the cluster."""
    yield from _node_families(state, findings)
    yield from _pool_families(state, findings)
    yield from _tenant_families(state) if accounts is None else _account_families(accounts)
    yield from _coverage_families(state.coverage)
    yield _gpu_faults(state)
    yield from gpu_families(state, gpus, _gauge)
    yield from tenant_families(accounts, gpus, _gauge)


def _gauge(name: str) -> GaugeMetricFamily:
    words, labels = GAUGES[name]
    return GaugeMetricFamily(PREFIX + name, words, labels=labels)


def _add(family: GaugeMetricFamily, labels: Sequence[str], value: float) -> None:
    if math.isfinite(value):
        family.add_metric(labels, float(value))


def _matrix(family: GaugeMetricFamily, rows: Sequence[str], columns: Sequence[str], values: FloatArray) -> GaugeMetricFamily:
    """One sample for each known cell of ``values``, (rows, columns)."""
    for row, column in np.argwhere(np.isfinite(values)).tolist():
        family.add_metric((rows[row], columns[column]), float(values[row, column]))
    return family


def _node_families(state: ClusterState, findings: Findings) -> Iterator[GaugeMetricFamily]:
    nodes, signals = state.nodes.names, [signal.name for signal in state.signals]
    load = _gauge("node_load_ratio")
    packing = _gauge("node_packing_ratio")
    age = _gauge("node_sample_age_seconds")
    yield _matrix(load, nodes, signals, findings.load)
    yield _matrix(packing, nodes, signals, findings.packing)
    yield _matrix(age, nodes, signals, state.nodes.sample_age_s)
    classes = _gauge("node_class")
    for name, kind in zip(nodes, findings.node_class.tolist(), strict=True):
        classes.add_metric((name, NodeClass(kind).word), 1.0)
    yield classes
    grades = _gauge("soft_taints")
    for grade, count in zip(GRADES, carried(state.nodes.taints).sum(axis=0).tolist(), strict=True):
        grades.add_metric((grade,), float(count))
    yield grades


def _pool_families(state: ClusterState, findings: Findings) -> Iterator[GaugeMetricFamily]:
    pools, signals = [pool.name for pool in findings.pools], [signal.name for signal in state.signals]
    counts = _gauge("nodes")
    for row, pool in enumerate((*pools, "none")):
        inside = findings.pool == (row if row < len(pools) else -1)
        for kind in NodeClass:
            counts.add_metric((pool, kind.word), float((inside & (findings.node_class == int(kind))).sum()))
    yield counts
    yield _matrix(_gauge("pool_load_mean_ratio"), pools, signals, findings.pool_mean)
    spread = _gauge("pool_load_stddev_ratio")
    yield _matrix(spread, pools, signals, findings.pool_stddev)
    marks = _gauge("pool_threshold_ratio")
    for mark, values in zip(_MARKS, (findings.low, findings.target, findings.high), strict=True):
        for row, pool in enumerate(pools):
            members = np.flatnonzero(findings.pool == row)
            for column, signal in enumerate(signals) if members.size else ():
                _add(marks, (pool, signal, mark), float(values[members[0], column]))  # the same for every node of a pool
    yield marks


def _account_families(accounts: Accounts) -> Iterator[GaugeMetricFamily]:
    """Of every tenant of the file, those above others too, in the resources that the file and the cluster know."""
    tenants, resources = accounts.tree.names, accounts.resources
    yield _matrix(_gauge("tenant_requested"), tenants, resources, accounts.requested)
    yield _matrix(_gauge("tenant_used"), tenants, resources, accounts.used)
    yield _matrix(_gauge("tenant_used_coverage_ratio"), tenants, resources, accounts.measured)


def _tenant_families(state: ClusterState) -> Iterator[GaugeMetricFamily]:
    """Sums over the pods of each tenant that hold resources: bound to a node and not finished."""
    pods, tenants = state.pods, state.tenants
    living = (pods.tenant >= 0) & (pods.node >= 0) & (pods.phase != int(Phase.SUCCEEDED)) & (pods.phase != int(Phase.FAILED))
    rows, owner = np.flatnonzero(living), pods.tenant[living]
    signals = [signal.name for signal in state.signals]
    requested = _gauge("tenant_requested")
    yield _matrix(requested, tenants, state.resources, _sums(pods.request[rows], owner, len(tenants)))
    usage = pods.usage[rows]
    known = np.isfinite(usage)
    used = _gauge("tenant_used")
    total = _sums(np.where(known, usage, 0.0), owner, len(tenants))
    measured, of = _sums(known.astype(np.float64), owner, len(tenants)), np.bincount(owner, minlength=len(tenants)).astype(np.float64)
    yield _matrix(used, tenants, signals, np.where(measured > 0, total, np.nan))
    share = _gauge("tenant_used_coverage_ratio")
    pods_of = of[:, None]
    yield _matrix(share, tenants, signals, np.divide(measured, pods_of, out=np.full(measured.shape, np.nan), where=pods_of > 0))


def _sums(values: FloatArray, owner: IntArray, owners: int) -> FloatArray:
    sums = np.zeros((owners, values.shape[1]))
    np.add.at(sums, owner, values)
    return sums


def _gpu_faults(state: ClusterState) -> GaugeMetricFamily:
    faults = _gauge("gpu_faults")
    counts = Counter(fault.reason for fault in state.gpus.faults)
    for reason in FaultReason:
        faults.add_metric((reason.value,), float(counts[reason]))
    return faults


def _coverage_families(coverage: Coverage) -> Iterator[GaugeMetricFamily]:
    ratio = _gauge("metric_coverage_ratio")
    for subject, shares in (("nodes", coverage.nodes), ("pods", coverage.pods)):
        for signal, share in shares.items():
            ratio.add_metric((subject, signal), share.ratio)
    yield ratio
    oldest = _gauge("metric_oldest_sample_seconds")
    for signal, age in coverage.oldest_sample_s.items():
        _add(oldest, (signal,), age)
    yield oldest
