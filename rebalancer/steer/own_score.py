"""Our own score: how far a node's load would reach with the pod on it, swings and pods just bound included.

    reach = load + bound + ask / capacity + deviations * deviation                          for each signal, as a share of the node
    worth = 1 at reach 0, 1/2 at the target, 0 at the high mark and above                   straight lines in between
    score = round(maximum * the least worth of the signals that the pod is judged by)

The fall from target to high is the steep one, for that is where a pod makes a node hot. The worst signal decides: a node with idle GPUs and
no memory left is no good place. A deviation that is unknown adds nothing, as everywhere; a load that is unknown leaves the node's worth
unknown, and it scores as the median of the nodes in question do: neither sought nor avoided.

``bound`` anticipates. A mean over the last minutes, measured before a pod was bound, holds nothing of it; one measured half a window later
holds half. What is still missing is added, so that a burst of pods is not thrown onto the one node that looks empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray, by_column

EXTENDER_MAXIMUM = 10
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Marks:
    """``target`` and ``high``: shares of the node; NaN where a signal has no marks and judges nobody. (signals,) for all nodes alike, or
    (nodes, signals) where nodes differ."""

    target: FloatArray
    high: FloatArray
    deviations: float = 0.0
    """Standard deviations of its load that a node keeps as room."""


def bound_load(
    *, node: IntArray, bound_at: FloatArray, use: FloatArray, capacity: FloatArray, measured_at: FloatArray, window_s: float
) -> FloatArray:
    """(nodes, signals): load of pods just bound that the measured means do not hold yet.

    ``node`` and ``bound_at`` (pods,): row, Unix seconds; ``use`` (pods, signals): what each is expected to use, in the signals' units;
    ``capacity`` (nodes, signals); ``measured_at`` (nodes,): the end of the window of the node's means. A pod of unknown use, or a node of
    unknown capacity or time, makes it NaN there. A pod that uses nothing adds nothing, whatever is unknown.
    """
    total = by_column(capacity.shape, fill=0.0)
    here = (node >= 0) & (node < len(capacity))
    at = node[here]
    held = np.clip((measured_at[at] - bound_at[here]) / window_s, 0.0, 1.0)
    share = use[here] / _positive(capacity)[at]
    missing = np.where((held[:, None] >= 1.0) | (use[here] == 0.0), 0.0, (1.0 - held)[:, None] * share)
    for column in range(capacity.shape[1]):
        total[:, column] = np.bincount(at, weights=missing[:, column], minlength=len(capacity))
    return total


def reach(
    *, load: FloatArray, deviation: FloatArray, bound: FloatArray, ask: FloatArray, capacity: FloatArray, deviations: float
) -> FloatArray:
    """(nodes, signals) shares of the node, NaN unknown, or (nodes,) of one signal. ``ask`` (signals,): what the pod asks for, in the
    signals' units; where that or the capacity is unknown, the node is judged without it."""
    reached = load + bound
    if np.isfinite(ask).any():
        reached += np.nan_to_num(ask / _positive(capacity), posinf=0.0, neginf=0.0)
    if deviations:
        reached += deviations * np.nan_to_num(np.maximum(0.0, deviation))
    return np.asarray(reached, dtype=np.float64)


def _positive(capacity: FloatArray) -> FloatArray:
    return np.where(capacity > 0, capacity, np.nan)


def worth(reached: FloatArray, marks: Marks, *, judged: BoolArray) -> FloatArray:
    """(nodes,) in 0..1, NaN unknown. ``judged`` (signals,): those that matter to the pod; without any, a node's worth is unknown.

    Signal by signal: of thousands of nodes, a column fits where memory is at hand and a matrix does not, which makes it four times as fast.
    """
    worst = np.full(len(reached), np.inf)
    by_any = np.zeros(len(reached), dtype=np.bool_)
    for column in np.flatnonzero(judged).tolist():
        target, high = marks.target[..., column], marks.high[..., column]
        used = np.isfinite(high) & np.isfinite(target)
        if used.any():
            by_any |= used
            worst = np.minimum(worst, np.where(used, _line(reached[:, column], target=target, high=high), np.inf))
    return np.where(by_any, worst, np.nan)


def _line(reached: FloatArray, *, target: FloatArray, high: FloatArray) -> FloatArray:
    """(nodes,): the worth by one signal; ``target`` and ``high`` (nodes,) or one for all."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        high = np.maximum(high, 1e-9)
        target = np.clip(target, 0.0, high)
        half = np.where(target > 0, HALF, 1.0)
        low_side = 1.0 - (1.0 - half) * np.where(target > 0, np.maximum(reached, 0.0) / target, 0.0)
        high_side = half * (high - reached) / (high - target)  # where marks coincide this is a cliff, and nobody stands between them
        each = np.where(reached <= target, low_side, np.where(reached < high, high_side, 0.0))
    return np.where(np.isnan(reached), np.nan, np.clip(each, 0.0, 1.0))


def own_scores(value: FloatArray, *, maximum: int = EXTENDER_MAXIMUM) -> IntArray:
    """(nodes,) int64 in 0..maximum from `worth`; unknown nodes get the median of the known ones, or half where none is known."""
    known = np.isfinite(value)
    neutral = float(np.median(value[known])) if known.any() else HALF
    filled = np.where(known, np.clip(value, 0.0, 1.0), np.clip(neutral, 0.0, 1.0))
    return np.clip(np.floor(filled * maximum + 0.5), 0, maximum).astype(np.int64)


def over_high(reached: FloatArray, marks: Marks, *, judged: BoolArray) -> BoolArray:
    """(nodes, signals): over the high mark of a signal that matters to the pod; unknown is never over."""
    with np.errstate(invalid="ignore"):
        return np.asarray((reached > marks.high) & judged, dtype=np.bool_)
