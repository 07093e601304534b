"""The two scores that look at requests: NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation, both of weight 1.

Resource by resource over all nodes, because sums over an axis of two are ten times as slow.

Integer arithmetic as in the scheduler: every division rounds down, amounts are millicores and bytes. The incoming pod is scored with its
`scored_incoming`: the scheduler leaves pod-level requests out of LeastAllocated, until the pod is on a node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import FloatArray, IntArray

_SCORED = ("cpu", "memory")


def least_allocated(replacement: Replacement, rows: IntArray) -> IntArray:
    """(rows,) 0..100: the mean free share of cpu and memory after the pod came, with defaults for what requests nothing."""
    placements = replacement.placements
    incoming, own = placements.scored_incoming_units(replacement.pod), placements.scored_bound_units(replacement.pod)
    vacated = rows == replacement.vacated
    total, number = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
    for position, column in enumerate(_columns(replacement)):
        allocatable = placements.allocatable_units[rows, column]
        used = placements.scored_units[rows, position] - np.where(vacated, own[position], 0.0) + incoming[position]
        counted = allocatable > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            total += np.where(counted & (used <= allocatable), whole_quotient((allocatable - used) * 100.0, allocatable), 0.0)
        number += counted
    return np.floor(total / np.maximum(number, 1)).astype(np.int64)


def whole_quotient(part: FloatArray, of: FloatArray) -> FloatArray:
    """``part // of`` for whole numbers up to 2**53, in a tenth of the time. Division may round up to a whole, never down."""
    quotient = np.floor(part / of)
    return np.asarray(quotient - (quotient * of > part), dtype=np.float64)


def balanced_allocation(replacement: Replacement, rows: IntArray) -> IntArray:
    """(rows,) 50..100: 75 when the pod leaves the balance of cpu and memory as it is, above when it improves it.

    0 for all when the pod requests neither. The formula of 1.36, in doubles in the scheduler's order, because its truncation shows.
    """
    placements = replacement.placements
    columns = _columns(replacement)
    asked = placements.incoming_units(replacement.pod)
    if not any(asked[column] > 0 for column in columns):
        return np.zeros(len(rows), dtype=np.int64)
    allocatable = [placements.allocatable_units[rows, column] for column in columns]
    vacated, own = rows == replacement.vacated, placements.bound_units(replacement.pod)
    requested = [placements.requested_units[rows, column] - np.where(vacated, own[column], 0.0) for column in columns]
    after = [amount + asked[column] for amount, column in zip(requested, columns, strict=True)]
    return 50 + (50 + _balance(after, allocatable) - _balance(requested, allocatable)) // 2


def _balance(load: Sequence[FloatArray], allocatable: Sequence[FloatArray]) -> IntArray:
    """(rows,) 0..100: 100 when both resources are used by the same share; a node that lacks one of them is balanced."""
    counted = [of > 0 for of in allocatable]
    with np.errstate(divide="ignore", invalid="ignore"):
        cpu, memory = (np.where(has, np.minimum(1.0, of / all_), 0.0) for has, of, all_ in zip(counted, load, allocatable, strict=True))
    deviation = np.where(counted[0] & counted[1], np.abs((cpu - memory) / 2), 0.0)
    return ((1 - deviation) * 100).astype(np.int64)


def _columns(replacement: Replacement) -> tuple[int, ...]:
    return tuple(replacement.state.resource_index[name] for name in _SCORED)
