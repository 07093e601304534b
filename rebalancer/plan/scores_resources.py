"""The two scores that look at requests: NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation, both of weight 1.

Integer arithmetic as in the scheduler: every division rounds down, amounts are millicores and bytes. The incoming pod is scored with its
`scored_request`; the scheduler leaves pod-level requests out of LeastAllocated, so pods that set those differ a little.
"""

from __future__ import annotations

import numpy as np

from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import FloatArray, IntArray

_SCORED = ("cpu", "memory")


def least_allocated(replacement: Replacement, rows: IntArray) -> IntArray:
    """(rows,) 0..100: the mean free share of cpu and memory after the pod came, with defaults for what requests nothing."""
    placements = replacement.placements
    allocatable = _allocatable(replacement, rows)
    used = placements.scored_units[rows] + placements.scored_incoming_units(replacement.pod)
    counted = allocatable > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(counted & (used <= allocatable), (allocatable - used) * 100.0 // allocatable, 0.0)
    number = counted.sum(axis=1)
    return np.where(number > 0, share.sum(axis=1).astype(np.int64) // np.maximum(number, 1), 0)


def balanced_allocation(replacement: Replacement, rows: IntArray) -> IntArray:
    """(rows,) 50..100: 75 when the pod leaves the balance of cpu and memory as it is, above when it improves it.

    0 for all when the pod requests neither. The formula of 1.36, in doubles in the scheduler's order, because its truncation shows.
    """
    placements = replacement.placements
    columns = _columns(replacement)
    asked = placements.incoming_units(replacement.pod)[columns]
    if not (asked > 0).any():
        return np.zeros(len(rows), dtype=np.int64)
    allocatable = _allocatable(replacement, rows)
    requested = placements.requested_units[np.ix_(rows, columns)]
    return 50 + (50 + _balance(requested + asked, allocatable) - _balance(requested, allocatable)) // 2


def _balance(load: FloatArray, allocatable: FloatArray) -> IntArray:
    """(rows,) 0..100: 100 when every resource that the node has is used by the same share."""
    counted = allocatable > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(counted, np.minimum(1.0, load / allocatable), 0.0)
    both = counted.all(axis=1)
    deviation = np.where(both, np.abs((share[:, 0] - share[:, 1]) / 2), 0.0)
    return ((1 - deviation) * 100).astype(np.int64)


def _columns(replacement: Replacement) -> IntArray:
    return np.array([replacement.state.resource_index[name] for name in _SCORED], dtype=np.int64)


def _allocatable(replacement: Replacement, rows: IntArray) -> FloatArray:
    allocatable: FloatArray = replacement.placements.allocatable_units[np.ix_(rows, _columns(replacement))]
    return allocatable
