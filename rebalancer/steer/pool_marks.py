"""The marks that our own judge judges nodes by: those of the pool that each node is in, from the policy that the controller acts by.

What the controller would drain, the extender must not fill. So the marks are the same, and so is the room for swings (``risk.deviations``).
Where the controller refuses a policy under which two pools claim one node, the first of them counts here: nobody waits for a pod because of
it. A node that no pool claims has no marks, and is neither sought nor avoided.

The policy's marks are shares of allocatable, as load is for the controller; annotations are shares of the whole machine. So each mark is
scaled by what the node may allocate of its machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rebalancer.detect.pools import selector_of
from rebalancer.detect.thresholds import pool_spread
from rebalancer.policy.model import Pool, Spec
from rebalancer.state.arrays import FloatArray, IntArray, by_column
from rebalancer.state.matching import matches
from rebalancer.steer.own_annotation import SIGNALS
from rebalancer.steer.own_score import Marks

NO_POOL = -1
_IF_KNOWN = frozenset(("gpu", "gpu_memory"))
"""Signals that judge nobody until the annotation of some node speaks of them."""


class PoolFinder:
    """Which pool a node is in, by its labels."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        selectors = [selector_of(pool.node_selector) for pool in pools]
        self._selecting = [(row, selector) for row, selector in enumerate(selectors) if selector.requirements]
        self._fallback = next((row for row, selector in enumerate(selectors) if not selector.requirements), NO_POOL)

    def row(self, labels: Mapping[str, str]) -> int:
        """Row of the pool; `NO_POOL` when none claims the node."""
        return next((row for row, selector in self._selecting if matches(selector, labels.get)), self._fallback)


def pool_marks(spec: Spec, *, pool: IntArray, load: FloatArray, allocatable: FloatArray | None = None) -> Marks:
    """Marks row by row of the nodes, as shares of the machine.

    ``pool`` (nodes,): from `PoolFinder`; ``load`` (nodes, `SIGNALS`): shares of the machine that are known and fresh, NaN unknown, for the
    means that deviations are measured from. ``allocatable`` (nodes, `SIGNALS`): the share of the machine that pods may have; 1 where
    unknown.
    """
    target, high = by_column(load.shape), by_column(load.shape)
    whole = np.ones(load.shape) if allocatable is None else np.where(allocatable > 0, allocatable, 1.0)
    spread = pool_spread(load / whole, pool, len(spec.pools))
    for row, rules in enumerate(spec.pools):
        members = np.flatnonzero(pool == row)
        for name, threshold in rules.signals.items():
            if name not in SIGNALS:
                continue
            column = SIGNALS.index(name)
            if name in _IF_KNOWN and not np.isfinite(load[:, column]).any():
                continue
            marks = np.array([threshold.target, threshold.high]) / 100
            if rules.thresholds == "deviation":
                marks = np.clip(spread.mean[row, column] + marks, 0.0, 1.0)
            target[members, column] = marks[0] * whole[members, column]
            high[members, column] = marks[1] * whole[members, column]
    return Marks(target=target, high=high, deviations=spec.risk.deviations)
