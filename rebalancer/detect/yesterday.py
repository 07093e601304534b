"""What is to come, by what came yesterday: hot nodes whose peak passes by itself, and nodes that will be hot without anybody's doing.

Yesterday is believed for a node and a signal only while it is like today, since most days are not:

- the load of each of the last windows differs from that of a day ago by at most ``anticipation.tolerance``, and the newest is known;
- at least `OLD_SHARE` of what the node uses come from pods that were there a day ago, so that it is the same work.

What is foreseen is then yesterday's load, higher by as much as today was higher on the mean of these windows. A peak passes where that goes
half way from ``high`` to ``target`` within ``anticipation.horizon`` (the other half is left to noise, as on a destination) and stays under
it until twice the horizon is over.

Nobody waits for longer than the horizon: a load that does not fall when yesterday's did is not like it any more. That is why no tolerance
is wider than the fall that is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.detect.thresholds import Marks
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.state.cluster import ClusterState, Yesterday
from rebalancer.state.ledger import on_a_node, sum_by_node
from rebalancer.units import format_duration, format_percent

DAY_S = 86400.0
OLD_SHARE = 0.8
_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Foreseen:
    passing: Mapping[int, str]
    """Row of a hot node -> why its peak passes by itself, with the numbers."""
    peak: FloatArray
    """(nodes, signals): the highest load within the horizon; NaN where nothing is foreseen."""


def foresee(state: ClusterState, spec: Spec, *, load: FloatArray, marks: Marks, confirmed: BoolArray) -> Foreseen:
    """``load``, ``confirmed`` (nodes, signals): of now by the ledger, and hot by it."""
    yesterday, horizon = state.yesterday, spec.anticipation.horizon
    if yesterday is None or not horizon:
        return Foreseen({}, np.full(load.shape, np.nan))
    mark = marks.target + (marks.high - marks.target) / 2
    tolerance = np.fmin(spec.anticipation.tolerance / 100, marks.high - mark)  # NaN: not judged, and then any tolerance will do
    coming = _coming(state, yesterday, load=load, tolerance=tolerance)
    passes_at = _passes_at(yesterday.ahead_s, coming <= mark[:, :, None], horizon=horizon)
    hot = confirmed.any(axis=1) & (np.isfinite(passes_at) | ~confirmed).all(axis=1)
    then = _at(yesterday, np.zeros(1))[:, :, 0]
    passing = {
        node: "; ".join(
            f"{state.signals[c].name} load {format_percent(float(load[node, c]))} as yesterday at this time "
            f"({format_percent(float(then[node, c]))}), when it was under {format_percent(float(mark[node, c]))} within "
            f"{format_duration(round(float(passes_at[node, c])))} and stayed there"
            for c in np.flatnonzero(confirmed[node]).tolist()
        )
        for node in np.flatnonzero(hot).tolist()
    }
    within = (yesterday.ahead_s > 0) & (yesterday.ahead_s <= horizon)
    return Foreseen(passing, peak=coming[:, :, within].max(axis=2) if within.any() else np.full(load.shape, np.nan))


def _coming(state: ClusterState, yesterday: Yesterday, *, load: FloatArray, tolerance: FloatArray) -> FloatArray:
    """(nodes, signals, points): what is foreseen; NaN where yesterday is not like today, or not known. ``tolerance`` (nodes, signals)."""
    history = state.nodes.history
    difference = history - _at(yesterday, -state.step_s * np.arange(history.shape[2] - 1, -1, -1))
    known = np.isfinite(difference)
    far = np.where(known, np.abs(difference), 0.0).max(axis=2)
    believed = (far <= tolerance + _NOISE) & known[:, :, -1] & (_old_share(state) >= OLD_SHARE - _NOISE)
    higher = np.where(known, difference, 0.0).sum(axis=2) / np.maximum(1, known.sum(axis=2))
    moved = load - history[:, :, -1]  # what the ledger knows and the last window does not show yet
    lifted = yesterday.load + (np.maximum(0.0, higher) + moved)[:, :, None]
    return np.where(believed[:, :, None], lifted, np.nan)


def _at(yesterday: Yesterday, ahead_s: FloatArray) -> FloatArray:
    """(nodes, signals, len(ahead_s)): on the straight line between two points of yesterday; NaN where one is unknown, and outside."""
    points = yesterday.ahead_s
    if len(points) < 2:
        return np.full((*yesterday.load.shape[:2], len(ahead_s)), np.nan)
    right = np.clip(np.searchsorted(points, ahead_s), 1, len(points) - 1)
    share = (ahead_s - points[right - 1]) / (points[right] - points[right - 1])
    before, after = yesterday.load[:, :, right - 1], yesterday.load[:, :, right]
    # A point that is met exactly does not need the other one.
    between = np.where(share == 0, before, np.where(share == 1, after, before * (1 - share) + after * share))
    return np.where((ahead_s < points[0]) | (ahead_s > points[-1]), np.nan, between)


def _old_share(state: ClusterState) -> FloatArray:
    """(nodes, signals): how much of the usage does not come from pods that have come since; NaN unknown."""
    pods = state.pods
    young: BoolArray = on_a_node(state) & ~(pods.started_at <= state.at - DAY_S)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - sum_by_node(state, pods.usage, young) / state.nodes.usage, dtype=np.float64)


def _passes_at(ahead_s: FloatArray, under: BoolArray, *, horizon: float) -> FloatArray:
    """(nodes, signals): seconds until the load is under its mark for good, which means until twice the horizon; NaN where that is too late.

    ``under`` (nodes, signals, points): what is foreseen is at or under the mark; False where it is unknown.
    """
    later = np.flatnonzero((ahead_s > 0) & (ahead_s <= 2 * horizon))
    if not len(later):
        return np.full(under.shape[:2], np.nan)
    over_after = np.logical_or.accumulate(~under[:, :, later][:, :, ::-1], axis=2)[:, :, ::-1]  # over at the point or at a later one
    waits = over_after.sum(axis=2)  # points until it is under for good
    found = np.append(ahead_s[later], np.nan)[waits]
    return np.where(found <= horizon, found, np.nan)
