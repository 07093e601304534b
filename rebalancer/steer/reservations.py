"""Room that planned moves have reserved: who it is for, for how long, and what others see of it.

A planned move is an eviction whose replacement has not come. While its reservation lasts, a pod of the same workload scores highest on the
planned node and lowest everywhere else: kube-scheduler adds points of its own, up to some hundreds, so anything in between would be
outvoted. For all other pods the room counts as if it were used, in the filter and in the score.

One reservation is for one pod. It is used up by the first pod of its workload that is seen bound after the eviction, wherever that went.
Until then a reservation that an answer has counted on is held for the pod that asked, for some seconds, so that two replacements of one
workload take one each. A hold is known to the process that answered; kube-scheduler keeps its connection and so stays with it.

Whatever is wrong about a reservation, no pod is refused everywhere because of it: `steered_verdict` gives way first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray, frozen
from rebalancer.state.tables import WorkloadRef
from rebalancer.steer.judging import Judge, PodAsk, Verdict
from rebalancer.steer.lineage import Lineage
from rebalancer.steer.node_view import UNKNOWN_NODE, NodeView, Room
from rebalancer.steer.own_annotation import SIGNALS
from rebalancer.steer.own_score import EXTENDER_MAXIMUM

HOLD_S = 10.0
"""A pod that was answered is bound within a second, or asks again."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """``key`` is the uid of the pod that was evicted; ``use``: signal -> what the replacement is expected to use, in the signal's unit."""

    key: str
    workload: WorkloadRef | None
    controller_uid: str
    namespace: str
    node: str
    since: float
    """Unix seconds of the eviction."""
    use: Mapping[str, float] = field(default_factory=dict)

    def is_for(self, pod: Lineage) -> bool:
        """Of the same controller, or of the same workload."""
        if pod.namespace != self.namespace:
            return False
        return (bool(pod.controller_uid) and pod.controller_uid == self.controller_uid) or pod.workload == self.workload


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that was seen bound. ``at``: Unix seconds, which the API server gives in whole ones."""

    pod: Lineage
    node: str
    at: float


@dataclass(frozen=True, slots=True)
class Hold:
    pod_uid: str
    until: float


@dataclass(frozen=True, slots=True)
class Reservations:
    """A value: each change makes another one. ``used``: key -> uid of the pod that came. The arrays are row by row of ``planned``."""

    planned: tuple[Reservation, ...] = ()
    lasts_s: float = 300.0
    used: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, Hold] = field(default_factory=dict)
    _use: FloatArray = field(default_factory=lambda: np.empty((0, len(SIGNALS))), repr=False, compare=False)
    _until: FloatArray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def with_planned(self, planned: Iterable[Reservation], *, now: float) -> Reservations:
        """The moves that are open now. A time ahead of ours is a clock that is off, and makes no reservation last longer."""
        planned = tuple(replace(each, since=min(each.since, now)) for each in planned)
        before = {each.key: each for each in self.planned}
        kept = tuple(before.get(each.key, each) for each in planned)
        use = np.array([[each.use.get(name, np.nan) for name in SIGNALS] for each in kept]).reshape(len(kept), len(SIGNALS))
        until = np.array([each.since + self.lasts_s for each in kept], dtype=np.float64)
        frozen(use)
        frozen(until)
        keys = {each.key for each in kept}
        return replace(
            self,
            planned=kept,
            used={key: uid for key, uid in self.used.items() if key in keys},
            held={key: hold for key, hold in self.held.items() if key in keys and hold.until > now},
            _use=use,
            _until=until,
        )

    def with_arrivals(self, arrivals: Iterable[Arrival]) -> Reservations:
        """Each pod uses up one reservation: the one that is held for it, else one for the node that it went to, else the oldest."""
        used = dict(self.used)
        came = set(used.values())
        awaited = {each.controller_uid for each in self.planned} | {each.workload for each in self.planned}
        for arrival in arrivals:
            if arrival.pod.uid in came or (arrival.pod.controller_uid not in awaited and arrival.pod.workload not in awaited):
                continue
            mine = [r for r in self.planned if r.key not in used and arrival.at >= math.floor(r.since) and r.is_for(arrival.pod)]
            if mine:
                uid, node = arrival.pod.uid, arrival.node
                best = min(mine, key=lambda r: (not self._holds(r.key, uid), r.node != node, r.since, r.key))
                used[best.key] = uid
                came.add(uid)
        return self if len(used) == len(self.used) else replace(self, used=used)

    def with_hold(self, key: str, *, pod_uid: str, now: float) -> Reservations | None:
        """The reservation is the pod's for `HOLD_S`. None when it has become another pod's meanwhile: then choose again."""
        other = self.held.get(key)
        taken = other is not None and other.pod_uid != pod_uid and other.until > now
        if taken or key in self.used or all(each.key != key for each in self.planned):
            return None
        return replace(self, held={**self.held, key: Hold(pod_uid, now + HOLD_S)})

    def choice(self, pod: Lineage | None, nodes: Sequence[str], *, now: float) -> Reservation | None:
        """The reservation that is the pod's to take up on one of these nodes: the one that it holds, else the oldest that is free."""
        if pod is None or not self.planned or pod.uid in self.used.values():
            return None
        lasting = (r for r, until in zip(self.planned, self._until.tolist(), strict=True) if until > now and r.key not in self.used)
        mine = [r for r in lasting if r.is_for(pod) and r.node in nodes and self._free_for(r.key, pod.uid, now)]
        return min(mine, key=lambda r: (not self._holds(r.key, pod.uid), r.since, r.key), default=None)

    def room(self, view: NodeView, *, now: float, without: Reservation | None = None) -> Room | None:
        """The shares of nodes that are reserved for others; None when nothing is.

        What is unknown, of the use or of the node, adds nothing: the node is judged without it.
        """
        if not self.planned:
            return None
        rows = view.rows_of([each.node for each in self.planned])
        ours = "" if without is None else without.key
        free = np.array([each.key not in self.used and each.key != ours for each in self.planned], dtype=np.bool_)
        here = np.flatnonzero((rows != UNKNOWN_NODE) & free & (self._until > now))
        if not len(here):
            return None
        capacity = view.capacity[rows[here]]
        share = np.divide(self._use[here], capacity, out=np.zeros((len(here), len(SIGNALS))), where=capacity > 0)
        return Room(rows[here], np.maximum(0.0, np.nan_to_num(share, posinf=0.0, neginf=0.0)))

    def open(self, *, now: float) -> int:
        """How many wait for their replacement."""
        return sum(until > now and each.key not in self.used for each, until in zip(self.planned, self._until.tolist(), strict=True))

    def _holds(self, key: str, uid: str) -> bool:
        hold = self.held.get(key)
        return hold is not None and hold.pod_uid == uid

    def _free_for(self, key: str, uid: str, now: float) -> bool:
        hold = self.held.get(key)
        return hold is None or hold.pod_uid == uid or hold.until <= now


NOTHING_RESERVED = Reservations()


def steered_verdict(judge: Judge, reservations: Reservations, view: NodeView, names: Sequence[str], pod: PodAsk, *, now: float) -> Verdict:
    """The judge's verdict on the nodes with what is reserved for others. The pod's own planned node is never refused to it."""
    rows = view.rows_of(names)
    own = reservations.choice(pod.lineage, names, now=now)
    room = reservations.room(view, now=now, without=own)
    verdict = _sparing(judge.verdict(replace(view, room=room), rows, pod, now=now), own, names)
    if room is not None and verdict.refused.all():
        return _sparing(judge.verdict(view, rows, pod, now=now), own, names)
    return verdict


def _sparing(verdict: Verdict, own: Reservation | None, names: Sequence[str]) -> Verdict:
    return verdict if own is None else replace(verdict, refused=verdict.refused & ~_is_planned(own, names))


def steered_scores(
    judge: Judge, reservations: Reservations, view: NodeView, names: Sequence[str], pod: PodAsk, *, now: float
) -> tuple[IntArray, Reservation | None]:
    """(names,) int64 in 0..10, and the reservation that they count on, which should then be held for the pod."""
    own = None if pod.exempt else reservations.choice(pod.lineage, names, now=now)
    if own is not None:
        return np.where(_is_planned(own, names), EXTENDER_MAXIMUM, 0).astype(np.int64), own
    found = judge.scores(replace(view, room=reservations.room(view, now=now)), view.rows_of(names), pod, now=now)
    return np.clip(found, 0, EXTENDER_MAXIMUM), None


def _is_planned(own: Reservation, names: Sequence[str]) -> BoolArray:
    found = np.zeros(len(names), dtype=np.bool_)
    found[names.index(own.node)] = True
    return found
