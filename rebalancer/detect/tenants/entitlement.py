"""What each tenant may have now, by water-filling down the tree.

Of each resource, level by level, what a tenant is entitled to is divided among those below it:

1. guarantees first, as far as they are asked for; guarantees that do not fit together shrink alike; 2. floors that are not asked for are
kept back: nobody borrows them; 3. the rest goes to those who ask for more and may borrow, highest priority first, and within a priority by
weight, until each has what it asks for or reaches its limit: the level of the water is ``min(headroom, lambda * weight)`` with one lambda
for all.

This is the rule of KAI (deserved, then surplus by priority and weight) and, without priorities, of weighted fair sharing in a cohort of
Kueue; both are described with their sources in docs/tenants.md. Between tenants, who comes first is said by the dominant share (Ghodsi et
al., DRF, NSDI 2011): the largest share of any resource that a tenant holds, over its weight.

Entitlements never exceed demand: what nobody asks for belongs to nobody. Demand that is not known (NaN) is an entitlement that is not
known, and so is what depends on it. All amounts are float64 in base units; results do not depend on the order of tenants.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

NO_PARENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantTree:
    """Each tenant stands above those below it. Matrices are (tenants, resources)."""

    names: tuple[str, ...]
    parent: IntArray
    """(tenants,): row; -1 for the first level."""
    weight: FloatArray
    priority: IntArray
    borrow: BoolArray
    guaranteed: FloatArray
    """0 where nothing is guaranteed; NaN: a share of a capacity that is not known."""
    limit: FloatArray
    """Infinity where there is none."""
    floor: FloatArray

    @property
    def leaf(self) -> BoolArray:
        """(tenants,)"""
        mask = np.ones(len(self.names), dtype=np.bool_)
        mask[self.parent[self.parent >= 0]] = False
        return mask


def entitlements(tree: TenantTree, *, demand: FloatArray, capacity: FloatArray) -> FloatArray:
    """(tenants, resources). ``demand`` (tenants, resources): of leaves, running and pending; what branches say is not read. ``capacity``
    (resources,)."""
    total = demand_of_all(tree, demand)
    asked = np.minimum(total, tree.limit)
    entitled = np.full(total.shape, np.nan)
    groups = _children(tree.parent)
    for parent, rows in groups:
        given = capacity if parent == NO_PARENT else entitled[parent]
        for column in range(total.shape[1]):
            entitled[rows, column] = _divide(tree, rows, column, asked=asked[rows, column], amount=float(given[column]))
    return entitled


def demand_of_all(tree: TenantTree, demand: FloatArray) -> FloatArray:
    """The demand of leaves, and of each tenant above them the sum of what those below may ask for by their limits."""
    total = np.where(tree.leaf[:, None], demand, 0.0)
    for row in range(len(tree.names) - 1, -1, -1):
        if tree.parent[row] >= 0:
            total[tree.parent[row]] += np.minimum(total[row], tree.limit[row])
    return total


def _children(parent: IntArray) -> list[tuple[int, IntArray]]:
    """Parents, each above those below it, with the rows below each."""
    return [(int(row), np.flatnonzero(parent == row)) for row in np.unique(parent)]


def _divide(tree: TenantTree, rows: IntArray, column: int, *, asked: FloatArray, amount: float) -> FloatArray:
    """(rows,) of ``amount`` of one resource. Unknown wherever anything that matters is."""
    guaranteed, floor = tree.guaranteed[rows, column], tree.floor[rows, column]
    if np.isnan(amount) or np.isnan(asked).any() or np.isnan(guaranteed).any() or np.isnan(floor).any():
        return np.full(len(rows), np.nan)
    base = np.minimum(asked, guaranteed)
    if ordered_sum(base) > amount:
        return water_fill(amount, headroom=base, weight=np.where(guaranteed > 0, guaranteed, 1.0))
    kept = np.maximum(0.0, floor - base)
    left = max(0.0, amount - ordered_sum(base) - ordered_sum(kept))
    found = base.copy()
    wants = np.where(tree.borrow[rows], asked - base, 0.0)
    for priority in sorted(set(tree.priority[rows].tolist()), reverse=True):
        own = tree.priority[rows] == priority
        more = water_fill(left, headroom=np.where(own, wants, 0.0), weight=tree.weight[rows])
        found += more
        left = max(0.0, left - ordered_sum(more))
    return np.asarray(found, dtype=np.float64)


def water_fill(amount: float, *, headroom: FloatArray, weight: FloatArray) -> FloatArray:
    """(tenants,) ``min(headroom, lambda * weight)`` that adds up to ``amount``, or all of the headroom where that is less.

    Ties and the order of tenants change nothing: sums run over sorted values.
    """
    headroom = np.maximum(headroom, 0.0)
    if ordered_sum(headroom) <= amount:
        return np.asarray(headroom, dtype=np.float64)
    level = headroom / weight
    order = np.lexsort((weight, headroom, level))
    sorted_level, sorted_weight = level[order], weight[order]
    full = np.concatenate(([0.0], np.cumsum(headroom[order])))
    open_weight = np.concatenate((np.cumsum(sorted_weight[::-1])[::-1], [0.0]))
    # With the first k full, lambda is what is left over the weights of the others; the right k is the first whose level it does not exceed.
    with np.errstate(divide="ignore", invalid="ignore"):
        water = (amount - full[:-1]) / open_weight[:-1]
    k = int(np.argmax(water <= sorted_level))
    return np.asarray(np.minimum(headroom, max(0.0, float(water[k])) * weight), dtype=np.float64)


def ordered_sum(values: FloatArray) -> float:
    """The same whatever order the values come in."""
    return float(np.sort(values).sum())


def dominant_shares(held: FloatArray, *, capacity: FloatArray, weight: FloatArray) -> FloatArray:
    """(tenants,) the largest share of any resource, over the weight. ``held`` (tenants, resources); resources of no capacity do not
    count. NaN where of any other it is not known what is held or what there is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(capacity == 0, 0.0, held / capacity)
    return np.asarray(share.max(axis=1, initial=0.0) / weight, dtype=np.float64)
