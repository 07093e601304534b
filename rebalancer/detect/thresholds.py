"""The marks of every node as ratios: absolute ones as they are written, deviations resolved against the pool's mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.policy.model import Pool
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Marks:
    """(nodes, signals) each; NaN (weight 0) where the node's pool does not judge the signal, or its mean is unknown."""

    judged: BoolArray
    low: FloatArray
    target: FloatArray
    high: FloatArray
    weight: FloatArray


@dataclass(frozen=True, slots=True)
class PoolSpread:
    """(pools, signals) each, over the nodes whose load is known; NaN when there is none."""

    mean: FloatArray
    stddev: FloatArray


def pool_spread(load: FloatArray, pool: IntArray, pools: int) -> PoolSpread:
    """Unweighted mean and population standard deviation of the known loads of each pool."""
    mean = np.full((pools, load.shape[1]), np.nan)
    stddev = np.full((pools, load.shape[1]), np.nan)
    for row in range(pools):
        here = load[pool == row]
        for column in range(load.shape[1]):
            known = here[~np.isnan(here[:, column]), column]
            if known.size:
                mean[row, column] = known.mean()
                stddev[row, column] = known.std()
    return PoolSpread(mean, stddev)


def resolve_marks(state: ClusterState, pools: tuple[Pool, ...], pool: IntArray, spread: PoolSpread) -> Marks:
    """Deviation marks are percentage points around the mean of the pool's known loads, kept within 0 and 1."""
    shape = (len(state.nodes.names), len(state.signals))
    judged = np.zeros(shape, dtype=np.bool_)
    low, target, high = (np.full(shape, np.nan) for _ in range(3))
    weight = np.zeros(shape)
    for row, rules in enumerate(pools):
        everyone = np.flatnonzero(pool == row)
        for name, threshold in rules.signals.items():
            column = state.signal_index[name]
            members = within_scope(state, everyone, column)
            judged[members, column] = True
            weight[members, column] = threshold.weight
            marks = np.array([threshold.low, threshold.target, threshold.high]) / 100
            if rules.thresholds == "deviation":
                mean = spread.mean[row, column]
                marks = np.clip([mean - marks[0], mean + marks[1], mean + marks[2]], 0.0, 1.0)
            low[members, column], target[members, column], high[members, column] = marks
    return Marks(judged=judged, low=low, target=target, high=high, weight=weight)


def within_scope(state: ClusterState, nodes: IntArray, column: int) -> IntArray:
    """Those of the rows of ``nodes`` that have anything to do with the signal."""
    return nodes[~np.isnan(state.nodes.capacity[nodes, column])] if state.signals[column].scoped else nodes
