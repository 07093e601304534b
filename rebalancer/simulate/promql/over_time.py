"""From raw samples to vectors: the newest sample at each step, and the functions over a range of samples.

The extrapolation of ``rate`` and ``increase`` is Prometheus' own: to the edges of the window when the samples reach to within 1.1 average
intervals of them, else by half an interval, and never below zero for a counter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rebalancer.simulate.promql.frames import LOOKBACK_S, Block, Floats, Frame
from rebalancer.simulate.promql.labels import Bools

Window = Callable[[Floats, Floats, Bools, float, float], tuple[Floats, Bools]]
"""(times, values, present, start, end) -> (series,) value, (series,) present."""


def newest(block: Block, steps: Floats, *, stamps: bool = False) -> Frame:
    """The instant vector of a block at ``steps``; with ``stamps`` the times of the samples instead of their values."""
    series, count = block.values.shape[0], len(steps)
    values, present = np.full((series, count), np.nan), np.zeros((series, count), dtype=bool)
    if len(block.times):
        last = np.maximum.accumulate(np.where(block.present, np.arange(len(block.times)), -1), axis=1)
        for column, step in enumerate(steps):
            at = int(np.searchsorted(block.times, step, side="right")) - 1
            if at < 0:
                continue
            index = last[:, at]
            found = (index >= 0) & (block.silent | (index == at))
            safe = np.maximum(index, 0)
            found &= block.times[safe] > step - LOOKBACK_S
            values[:, column] = block.times[safe] if stamps else block.values[np.arange(series), safe]
            present[:, column] = found
    return Frame(block.labels, values, present)


def over_range(block: Block, steps: Floats, range_s: float, window: Window) -> Frame:
    """A range function at every step; series with nothing in the window are absent there."""
    series, count = block.values.shape[0], len(steps)
    values, present = np.full((series, count), np.nan), np.zeros((series, count), dtype=bool)
    for column, step in enumerate(steps):
        low = int(np.searchsorted(block.times, step - range_s - 1e-9, side="left"))
        high = int(np.searchsorted(block.times, step + 1e-9, side="right"))
        if high > low:
            part = slice(low, high)
            values[:, column], present[:, column] = window(
                block.times[part], block.values[:, part], block.present[:, part], step - range_s, step
            )
    return Frame(block.labels, values, present)


def _row_sum(values: Floats) -> Floats:
    total: Floats = np.sum(values, axis=1)
    return total


def _row_count(present: Bools) -> Floats:
    return _row_sum(present.astype(np.float64))


def _seen(present: Bools) -> Bools:
    seen: Bools = np.any(present, axis=1)
    return seen


def _ends(times: Floats, values: Floats, present: Bools) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """First and last time, first and last value, number of samples; each (series,)."""
    count = _row_count(present)
    first = present.argmax(axis=1)
    last = present.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
    rows = np.arange(present.shape[0])
    return times[first], times[last], values[rows, first], values[rows, last], count


def _lost_in_resets(values: Floats, present: Bools) -> Floats:
    """(series,) the sum of what counters had reached when they fell back."""
    if present.all():
        before, after = values[:, :-1], values[:, 1:]
        return _row_sum(np.where(after < before, before, 0.0))
    last = np.maximum.accumulate(np.where(present, np.arange(present.shape[1]), -1), axis=1)
    filled = np.take_along_axis(values, np.maximum(last, 0), axis=1)
    known = present[:, 1:] & (last[:, :-1] >= 0)
    return _row_sum(np.where(known & (values[:, 1:] < filled[:, :-1]), filled[:, :-1], 0.0))


def extrapolated(*, counter: bool, per_second: bool) -> Window:
    """``rate``, ``increase`` and ``delta``."""

    def window(times: Floats, values: Floats, present: Bools, start: float, end: float) -> tuple[Floats, Bools]:
        first_t, last_t, first, last, count = _ends(times, values, present)
        enough = count >= 2
        result = last - first
        if counter:
            result = result + _lost_in_resets(values, present)
        sampled = np.where(enough, last_t - first_t, 1.0)
        interval = sampled / np.maximum(count - 1, 1)
        to_start, to_end = first_t - start, end - last_t
        if counter:
            with np.errstate(divide="ignore", invalid="ignore"):
                to_zero = np.where((result > 0) & (first >= 0), sampled * (first / result), np.inf)
            to_start = np.minimum(to_start, to_zero)
        reach = (
            sampled + np.where(to_start < interval * 1.1, to_start, interval / 2) + np.where(to_end < interval * 1.1, to_end, interval / 2)
        )
        result = result * (reach / sampled)
        return (result / (end - start) if per_second else result), enough

    return window


def between_last_two(*, per_second: bool, counter: bool) -> Window:
    """``irate`` and ``idelta``."""

    def window(times: Floats, values: Floats, present: Bools, start: float, end: float) -> tuple[Floats, Bools]:
        width = present.shape[1]
        last = width - 1 - present[:, ::-1].argmax(axis=1)
        rest = present.copy()
        rows = np.arange(present.shape[0])
        rest[rows, last] = False
        before = width - 1 - rest[:, ::-1].argmax(axis=1)
        enough = _row_count(present) >= 2
        change = values[rows, last] - values[rows, before]
        if counter:
            change = np.where(change < 0, values[rows, last], change)
        length = np.where(enough, times[last] - times[before], 1.0)
        return (change / length if per_second else change), enough

    return window


def _reduced(reduce: Callable[[Floats, Bools], Floats]) -> Window:
    def window(times: Floats, values: Floats, present: Bools, start: float, end: float) -> tuple[Floats, Bools]:
        return reduce(values, present), _seen(present)

    return window


def _mean(values: Floats, present: Bools) -> Floats:
    return _row_sum(np.where(present, values, 0.0)) / np.maximum(_row_count(present), 1)


def _deviation(values: Floats, present: Bools) -> Floats:
    mean = _mean(values, present)
    return np.sqrt(_row_sum(np.where(present, (values - mean[:, None]) ** 2, 0.0)) / np.maximum(_row_count(present), 1))


def _extreme(pick: np.ufunc) -> Callable[[Floats, Bools], Floats]:
    """The smallest or largest; NaN only when every present sample is NaN."""

    def reduce(values: Floats, present: Bools) -> Floats:
        result: Floats = pick.reduce(np.where(present, values, np.nan), axis=1)
        return result

    return reduce


def _newest_value(values: Floats, present: Bools) -> Floats:
    last = present.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
    found: Floats = values[np.arange(values.shape[0]), last]
    return found


def quantile_of(values: Floats, present: Bools, fraction: float) -> Floats:
    """(rows,) the quantile of the present cells of each row, linear between neighbours; -Inf and +Inf outside 0..1."""
    if fraction < 0 or fraction > 1 or fraction != fraction:
        return np.full(values.shape[0], np.nan if fraction != fraction else (-np.inf if fraction < 0 else np.inf))
    count = present.sum(axis=1)
    ordered = np.sort(np.where(present, values, np.inf), axis=1)
    rank = fraction * np.maximum(count - 1, 0)
    low = np.floor(rank).astype(np.intp)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))
    rows = np.arange(values.shape[0])
    weight = rank - low
    lower, upper = ordered[rows, low], ordered[rows, high]
    with np.errstate(invalid="ignore"):
        between: Floats = np.where(weight == 0, lower, lower * (1 - weight) + upper * weight)
    return between


def quantile_over_time(fraction: float) -> Window:
    return _reduced(lambda values, present: quantile_of(values, present, fraction))


def _changes(values: Floats, present: Bools, differs: Callable[[Floats, Floats], Bools]) -> Floats:
    last = np.maximum.accumulate(np.where(present, np.arange(present.shape[1]), -1), axis=1)
    filled = np.take_along_axis(values, np.maximum(last, 0), axis=1)
    known = present[:, 1:] & (last[:, :-1] >= 0)
    return _row_count(known & differs(values[:, 1:], filled[:, :-1]))


WINDOWS: dict[str, Window] = {
    "rate": extrapolated(counter=True, per_second=True),
    "increase": extrapolated(counter=True, per_second=False),
    "delta": extrapolated(counter=False, per_second=False),
    "irate": between_last_two(per_second=True, counter=True),
    "idelta": between_last_two(per_second=False, counter=False),
    "avg_over_time": _reduced(_mean),
    "sum_over_time": _reduced(lambda values, present: _row_sum(np.where(present, values, 0.0))),
    "min_over_time": _reduced(_extreme(np.fmin)),
    "max_over_time": _reduced(_extreme(np.fmax)),
    "count_over_time": _reduced(lambda values, present: _row_count(present)),
    "last_over_time": _reduced(_newest_value),
    "present_over_time": _reduced(lambda values, present: np.ones(values.shape[0])),
    "stddev_over_time": _reduced(_deviation),
    "stdvar_over_time": _reduced(lambda values, present: _deviation(values, present) ** 2),
    "changes": _reduced(lambda values, present: _changes(values, present, lambda new, old: new != old)),
    "resets": _reduced(lambda values, present: _changes(values, present, lambda new, old: new < old)),
}
