"""From the series of a node query to one row of windows a node, or to the reason why there is none.

A node is measured by one series. When its exporter was replaced there are two for a while, of which one has ended: they are joined. Two
that are both alive contradict each other even when they agree today, and choosing one would be a guess: the node is unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.freshness import Ages, series_key, too_old
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.resolve import Resolution, show
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import Dropped, DropReason, believed
from rebalancer.state.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class NodeUsage:
    usage: Mapping[str, FloatArray]
    """node name -> (windows,), newest last; NaN unknown."""
    age_s: Mapping[str, float]
    unknown: Mapping[str, str]
    """node name -> why its newest window is unknown."""
    dropped: Dropped


def assemble_nodes(
    answer: Answer, *, resolution: Resolution, ages: Ages, directory: NodeDirectory, maximum: float | None, max_age_s: float
) -> NodeUsage:
    """Judge every sample, join the series of each node, and take the newest window from nodes that are too long silent."""
    values, dropped = believed(answer, maximum=maximum)
    dropped[DropReason.FOREIGN] += int(answer.present[list(resolution.foreign)].sum())
    dropped[DropReason.STALE] += answer.off_grid
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, node in enumerate(resolution.nodes):
        if node:
            rows_of[node].append(row)
    usage: dict[str, FloatArray] = {}
    age_s: dict[str, float] = {}
    unknown: dict[str, str] = {}
    for node, rows in rows_of.items():
        keys = [series_key(answer.labels[row]) for row in rows]
        line, clash = _join(values[rows], answer.present[rows], live=[key in ages.live for key in keys])
        dropped[DropReason.AMBIGUOUS] += int(answer.present[rows][:, clash].sum())
        age = ages.of(keys, node)
        if np.isfinite(age):
            age_s[node] = age
        reason = _why_unknown(answer, values, rows, line, clash)
        if not reason and (ages.known or ages.failed) and (reason := ages.failed or too_old(age, max_age_s=max_age_s)):
            line[-1] = np.nan
            dropped[DropReason.STALE] += 1
        if reason:
            unknown[node] = reason
        usage[node] = line
    for node in directory.names - rows_of.keys():
        unknown[node] = f"no series of {answer.name} speaks of it"
    return NodeUsage(usage=usage, age_s=age_s, unknown=unknown, dropped=+dropped)


def _join(values: FloatArray, present: BoolArray, *, live: list[bool]) -> tuple[FloatArray, BoolArray]:
    """One line from the (series, points) of a node, and the points at which two series contradict each other."""
    clash = present.sum(axis=0) > 1
    # With one value at a point the maximum that ignores the absent is that value, or NaN when it is not believed.
    line = np.where(present, values, -np.inf).max(axis=0)
    line = np.where(present.any(axis=0), line, np.nan)
    if sum(live) == 1:
        alive = live.index(True)
        line = np.where(present[alive], values[alive], line)
        others = np.delete(present, alive, axis=0).sum(axis=0)
        clash = ~present[alive] & (others > 1)
    return np.where(clash, np.nan, line), clash


def _why_unknown(answer: Answer, values: FloatArray, rows: list[int], line: FloatArray, clash: BoolArray) -> str:
    if np.isfinite(line[-1]):
        return ""
    if clash[-1]:
        shown = " and ".join(show(answer.labels[row]) for row in rows[:2])
        return f"ambiguous: {len(rows)} series: {shown}"
    here = [row for row in rows if answer.present[row, -1] and not np.isfinite(values[row, -1])]
    if here:
        return f"its newest sample is no possible amount ({answer.values[here[0], -1]:g})"
    return "it has no sample in the newest window"


def merge_counts(*counts: Dropped) -> Dropped:
    total: Dropped = Counter()
    for count in counts:
        total.update(count)
    return total
