"""Hot, cold, normal or unknown: the class of every node, with the numbers that made it so.

Hot is over ``high`` on any judged signal, now by the load ledger and in at least k of the last n windows as Prometheus kept them. Where the
policy keeps room for swings (``risk``), what is compared is the load plus so many standard deviations of it. Cold is
under ``low`` on all. A node with an unknown load on a signal that its pool is judged by is unknown, and nothing is decided about it.
"""

from __future__ import annotations

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass, Quadrant
from rebalancer.detect.pools import assign_pools
from rebalancer.detect.sentences import leading_signal, reasons
from rebalancer.detect.thresholds import Marks, pool_spread, resolve_marks
from rebalancer.detect.yesterday import foresee
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_deviation, node_load, node_packing

QUADRANTS = np.array(
    [
        [Quadrant.LOW_PACKING_LOW_LOAD, Quadrant.LOW_PACKING_HIGH_LOAD],
        [Quadrant.HIGH_PACKING_LOW_LOAD, Quadrant.HIGH_PACKING_HIGH_LOAD],
    ],
    dtype=object,
)
"""By (packing, load), 1 for each that is over its mark."""


def detect(state: ClusterState, spec: Spec) -> Findings:
    """Classify every node. Raises PolicyError when two pools claim one node."""
    pool = assign_pools(state, spec.pools)
    load = node_load(state)
    load[~state.nodes.ready] = np.nan  # a node that does not report is not known, whatever its last numbers were
    packing = node_packing(state)
    spread = pool_spread(load, pool, len(spec.pools))
    marks = resolve_marks(state, spec.pools, pool, spread)
    margin = _margin(state, spec.risk.deviations)
    reach = load + margin
    over = _windows_over(state.nodes.history, marks.high - margin)
    windows = state.nodes.history.shape[2]
    with np.errstate(invalid="ignore"):
        confirmed = marks.judged & (reach > marks.high) & (over >= spec.confirm.at_least)
    node_class = _classify(load, marks, confirmed, pool)
    foreseen = foresee(state, spec, load=load, marks=marks, confirmed=confirmed & (node_class == int(NodeClass.HOT))[:, None])
    return Findings(
        pools=spec.pools,
        pool=pool,
        load=load,
        reach=reach,
        packing=packing,
        judged=marks.judged,
        low=marks.low,
        target=marks.target,
        high=marks.high,
        weight=marks.weight,
        over=over,
        windows=windows,
        node_class=node_class,
        confirmed=confirmed,
        quadrant=_quadrants(load, packing, marks),
        reasons=reasons(
            state,
            spec,
            pool=pool,
            load=load,
            reach=reach,
            marks=marks,
            over=over,
            node_class=node_class,
            confirmed=confirmed,
            passing=foreseen.passing,
        ),
        pool_mean=spread.mean,
        deviations=spec.risk.deviations,
        pool_stddev=spread.stddev,
        foreseen=foreseen,
        notes=state.coverage.notes,
    )


def _margin(state: ClusterState, deviations: float) -> FloatArray:
    """(nodes, signals) the room kept for swings, as a ratio."""
    if deviations == 0:
        return np.zeros(state.nodes.capacity.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = deviations * node_deviation(state) / state.nodes.capacity
    return np.where(np.isfinite(margin), margin, 0.0)


def _windows_over(history: FloatArray, high: FloatArray) -> IntArray:
    """(nodes, signals): windows over ``high``; an unknown window is not over."""
    with np.errstate(invalid="ignore"):
        return np.asarray((history > high[:, :, None]).sum(axis=2), dtype=np.int64)


def _classify(load: FloatArray, marks: Marks, confirmed: BoolArray, pool: IntArray) -> IntArray:
    node_class = np.full(load.shape[0], int(NodeClass.NORMAL), dtype=np.int64)
    with np.errstate(invalid="ignore"):
        cold = np.where(marks.judged, load < marks.low, True).all(axis=1)
    unknown = (marks.judged & (np.isnan(load) | np.isnan(marks.high))).any(axis=1) | (pool < 0) | ~marks.judged.any(axis=1)
    node_class[cold] = int(NodeClass.COLD)
    node_class[confirmed.any(axis=1)] = int(NodeClass.HOT)
    node_class[unknown] = int(NodeClass.UNKNOWN)
    return node_class


def _quadrants(load: FloatArray, packing: FloatArray, marks: Marks) -> tuple[Quadrant | None, ...]:
    """By the leading signal, packing and load each against its ``target``: under it, the scheduler still sees room."""
    rows, column = np.arange(load.shape[0]), leading_signal(load, marks)
    target, packed = marks.target[rows, column], packing[rows, column]
    with np.errstate(invalid="ignore"):
        found = QUADRANTS[(packed > target).astype(np.int64), (load[rows, column] > target).astype(np.int64)]
    found[(column < 0) | np.isnan(packed)] = None
    return tuple(found.tolist())
