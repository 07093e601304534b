"""Which node annotations are to be written now, and which taken off: the difference between what is known and what the nodes say.

Pure: what stands on the nodes comes in with the loads, so a restart forgets nothing, and what is right already is not written.

A value is written when its reader would be wrong without it:

- there is none, or none that can be read, or its time lies ahead: somebody wrote it by another zone;
- its life is nearly over (`margin_s`);
- it has changed by `NOTICED` or more and is as old as its period, the rhythm that crane-scheduler itself has;
- it has changed by `JUMP`, or has crossed a limit of the policy: that does not wait for a period.

`NOTICED` is half a point of a score of 0 to 100. A node that gets a patch for one value gets all that are newer: they cost nothing there.

What is unknown is not written. Its old value stays for as long as it is fresh, since it was true of its time and says so. Once it is stale
it is taken off: a reader whose clock or zone is off would go on believing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.steer.crane_policy import EXTRA_ACTIVE_S, CranePolicy
from rebalancer.steer.load_annotations import HOT_FRESH_S, HOT_VALUE, SERIES, LoadColumns, format_hot_value, format_load, read_nodes
from rebalancer.steer.node_loads import NodeLoads
from rebalancer.steer.own_annotation import LOAD, NodeLoad, OwnColumns, SignalLoad, format_node_load, read_node_loads

CRANE_KEYS = (*SERIES, HOT_VALUE)
NOTICED = 0.005
JUMP = 0.05
AHEAD_S = 60.0
"""A time that lies further ahead is one of another zone, or of a clock that is off."""
OWN_RHYTHM_S = 180.0
"""As that of the five-minute means of crane-scheduler."""
_MEANS = [column for column, name in enumerate(SERIES) if name.endswith("_avg_5m")]
_SAME_S = 1.0
"""Times are written in whole seconds."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the policy asks for. ``interval_s``: time between two looks, within which a value must not run out."""

    own: bool
    crane: bool
    zone: tzinfo
    crane_policy: CranePolicy
    expiry_s: float
    interval_s: float


@dataclass(frozen=True, slots=True)
class NodePatch:
    """``values``: annotation -> value, None to take it off. ``left``: share of life that its stalest value has left; -inf: none stands."""

    row: int
    node: str
    values: Mapping[str, str | None]
    left: float

    @property
    def removes_only(self) -> bool:
        return all(value is None for value in self.values.values())


@dataclass(frozen=True, slots=True)
class AnnotationWork:
    """``patches``: those that are nearest to their end first. ``oldest_s``: kind -> age of the oldest five-minute mean, NaN for none."""

    patches: tuple[NodePatch, ...]
    oldest_s: Mapping[str, float] = field(default_factory=dict)


def annotation_work(
    names: Sequence[str],
    present: Sequence[Mapping[str, str]],
    loads: NodeLoads,
    wanted: Wanted,
    *,
    cared_for: BoolArray,
    leaving: BoolArray,
    crane_ours: BoolArray,
    at: float,
) -> AnnotationWork:
    """``present``: the annotations of each node. ``cared_for`` (nodes,): the node is ours to annotate; ``leaving``: it was, and loses what
    we put there; all others keep what they have. ``crane_ours`` (nodes,): nobody else writes crane's keys there. ``at``: Unix seconds.
    """
    crane = _Crane(read_nodes(present, zone=wanted.zone), loads, wanted, at=at)
    own = _Own(read_node_loads(present), loads, wanted, at=at)
    may_crane = cared_for & crane_ours
    patches: list[NodePatch] = []
    asked = _asked_for(wanted)
    left = np.where(cared_for & own.due, own.left, np.inf)
    left = np.minimum(left, np.where(may_crane & crane.due, crane.left_of_due, np.inf))
    for row in np.flatnonzero(cared_for).tolist():
        values: dict[str, str | None] = {}
        if own.due[row] or (crane.due[row] and crane_ours[row]):
            values |= own.values(row)
            values |= crane.values(row) if crane_ours[row] else {}
        values |= _unwanted(present[row], asked, crane_ours=bool(crane_ours[row]))
        if values:
            patches.append(NodePatch(row, names[row], values, float(left[row])))
    patches += [
        NodePatch(row, names[row], values, np.inf)
        for row in np.flatnonzero(leaving & ~cared_for).tolist()
        if (values := dict.fromkeys(keys_of_ours(present[row], crane_ours=bool(crane_ours[row]))))
    ]
    patches.sort(key=lambda patch: patch.left)
    return AnnotationWork(tuple(patches), {"own": own.oldest_s(cared_for), "crane": crane.oldest_s(may_crane)})


def keys_of_ours(present: Mapping[str, str], *, crane_ours: bool) -> list[str]:
    """The annotations of this module's that stand on a node and are ours to take off."""
    return [key for key in (LOAD, *(CRANE_KEYS if crane_ours else ())) if key in present]


def _asked_for(wanted: Wanted) -> frozenset[str]:
    own = (LOAD,) if wanted.own else ()
    crane = (HOT_VALUE, *(name for name in SERIES if wanted.crane_policy.fresh_for_s(name) > 0)) if wanted.crane else ()
    return frozenset((*own, *crane))


def _unwanted(present: Mapping[str, str], asked: frozenset[str], *, crane_ours: bool) -> dict[str, str | None]:
    """What stands there and is asked for no more."""
    return dict.fromkeys(key for key in keys_of_ours(present, crane_ours=crane_ours) if key not in asked)


def margin_s(life_s: FloatArray, *, interval_s: float) -> FloatArray:
    """How long before its end a value is renewed: so that two further looks may fail, but not before half of its life."""
    return np.minimum(life_s / 2, 2 * interval_s + 60.0)


class _Crane:
    """The six series and the hot value: (nodes, series) each."""

    def __init__(self, there: LoadColumns, loads: NodeLoads, wanted: Wanted, *, at: float) -> None:
        self._wanted, self._loads = wanted, loads
        self._hot_at = at
        self._written_at = np.where(np.isfinite(there.usage), there.written_at, np.nan)
        self._value, self._measured_at = loads.series(SERIES)
        life = np.array([wanted.crane_policy.fresh_for_s(name) for name in SERIES], dtype=np.float64)
        asked = life > 0
        if not wanted.crane:
            asked = np.zeros_like(asked)
        known = np.isfinite(self._value) & asked
        with np.errstate(invalid="ignore"):
            ahead = self._written_at > at + AHEAD_S
            stands = np.isfinite(self._written_at) & ~ahead
            age = at - self._written_at
            left_s = np.where(stands, life - age, -np.inf)
            newer = known & (~stands | (self._measured_at > self._written_at + _SAME_S))
            change = np.abs(self._value - there.usage)
            due = newer & (
                ~stands
                | (left_s <= margin_s(life, interval_s=wanted.interval_s))
                | ((change >= NOTICED) & (age >= life - EXTRA_ACTIVE_S))
                | (change >= JUMP)
                | _crossed(wanted.crane_policy, there.usage, self._value)
            )
            self._stale = np.isfinite(there.usage) & asked & ~np.isfinite(self._value) & (left_s <= 0)
            share = np.divide(left_s, life, out=np.full(left_s.shape, -np.inf), where=asked & stands)
        self._newer, self._age = newer, np.where(stands & asked, age, np.nan)
        self._hot_due = self._judge_hot(there, at=at) if wanted.crane else np.zeros(len(loads.hot), dtype=np.bool_)
        self.due: BoolArray = due.any(axis=1) | self._stale.any(axis=1) | self._hot_due
        self.left_of_due: FloatArray = np.where(due, share, np.inf).min(axis=1, initial=1.0)

    def _judge_hot(self, there: LoadColumns, *, at: float) -> BoolArray:
        """A hot value that is stale is read as 0, so that a node to which nothing is bound needs none."""
        with np.errstate(invalid="ignore"):
            age = at - there.hot_written_at
            fresh = np.isfinite(there.hot) & (age < HOT_FRESH_S) & (age > -AHEAD_S)
            read = np.where(fresh, there.hot, 0.0)
            hot = self._loads.hot
            ends = fresh & (HOT_FRESH_S - age <= margin_s(np.array(HOT_FRESH_S), interval_s=self._wanted.interval_s))
            return np.asarray(np.isfinite(hot) & ((hot != read) | (ends & (hot > 0))), dtype=np.bool_)

    def values(self, row: int) -> dict[str, str | None]:
        zone = self._wanted.zone
        found: dict[str, str | None] = {}
        for column, name in enumerate(SERIES):
            if self._newer[row, column]:
                found[name] = format_load(float(self._value[row, column]), at=float(self._measured_at[row, column]), zone=zone)
            elif self._stale[row, column]:
                found[name] = None
        hot = float(self._loads.hot[row])
        if np.isfinite(hot) and (self._hot_due[row] or hot > 0):
            found[HOT_VALUE] = format_hot_value(int(hot), at=self._hot_at, zone=zone)
        return found

    def oldest_s(self, rows: BoolArray) -> float:
        return _oldest(self._age[rows][:, _MEANS])


def _crossed(policy: CranePolicy, before: FloatArray, now: FloatArray) -> BoolArray:
    """(nodes, series): one of the two is over a limit of the policy and the other is not."""
    crossed = np.zeros(now.shape, dtype=np.bool_)
    for rule in policy.spec.predicate:
        if rule.limit > 0 and rule.name in SERIES:
            column = SERIES.index(rule.name)
            crossed[:, column] |= (before[:, column] > rule.limit) != (now[:, column] > rule.limit)
    return crossed & np.isfinite(before) & np.isfinite(now)


class _Own:
    """The one annotation of this project: (nodes,) each."""

    def __init__(self, there: OwnColumns, loads: NodeLoads, wanted: Wanted, *, at: float) -> None:
        self._loads, self._expiry_s, self._at, self._asked = loads, wanted.expiry_s, at, wanted.own
        self.known: BoolArray = np.asarray(np.isfinite(loads.mean).any(axis=1), dtype=np.bool_)
        with np.errstate(invalid="ignore"):
            stands = np.isfinite(there.written_at) & (there.written_at <= at + AHEAD_S)
            age = at - there.written_at
            left_s = np.where(stands, there.expires_at - at, -np.inf)
            learnt = (np.isfinite(loads.mean) != np.isfinite(there.load)).any(axis=1)
            change = _largest(np.abs(loads.mean - there.load), np.abs(loads.deviation - there.deviation))
            self._stale = np.isfinite(there.written_at) & ~self.known & (left_s <= 0)
            due = self.known & (
                ~stands
                | learnt
                | (left_s <= margin_s(np.array(wanted.expiry_s), interval_s=wanted.interval_s))
                | ((change >= NOTICED) & (age >= min(OWN_RHYTHM_S, wanted.expiry_s / 2)))
                | (change >= JUMP)
            )
        self.due: BoolArray = np.asarray((due | self._stale) & wanted.own, dtype=np.bool_)
        self.left: FloatArray = left_s / wanted.expiry_s
        self._age = np.where(stands, age, np.nan)

    def values(self, row: int) -> dict[str, str | None]:
        """Empty for a node of which there is nothing new to say."""
        if not self._asked or not (self.known[row] or self._stale[row]):
            return {}
        if self._stale[row]:
            return {LOAD: None}
        signals = {name: SignalLoad(mean, hour, day, deviation) for name, mean, hour, day, deviation in self._loads.of_node(row)}
        return {LOAD: format_node_load(NodeLoad(self._at, self._at + self._expiry_s, signals))}

    def oldest_s(self, rows: BoolArray) -> float:
        return _oldest(self._age[rows])


def _largest(*changes: FloatArray) -> FloatArray:
    """(nodes,) of (nodes, k) each; NaN counts as no change."""
    return np.asarray(np.nan_to_num(np.concatenate(changes, axis=1)).max(axis=1, initial=0.0), dtype=np.float64)


def _oldest(ages: FloatArray) -> float:
    known = ages[np.isfinite(ages)]
    return float(known.max()) if len(known) else float("nan")
