"""The highest five-minute mean of each node in the last hour and in the last day, asked for all nodes at once and seldom.

    hour = max_over_time((<mean over 5m>)[1h:5m])
    day  = the same over each full hour of the day, each asked once and remembered, with what is left at both ends

A day in one query is beyond what a Prometheus of a large cluster may load for one (288 evaluations of a rate over every processor of every
node), so it is put together from hours; after the first time that is three queries in three hours. Where recording rules hold the means
already, it is one look-up. Between two queries a maximum only grows, by the means that each cycle reads anyway: what is remembered is right
at every moment but for a peak that has meanwhile become older than the hour or the day.

A node that is not known now has no maximum either: what is missing at the end may be the peak. A signal that cannot be had is a note, and
is asked for again in the next cycle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalancer.collect.asking import Asking
from rebalancer.collect.choosing import ENOUGH
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.queries import duration
from rebalancer.collect.resolve import resolve
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import believed
from rebalancer.collect.signal_plan import NodeWay, SignalPlan, forced_label, plan_signals
from rebalancer.deadline import Deadline
from rebalancer.errors import MetricsError, MetricsMissing, PrometheusUnreachable
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import FloatArray

MEAN_S = 300.0
HOUR_S = 3600.0
DAY_S = 86400.0
BUDGET_S = 10.0
"""After so long in one cycle no further query is begun; the hours of a day that are still missing come in the next ones."""
_LATE_S = 600.0
"""How much later than the begin of the span recorded means may begin."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """Of one signal, in its unit; (nodes,) float64 each, NaN unknown. ``*_at``: when that was measured, Unix seconds."""

    mean: FloatArray
    hour: FloatArray
    hour_at: FloatArray
    day: FloatArray
    day_at: FloatArray


@dataclass(frozen=True, slots=True)
class PeriodsS:
    """How often the maxima are asked for, in seconds."""

    hour: float = 900.0
    day: float = 10800.0


@dataclass(slots=True)
class _Maximum:
    """What is remembered of one maximum of one signal."""

    value: FloatArray
    at: FloatArray
    asked_at: float = -math.inf

    def grow(self, mean: FloatArray, *, at: float) -> None:
        with np.errstate(invalid="ignore"):
            higher = mean > self.value
        self.value = np.where(higher, mean, self.value)
        self.at = np.where(higher, at, self.at)

    def renew(self, value: FloatArray, *, at: float) -> None:
        self.value, self.at, self.asked_at = value, np.where(np.isnan(value), np.nan, at), at


@dataclass(slots=True)
class _Remembered:
    hour: _Maximum
    day: _Maximum
    pieces: dict[int, FloatArray] = field(default_factory=dict)
    """Number of a full hour since 1970 -> maximum in the hour that ends there."""

    @classmethod
    def nothing(cls, nodes: int) -> _Remembered:
        hour, day = (_Maximum(np.full(nodes, np.nan), np.full(nodes, np.nan)) for _ in range(2))
        return cls(hour, day)

    def reordered(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        """``rows`` (nodes,): where each node was before, -1 for a new one."""

        def moved(column: FloatArray) -> FloatArray:
            return np.append(column, np.nan)[rows]

        for one in (self.hour, self.day):
            one.value, one.at = moved(one.value), moved(one.at)
        self.pieces = {number: moved(piece) for number, piece in self.pieces.items()}


class LoadPeaks:
    """Remembers between cycles what was asked, and when. One thread at a time."""

    def __init__(self, prometheus: Prometheus, *, budget_s: float = BUDGET_S) -> None:
        self._prometheus, self._budget_s = prometheus, budget_s
        self._names: tuple[str, ...] = ()
        self._known: dict[str, _Remembered] = {}

    def forget(self) -> None:
        self._names, self._known = (), {}

    def read(
        self,
        signals: Sequence[str],
        *,
        spec: Spec,
        directory: NodeDirectory,
        names: tuple[str, ...],
        usage: Mapping[str, FloatArray],
        periods: PeriodsS,
        at: float,
        deadline: Deadline,
    ) -> tuple[Mapping[str, Peaks], tuple[str, ...]]:
        """``signals`` -> their peaks at ``at``, and notes. ``usage``: signal -> (nodes,) as the cycle measured it.

        Raises Interrupted on a stop; nothing else.
        """
        self._reorder(names)
        five = spec.model_copy(update={"metrics": spec.metrics.model_copy(update={"window": MEAN_S, "statistic": "mean"})})
        plans = {plan.signal.name: plan for plan in plan_signals(five, recorded=self._prometheus.access.recording_rules)}
        asking = Asking(self._prometheus, directory=directory, at=at, deadline=deadline)
        measured = spec.metrics.window == MEAN_S and spec.metrics.statistic == "mean"
        found: dict[str, Peaks] = {}
        for name in signals:
            reading = _Reading(self._prometheus, asking, plans[name], five, names, until=deadline.clock() + self._budget_s)
            remembered = self._known.setdefault(name, _Remembered.nothing(len(names)))
            mean = usage[name] if measured else reading.mean(known=usage[name])
            reading.renew(remembered, mean, periods=periods, slack_s=spec.interval / 2)
            found[name] = _peaks(mean, remembered)
        return found, tuple(asking.heard.notes)

    def _reorder(self, names: tuple[str, ...]) -> None:
        if names == self._names:
            return
        before = {name: row for row, name in enumerate(self._names)}
        rows = np.array([before.get(name, -1) for name in names], dtype=np.int64)
        for remembered in self._known.values():
            remembered.reordered(rows)
        self._names = names


def _peaks(mean: FloatArray, remembered: _Remembered) -> Peaks:
    known = np.isfinite(mean)

    def shown(column: FloatArray) -> FloatArray:
        return np.where(known, column, np.nan)

    hour, day = remembered.hour, remembered.day
    return Peaks(mean, shown(hour.value), shown(hour.at), shown(day.value), shown(day.at))


@dataclass(frozen=True, slots=True)
class _Reading:
    """The questions of one cycle about one signal. ``until``: no query begins after this reading of the deadline's clock."""

    prometheus: Prometheus
    asking: Asking
    plan: SignalPlan
    spec: Spec
    names: tuple[str, ...]
    until: float

    def mean(self, *, known: FloatArray) -> FloatArray:
        """The mean over five minutes now, of the nodes whose usage by the policy's own window is ``known``.

        A rate over a window that samples cover in part is too low, and a hot node looks cool; so only of nodes that were measured before
        the window as well.
        """
        at = self.asking.at
        try:
            found, before = (self._best(self.plan.nodes, span_s=None, at=moment) for moment in (at, at - MEAN_S))
        except MetricsError as error:
            self._note("mean of five minutes", error.message)
            return np.full(len(self.names), np.nan)
        return np.where(np.isfinite(known) & np.isfinite(before), found, np.nan)

    def renew(self, remembered: _Remembered, mean: FloatArray, *, periods: PeriodsS, slack_s: float) -> None:
        at = self.asking.at
        for maximum in (remembered.hour, remembered.day):
            maximum.grow(mean, at=at)
        try:
            if at - remembered.hour.asked_at >= periods.hour - slack_s:
                remembered.hour.renew(np.fmax(self._best(self.plan.nodes, span_s=HOUR_S, at=at), mean), at=at)
            if at - remembered.day.asked_at >= periods.day - slack_s and self._in_time():
                day = self._day(remembered)
                if day is not None:
                    remembered.day.renew(np.fmax(day, np.fmax(remembered.hour.value, mean)), at=at)
        except MetricsError as error:
            self._note("maxima", error.message)

    def _day(self, remembered: _Remembered) -> FloatArray | None:
        """The maximum of the last day but for its last hour, at most; None while hours of it are missing."""
        at = self.asking.at
        recorded = [way for way in self.plan.nodes if way.recorded and self._reaches(way, since=at - DAY_S)]
        if recorded:
            return self._best(recorded, span_s=DAY_S, at=at)
        ways = [way for way in self.plan.nodes if not way.recorded]
        start = at - DAY_S
        first, last = math.ceil(start / HOUR_S), math.floor(at / HOUR_S)
        remembered.pieces = {number: piece for number, piece in remembered.pieces.items() if number > first}
        for number in range(last, first, -1):
            if number in remembered.pieces:
                continue
            if not self._in_time():
                return None
            remembered.pieces[number] = self._best(ways, span_s=HOUR_S, at=number * HOUR_S)
        found = np.fmax.reduce(list(remembered.pieces.values()), initial=np.nan)
        head_s = first * HOUR_S - start
        return found if head_s < 1 else np.fmax(found, self._best(ways, span_s=math.floor(head_s), at=first * HOUR_S))

    def _in_time(self) -> bool:
        return self.asking.deadline.clock() < self.until and self.asking.deadline.remaining() > 0

    def _reaches(self, way: NodeWay, *, since: float) -> bool:
        """Whether what is recorded begins with the span: a rule of yesterday evening knows no day."""
        answer = self.prometheus.instant(way.usage.text, at=since + _LATE_S, deadline=self.asking.deadline, name=way.usage.name)
        return len(answer) > 0

    def _best(self, ways: Sequence[NodeWay], *, span_s: float | None, at: float) -> FloatArray:
        """(nodes,) by the first way that speaks of enough nodes, else of most. Raises MetricsError if none answers."""
        best, most, failure = np.full(len(self.names), np.nan), 0, None
        for way in ways:
            try:
                if way.recorded and span_s is not None and not self._reaches(way, since=at - span_s):
                    continue
                column, matched = self._column(way, span_s=span_s, at=at)
            except PrometheusUnreachable:
                raise
            except MetricsError as error:
                failure = failure or error
                continue
            if matched > most:
                best, most = column, matched
            if matched >= ENOUGH * len(self.names):
                break
        if not most and failure is not None:
            raise failure
        return best

    def _column(self, way: NodeWay, *, span_s: float | None, at: float) -> tuple[FloatArray, int]:
        """The usage, or its maximum over ``span_s``, and of how many nodes. A node of two series, one of them ended, has the higher."""
        text, name = way.usage.text, way.usage.name
        if span_s is not None:
            text = f"max_over_time(({text})[{duration(span_s)}:{duration(MEAN_S)}])"
            name = f"maximum of {name} over {duration(span_s)}"
        answer = self.prometheus.instant(text, at=at, deadline=self.asking.deadline, name=name)
        if answer.warnings and span_s is not None:
            # It would be remembered for hours, and what a part of the storage does not know may be the peak.
            raise MetricsMissing(f"{name} is not taken, for its answer may be partial: {answer.warnings[0]}")
        found = resolve(answer.labels, directory=self.asking.directory, forced=forced_label(self.spec), lookups=self.asking.lookups)
        values = believed(answer, maximum=self.plan.maximum)[0][:, -1]
        row_of = {name: row for row, name in enumerate(self.names)}
        rows = np.array([row_of.get(node, -1) for node in found.nodes], dtype=np.int64)
        column = np.full(len(self.names), np.nan)
        np.fmax.at(column, rows[rows >= 0], values[rows >= 0])
        return column, found.matched

    def _note(self, what: str, why: str) -> None:
        self.asking.heard.note(f"signal {self.plan.signal.name}: node load annotations lack the {what}: {why}")
