"""What came of a strategy, counted by the truth of the world and not by what its metrics showed.

A node is hot in a tick when the demand of its pods and its own is over the mark on a judged signal; load is demand over capacity, so it can
be above 1 where CPU is throttled. An eviction made a node hot when the destination of its replacement was not hot before, and within
`BLAME_S` after the replacement ran there it was hot and would not have been without the pods that landed there by evictions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState

BLAME_S = 600.0
COURSE_POINTS = 288
"""Points that a course is told in, at most: every five minutes of a day."""
SHORTEST_STRETCH_S = 60.0


@dataclass(frozen=True, slots=True)
class Moment:
    """One tick that ended at ``at``."""

    at: float
    step_s: float
    load: FloatArray
    """(nodes, signals); NaN unknown or down."""
    lacking_cores: float
    rows: IntArray
    """Rows of the bound pods, ascending; ``node`` and ``demand`` (rows, signals) go with it."""
    node: IntArray
    demand: FloatArray
    pending: int
    unready: int


@dataclass(frozen=True, slots=True)
class Landed:
    """The replacement of an evicted pod was bound."""

    at: float
    slot: int
    row: int
    uid: str
    source: int
    node: int
    running_at: float


@dataclass(frozen=True, slots=True)
class CoursePoint:
    """A stretch of the course: hours since the start, mean of hot nodes, worst load, mean spread, evictions in it."""

    hours: float
    hot_nodes: float
    worst_load: float
    spread: float
    evictions: int


@dataclass(slots=True)
class _Stretch:
    ticks: int = 0
    hot: float = 0.0
    worst: float = float("nan")
    spread: float = 0.0
    evictions: int = 0


@dataclass(slots=True)
class Tally:
    """``high`` (nodes, signals), NaN where not judged; ``capacity`` (nodes, signals). Nothing before ``start`` counts.

    ``seconds``: how long the simulation will last."""

    high: FloatArray
    capacity: FloatArray
    start: float
    seconds: float
    ticks: int = 0
    hot_node_s: float = 0.0
    worst_load: float = float("nan")
    spread_sum: float = 0.0
    throttled_core_s: float = 0.0
    pending_pod_s: float = 0.0
    unready_pod_s: float = 0.0
    evictions: int = 0
    refused: int = 0
    by_workload_day: Counter[tuple[int, int]] = field(default_factory=Counter)
    made_hot: int = 0
    landed_on_hot: int = 0
    returned: int = 0
    violations: int = 0
    gangs_broken: int = 0
    landings: list[Landed] = field(default_factory=list)
    """Every replacement of an evicted pod, in the order in which they were bound."""
    loads: FloatArray = field(init=False)
    """(nodes, signals) of the last tick."""
    _watched: list[Landed] = field(default_factory=list)
    _healthy: dict[int, int] = field(default_factory=dict)
    _at: float = field(default=float("nan"))
    _stretches: list[_Stretch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loads = np.full(self.high.shape, np.nan)
        self._stretches = [_Stretch() for _ in range(min(COURSE_POINTS, max(1, int(self.seconds // SHORTEST_STRETCH_S))))]

    # ---- what is told to it -----------------------------------------------------------------------------------------------

    def observe(self, moment: Moment, *, uids: list[str]) -> None:
        self.loads = moment.load
        if moment.at <= self.start + 1e-6:
            return
        judged = np.where(np.isnan(self.high), np.nan, moment.load)
        with np.errstate(invalid="ignore"):
            hot = (judged > self.high).any(axis=1)
        worst, spread = _worst(judged), _spread(judged)
        self.ticks += 1
        self.hot_node_s += float(hot.sum()) * moment.step_s
        self.worst_load = float(np.fmax(self.worst_load, worst))
        self.spread_sum += spread
        self.throttled_core_s += moment.lacking_cores * moment.step_s
        self.pending_pod_s += moment.pending * moment.step_s
        self.unready_pod_s += moment.unready * moment.step_s
        stretch = self._stretch(moment.at)
        stretch.ticks += 1
        stretch.hot += float(hot.sum())
        stretch.worst = float(np.fmax(stretch.worst, worst))
        stretch.spread += spread
        self._blame(moment, uids)

    def answered(self, state: ClusterState, pod: int, *, accepted: bool) -> None:
        """The API server's answer to an eviction. Budgets are counted once more here, so that a violation cannot hide."""
        if not accepted:
            self.refused += 1
            return
        self.evictions += 1
        self._stretch(state.at).evictions += 1
        day = int((state.at - self.start) // 86400)
        self.by_workload_day[int(state.pods.workload[pod]), day] += 1
        self.gangs_broken += bool(state.pods.scheduling_group[pod])
        if state.at != self._at:
            self._at, self._healthy = state.at, {row: budget.current_healthy for row, budget in enumerate(state.budgets)}
        if not state.pods.ready[pod] or state.pods.terminating[pod]:
            return
        for row in state.pods.budgets[pod]:
            self._healthy[row] -= 1
            self.violations += self._healthy[row] < state.budgets[row].desired_healthy

    def landed(self, landed: Landed) -> None:
        self.landings.append(landed)
        self.returned += landed.node == landed.source
        with np.errstate(invalid="ignore"):
            hot = bool((self.loads[landed.node] > self.high[landed.node]).any())
        if hot:
            self.landed_on_hot += 1
        else:
            self._watched.append(landed)

    # ---- what it says -----------------------------------------------------------------------------------------------------

    @property
    def mean_hot_nodes(self) -> float:
        return self.hot_node_s / self.seconds if self.seconds else 0.0

    @property
    def mean_spread(self) -> float:
        return self.spread_sum / self.ticks if self.ticks else float("nan")

    def course(self) -> tuple[CoursePoint, ...]:
        """Stretches in which nothing was seen are left out."""
        hours = self.seconds / 3600 / len(self._stretches)
        return tuple(
            CoursePoint((number + 1) * hours, one.hot / one.ticks, one.worst, one.spread / one.ticks, one.evictions)
            for number, one in enumerate(self._stretches)
            if one.ticks
        )

    def _stretch(self, at: float) -> _Stretch:
        number = int((at - self.start) / max(self.seconds, 1e-9) * len(self._stretches) - 1e-9)
        return self._stretches[min(max(number, 0), len(self._stretches) - 1)]

    def _blame(self, moment: Moment, uids: list[str]) -> None:
        """Which of the replacements that landed lately made their node hot, together with the others that landed there."""
        self._watched = [one for one in self._watched if moment.at <= one.running_at + BLAME_S and uids[one.row] == one.uid]
        if not self._watched:
            return
        brought: dict[int, FloatArray] = {}
        for one in self._watched:
            place = int(np.searchsorted(moment.rows, one.row))
            if place < len(moment.rows) and moment.rows[place] == one.row:
                brought[one.node] = brought.get(one.node, np.zeros(self.high.shape[1])) + moment.demand[place]
        guilty: set[int] = set()
        for node, amount in brought.items():
            load, high = moment.load[node], self.high[node]
            with np.errstate(invalid="ignore"):
                if ((load > high) & (load - amount / self.capacity[node] <= high)).any():
                    guilty.add(node)
        self.made_hot += sum(one.node in guilty for one in self._watched)
        self._watched = [one for one in self._watched if one.node not in guilty]


def _worst(judged: FloatArray) -> float:
    return float(np.nanmax(judged)) if np.isfinite(judged).any() else float("nan")


def _spread(judged: FloatArray) -> float:
    """The largest population standard deviation of a judged signal's loads."""
    known = np.isfinite(judged)
    count = known.sum(axis=0)
    if not count.any():
        return float("nan")
    columns = judged[:, count > 0]
    return float(np.nanstd(columns, axis=0).max())
