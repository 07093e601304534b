"""From the series of a node query to one row of windows a node, or to the reason why there is none.

A node is measured by one series. When its exporter was replaced there are two for a while, of which one has ended: they are joined. Two
that are both alive contradict each other even when they agree today, and choosing one would be a guess: the node is unknown.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.freshness import Ages, series_key, too_old
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.resolve import Resolution, show
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import Dropped, DropReason, believed
from rebalancer.collect.windows import hold_through_silence, too_young
from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.units import format_duration


@dataclass(frozen=True, slots=True)
class NodeUsage:
    usage: Mapping[str, FloatArray]
    """node name -> (windows,), newest last; NaN unknown."""
    age_s: Mapping[str, float]
    unknown: Mapping[str, str]
    """node name -> why its newest window is unknown."""
    dropped: Dropped


@dataclass(frozen=True, slots=True)
class Judging:
    """By what samples of nodes are judged. ``rate_window_s``: the window of a counter's rate, None for anything else."""

    maximum: float | None
    max_age_s: float
    step_s: float
    rate_window_s: float | None = None


def assemble_nodes(answer: Answer, *, resolution: Resolution, ages: Ages, directory: NodeDirectory, judging: Judging) -> NodeUsage:
    """Judge every sample, join the series of each node, and take the newest window from nodes that are too long silent."""
    values, dropped = believed(answer, maximum=judging.maximum)
    dropped[DropReason.FOREIGN] += int(answer.present[list(resolution.foreign)].sum())
    dropped[DropReason.STALE] += answer.off_grid
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, node in enumerate(resolution.nodes):
        if node:
            rows_of[node].append(row)
    usage: dict[str, FloatArray] = {}
    age_s: dict[str, float] = {}
    unknown: dict[str, str] = {}
    whole: list[bool] = np.all(answer.present & np.isfinite(values), axis=1).tolist()
    for node, rows in rows_of.items():
        keys = [series_key(answer.labels[row]) for row in rows]
        age = ages.of(keys, node)
        if math.isfinite(age):
            age_s[node] = age
        if len(rows) == 1 and whole[rows[0]] and not age > judging.step_s:  # as nearly all nodes are: nothing to join, hold or doubt
            line, reason, doubt = values[rows[0]].copy(), "", ""
            newest_is_known = True
        else:
            joined = _join(answer, values, rows, [key in ages.live for key in keys], judging, dropped)
            line, reason = _whole_windows(joined, age_s=age, judging=judging)
            doubt, newest_is_known = joined.doubt, bool(np.isfinite(joined.line[-1]))
        stale = ages.failed or (too_old(age, max_age_s=judging.max_age_s) if ages.known else "")
        if stale and not doubt:
            dropped[DropReason.STALE] += newest_is_known
            reason = stale
        if reason:
            line[-1] = np.nan
            unknown[node] = reason
        usage[node] = line
    for node in directory.names - rows_of.keys():
        unknown[node] = f"no series of {answer.name} speaks of it"
    return NodeUsage(usage=usage, age_s=age_s, unknown=unknown, dropped=+dropped)


@dataclass(frozen=True, slots=True)
class _Joined:
    """One line from all series of a node. ``doubtful`` points have a sample that may not be believed, or two that contradict each other."""

    line: FloatArray
    times: FloatArray
    present: BoolArray
    doubtful: BoolArray
    doubt: str
    """Why the newest point is doubtful, in words; empty when it is not."""


def _join(answer: Answer, values: FloatArray, rows: list[int], live: list[bool], judging: Judging, dropped: Dropped) -> _Joined:
    """``live`` says which of ``rows`` has not ended; samples of points at which two series contradict each other are counted as dropped."""
    present = answer.present[rows]
    amounts = np.where(present, values[rows], 0.0)
    count = present.sum(axis=0)
    clash = count > 1
    line = amounts.sum(axis=0)
    if sum(live) == 1 and len(rows) == 2:
        # The other series has ended. Of a rate each of the two has the part of the window that it was there for; of a gauge the
        # living one is right.
        alive = live.index(True)
        clash = np.zeros_like(clash)
        if judging.rate_window_s is None:
            line = np.where(present[alive], amounts[alive], line)
    line = np.where((count == 0) | clash, np.nan, line)
    dropped[DropReason.AMBIGUOUS] += int(count[clash].sum())
    doubt = ""
    if clash[-1]:
        doubt = f"ambiguous: {len(rows)} series: {' and '.join(show(answer.labels[row]) for row in rows[:2])}"
    elif count[-1] and not np.isfinite(line[-1]):
        shown = next(answer.values[row, -1] for row in rows if answer.present[row, -1] and not np.isfinite(values[row, -1]))
        doubt = f"its newest sample is no possible amount ({shown:g})"
    return _Joined(line=line, times=answer.times, present=count > 0, doubtful=(count > 0) & ~np.isfinite(line), doubt=doubt)


def _whole_windows(joined: _Joined, *, age_s: float, judging: Judging) -> tuple[FloatArray, str]:
    """Only windows that were measured from end to end, and why the newest is not known, in words."""
    if joined.doubt:
        return joined.line, joined.doubt
    line, times = joined.line, joined.times
    if judging.rate_window_s is not None:
        young = too_young(joined.present, times=times, window_s=judging.rate_window_s, step_s=judging.step_s)
        line = np.where(young, np.nan, line)
        if young[-1]:
            return line, f"its series is younger than the window of {format_duration(judging.rate_window_s)}"
    held = hold_through_silence(line, times=times, last_sample_at=times[-1] - age_s, step_s=judging.step_s)
    held = np.where(joined.doubtful, np.nan, held)
    if np.isfinite(held[-1]):
        return held, ""
    if joined.present[-1]:
        return held, f"last sample is {format_duration(round(age_s))} old, and no whole window before it is known"
    return held, "it has no sample in the newest window"
