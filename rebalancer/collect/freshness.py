"""How old the newest raw sample behind a usage is.

A mean over five minutes looks the same whether its last sample is a second or four minutes old, and an answer carries the time of the
question, not of the sample. So the time stamps of one raw series a node are asked for beside the usage. A source that stopped is unknown
after ``maxAge``, however high its last value was; a single failed scrape is not a reason to forget a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.prometheus_wire import Answer, Labels
from rebalancer.collect.resolve import Resolution
from rebalancer.units import format_duration

SeriesKey = frozenset[tuple[str, str]]


def series_key(labels: Labels) -> SeriesKey:
    """What makes two answers speak of the same series: all labels but the metric's name."""
    if "__name__" in labels:
        return frozenset((name, value) for name, value in labels.items() if name != "__name__")
    return frozenset(labels.items())


@dataclass(frozen=True, slots=True)
class Ages:
    """Ages in seconds. ``known`` is False when nothing could be learnt about ages, and no conclusion may be drawn from an absence."""

    by_series: Mapping[SeriesKey, float]
    by_node: Mapping[str, float]
    live: frozenset[SeriesKey]
    """Series that Prometheus does not know to be gone."""
    known: bool = True
    failed: str = ""
    """Why ages could not be learnt although they should be, in words."""

    def of(self, keys: Iterable[SeriesKey], node: str) -> float:
        """Age of the newest sample among the series of a node; NaN unknown."""
        ages = [self.by_series[key] for key in keys if key in self.by_series]
        return min(ages) if ages else self.by_node.get(node, float("nan"))


NO_AGES = Ages(by_series={}, by_node={}, live=frozenset(), known=False)


def ages_from_query(answer: Answer, resolution: Resolution) -> Ages:
    """From an answer whose values are ages; a node with two ages has the older one, one with a senseless age has none."""
    by_node: dict[str, float] = {}
    for node, age in zip(resolution.nodes, answer.values[:, -1].tolist(), strict=True):
        if node:
            by_node[node] = max(by_node.get(node, 0.0), age) if np.isfinite(age) and age >= 0 else float("nan")
    return Ages(by_series={}, by_node=by_node, live=frozenset())


def read_ages(
    usage: Sequence[Labels],
    *,
    at: float,
    ask_live: Callable[[], Answer],
    ask_last_seen: Callable[[], Answer],
) -> Ages:
    """Ages of the series in ``usage``; the wider search is made only when one of them is not live."""
    live = ask_live()
    keys = [series_key(labels) for labels in live.labels]
    known = frozenset(keys)
    by_series: dict[SeriesKey, float] = {}
    if any(series_key(labels) not in known for labels in usage):
        seen = ask_last_seen()
        by_series.update(_ages_by_series(seen, map(series_key, seen.labels), at=at))
    by_series.update(_ages_by_series(live, keys, at=at))
    return Ages(by_series=by_series, by_node={}, live=known)


def _ages_by_series(answer: Answer, keys: Iterable[SeriesKey], *, at: float) -> Mapping[SeriesKey, float]:
    """From an answer whose values are unix times of raw samples."""
    stamps = zip(keys, answer.values[:, -1].tolist(), strict=True)
    return {key: max(0.0, at - stamp) for key, stamp in stamps if math.isfinite(stamp)}


def too_old(age_s: float, *, max_age_s: float) -> str:
    """Why a sample of this age may not be used, in words; empty when it may."""
    if not np.isfinite(age_s):
        return "the age of its last sample is unknown"
    if age_s > max_age_s:
        return f"last sample is {format_duration(age_s)} old, limit {format_duration(max_age_s)}"
    return ""
