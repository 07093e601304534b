"""The soft taints of this project, one for each grade of warmth: a warm node carries one, a hot node both.

kube-scheduler's score for soft taints is ``100 - 100 * count / most``, so each one more repels a little more: where some feasible node
carries both, a warm one is preferred to it and a cool one to either. Who carries which is a matrix (nodes, taints), in the order of
`SOFT_TAINTS`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from rebalancer.plan.tolerations import SOFT
from rebalancer.state.arrays import BoolArray
from rebalancer.state.scheduling import Taint

HOT_TAINT = Taint(key="rebalancer.dev/hot", value="true", effect=SOFT)
"""On hot nodes beside the other; with a single grade on every warm node, alone."""
WARM_TAINT = Taint(key="rebalancer.dev/warm", value="true", effect=SOFT)
SOFT_TAINTS = (HOT_TAINT, WARM_TAINT)
HOT, WARM = range(len(SOFT_TAINTS))
"""Columns of the matrices."""
GRADES = ("hot", "warm")
"""What each is called in metrics, in the same order."""
_KEYS = tuple(taint.key for taint in SOFT_TAINTS)


def is_own(taint: Taint) -> bool:
    """By key and effect, whatever its value: a harder taint of the same key was put by somebody else."""
    return taint.effect == SOFT and taint.key in _KEYS


def carried(nodes: Sequence[Iterable[Taint]]) -> BoolArray:
    """(nodes, taints): which of ours each node carries, of the taints that are on it."""
    found = np.zeros((len(nodes), len(SOFT_TAINTS)), dtype=np.bool_)
    for row, taints in enumerate(nodes):
        for taint in taints:
            if is_own(taint):
                found[row, _KEYS.index(taint.key)] = True
    return found


def keys_of(carries: Sequence[bool]) -> tuple[str, ...]:
    """The keys of one row of a matrix."""
    return tuple(key for key, one in zip(_KEYS, carries, strict=True) if one)


def keys_by_row(carries: BoolArray) -> list[tuple[str, ...]]:
    """The same for every row of a matrix, of which there may be ten thousand and only a few kinds."""
    kinds = {row: keys_of(row) for row in itertools.product((False, True), repeat=len(_KEYS))}
    return [kinds[row] for row in map(tuple, carries.tolist())]


def row_of(keys: Collection[str]) -> BoolArray:
    """The row of a matrix for these keys."""
    return np.array([key in keys for key in _KEYS], dtype=np.bool_)
