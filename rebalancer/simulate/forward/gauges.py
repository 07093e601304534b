"""What Prometheus remembers: one sample a tick of every node and pod, and windows over them that come late.

A ring of ticks. The question "what was the mean of the last five minutes" asked at a moment is answered from the samples that had arrived
by then: those at least ``delay_s`` old. A pod that ran for a part of the window has a mean over the whole window, as a rate has, so it
rises slowly; a pod that is gone is in it for as long as the window reaches back. A tick without a sample (a node that is down, a hole in a
trace) makes every window that touches it unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Timing:
    """How the metrics arrive. ``interval_s``: from one sample to the next; ``delay_s``: how late a sample can be asked for."""

    interval_s: float
    delay_s: float


@dataclass(frozen=True, slots=True)
class Lens:
    """What is asked for: windows of ``window_s``, as ``statistic`` (mean, max or p95), ``windows`` of them, ``step_s`` apart.

    ``swing_s``: the time over which the deviation of pods is taken, from windows ``swing_step_s`` apart; 0: it is not asked for.
    """

    window_s: float
    statistic: str
    windows: int
    step_s: float
    swing_s: float = 0.0
    swing_step_s: float = 300.0
    ahead_s: float = 0.0
    """How far beyond this time of the day yesterday is asked for; 0: it is not asked for."""
    day_step_s: float = 300.0
    """Time from one usage of yesterday to the next."""

    @property
    def behind_s(self) -> float:
        """How far before this time of the day yesterday is asked for."""
        return (self.windows - 1) * self.step_s

    @property
    def reach_s(self) -> float:
        """How far back the oldest window begins."""
        return self.window_s + (self.windows - 1) * self.step_s


class Gauges:
    """``record`` once a tick; a tick has a number, from 1, and ends at ``start + number * interval``."""

    def __init__(self, *, start: float, timing: Timing, lens: Lens, nodes: int, signals: int, pods: int) -> None:
        self._start = start
        self._timing = timing
        self._lens = lens
        self._window = max(1, round(lens.window_s / timing.interval_s))
        self._step = lens.step_s / timing.interval_s
        late = math.ceil(timing.delay_s / timing.interval_s) + 2
        self._nodes: FloatArray = np.full((round(lens.reach_s / timing.interval_s) + late + 1, nodes, signals), np.nan)
        self._pods: FloatArray = np.zeros((self._window + late, pods, signals))
        self._ran: BoolArray = np.zeros((self._window + late, pods), dtype=np.bool_)
        self._swing_step = max(1, round(lens.swing_step_s / timing.interval_s))
        points = math.floor(lens.swing_s / lens.swing_step_s) + 1 if lens.swing_s else 0
        self._swings: FloatArray = np.full((points, pods, signals), np.nan)
        self._day_step = max(1, round(lens.day_step_s / timing.interval_s))
        days = math.ceil((DAY_S + lens.behind_s) / timing.interval_s / self._day_step) + 2 if lens.ahead_s else 0
        self._days: FloatArray = np.full((days, nodes, signals), np.nan)
        """Windows of nodes of the last day, one a ``day_step``."""
        self._last_sample = np.full(nodes, np.nan)
        self.ticks = 0

    @property
    def warm_up_ticks(self) -> int:
        """Ticks after which every window is whole."""
        return max(len(self._nodes), len(self._swings) * self._swing_step, len(self._days) * self._day_step)

    @property
    def forget_s(self) -> float:
        """How long after its end a pod may still be in a window."""
        return len(self._pods) * self._timing.interval_s

    def record(self, nodes: FloatArray, *, rows: IntArray, pods: FloatArray, ran: BoolArray) -> None:
        """``nodes`` (nodes, signals), NaN without a sample; ``pods`` (rows, signals) usage of the pods at ``rows``; ``ran`` (rows,)."""
        self.ticks += 1
        self._nodes[self.ticks % len(self._nodes)] = nodes
        slot = self.ticks % len(self._pods)
        self._pods[slot], self._ran[slot] = 0.0, False
        self._pods[slot, rows] = pods
        self._ran[slot, rows] = ran
        if len(self._swings) and self.ticks % self._swing_step == 0:
            self._swings[self.ticks // self._swing_step % len(self._swings)] = self._pod_window(self.ticks)
        if len(self._days) and self.ticks % self._day_step == 0 and self.ticks >= self._window:
            self._days[self.ticks // self._day_step % len(self._days)] = self._node_window(self.ticks)
        self._last_sample[np.isfinite(nodes).any(axis=1)] = self._start + self.ticks * self._timing.interval_s

    def make_room(self, pods: int) -> None:
        """Let there be at least so many pod rows."""
        more = pods - self._pods.shape[1]
        if more > 0:
            self._pods = np.concatenate((self._pods, np.zeros((len(self._pods), more, self._pods.shape[2]))), axis=1)
            unknown = np.full((len(self._swings), more, self._pods.shape[2]), np.nan)
            self._swings = np.concatenate((self._swings, unknown), axis=1)
            self._ran = np.concatenate((self._ran, np.zeros((len(self._ran), more), dtype=np.bool_)), axis=1)

    def forget(self, rows: IntArray) -> None:
        """The pod rows will be used for other pods."""
        self._pods[:, rows] = 0.0
        self._ran[:, rows] = False
        self._swings[:, rows] = np.nan

    def node_windows(self, at: float) -> FloatArray:
        """(nodes, signals, windows): the statistic of each window, newest last; NaN unknown."""
        newest = self._newest(at)
        found = np.full((*self._nodes.shape[1:], self._lens.windows), np.nan)
        for back in range(self._lens.windows):
            end = newest - round(back * self._step)
            if end - self._window >= 0:
                found[:, :, -1 - back] = self._node_window(end)
        return found

    def _node_window(self, end: int) -> FloatArray:
        return self._statistic(self._nodes[np.arange(end - self._window + 1, end + 1) % len(self._nodes)])

    def yesterday(self, at: float) -> tuple[FloatArray, FloatArray] | None:
        """(points,) seconds from this time of the day, and (nodes, signals, points) usage then; None when it is not asked for."""
        if not len(self._days):
            return None
        interval, then = self._timing.interval_s, at - DAY_S - self._start
        first = math.floor((then - self._lens.behind_s) / interval / self._day_step)
        last = math.ceil((then + self._lens.ahead_s) / interval / self._day_step)
        points = np.arange(first, last + 1)
        kept = (points > 0) & (points * self._day_step <= self._newest(at)) & (points > self.ticks // self._day_step - len(self._days))
        values = np.where(kept[:, None, None], self._days[points % len(self._days)], np.nan)
        return np.asarray(points * (self._day_step * interval) - then, dtype=np.float64), np.moveaxis(values, 0, -1)

    def pod_window(self, at: float) -> FloatArray:
        """(pod rows, signals): the statistic of the newest window; NaN for pods without any sample in it, and where one was unknown."""
        return self._pod_window(self._newest(at))

    def pod_deviation(self) -> FloatArray:
        """(pod rows, signals): standard deviation of the remembered windows; NaN for fewer than two, and where it is not asked for."""
        known = ~np.isnan(self._swings)
        number = known.sum(axis=0)
        found = np.full(self._pods.shape[1:], np.nan)
        enough = number > 1
        values = np.where(known, self._swings, 0.0)[:, enough]
        mean = values.sum(axis=0) / number[enough]
        squares = np.where(known[:, enough], (values - mean) ** 2, 0.0).sum(axis=0)
        found[enough] = np.sqrt(squares / number[enough])
        return found

    def _pod_window(self, newest: int) -> FloatArray:
        ticks = np.arange(max(newest - self._window, 0) + 1, newest + 1) % len(self._pods)
        if not len(ticks):
            return np.full(self._pods.shape[1:], np.nan)
        values = self._statistic(self._pods[ticks])
        ran: BoolArray = np.asarray(self._ran[ticks].any(axis=0), dtype=np.bool_)
        return np.where(ran[:, None], values, np.nan)

    def node_age_s(self, at: float) -> FloatArray:
        """(nodes,): age of the newest sample that has arrived; NaN when there never was one."""
        newest = self._start + self._newest(at) * self._timing.interval_s
        return np.asarray(at - np.minimum(self._last_sample, newest), dtype=np.float64)

    def _newest(self, at: float) -> int:
        """Number of the newest tick whose sample has arrived."""
        return min(self.ticks, math.floor((at - self._start - self._timing.delay_s) / self._timing.interval_s + 1e-9))

    def _statistic(self, ticks: FloatArray) -> FloatArray:
        if self._lens.statistic == "max":
            return np.asarray(ticks.max(axis=0), dtype=np.float64)
        if self._lens.statistic == "p95":
            return np.asarray(np.quantile(ticks, 0.95, axis=0), dtype=np.float64)
        return np.asarray(ticks.mean(axis=0), dtype=np.float64)
