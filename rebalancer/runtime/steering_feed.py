"""What the extender is fed with: from what is known of nodes, pods and moves to the one snapshot that requests are answered from.

A pass looks at what has changed and costs as much as that; it runs some times a second and makes a view of the nodes when there is news, or
when the last one needs a newer date. The date of a view is that of the knowledge in it: while the API server is gone the last view stays,
grows old, and is given up when it is older than the settings allow. Nothing here waits for a network: what does is in threads of its own.

Requests are answered by other threads, from the snapshot that stands when they come. All they change is who holds a reservation.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import structlog

from rebalancer.collect.bound_pods import BoundColumns, BoundPods, settled
from rebalancer.collect.kept_lists import KeptLists, Known
from rebalancer.collect.node_columns import NodeColumns, NodeTable
from rebalancer.kube.lists import Resource
from rebalancer.kube.resources import NODE_LOADS
from rebalancer.kube.wire_steering import ConfigMapWire, NodeLoadWire
from rebalancer.runtime.clock import Clock
from rebalancer.runtime.extender_metrics import ExtenderMetrics
from rebalancer.runtime.feed_notes import FeedNotes
from rebalancer.runtime.judges import Judges
from rebalancer.runtime.planned_moves import PlannedMoves
from rebalancer.settings.model import ExtenderSettings
from rebalancer.state.arrays import IntArray
from rebalancer.steer.extender import Chosen, Steering
from rebalancer.steer.node_view import UNKNOWN_NODE, Bindings, NodeView, node_view
from rebalancer.steer.own_score import bound_load
from rebalancer.steer.reservations import Arrival, Reservations

WINDOW_S = 300.0
"""Of the means in both annotations."""
LIFE_S = 3600.0
"""How long a mean may be good for at most; a pod that was bound a window and this ago is in every mean that counts."""
RENEW_S = 5.0
"""How old a view without news may become before it gets a newer date."""
FILES_S = 5.0
NOTES_S = 10.0
MOST_ARRIVALS = 20_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known, kept current by others. ``state``: the controller's ConfigMap; None where no room is reserved. ``server_now``: Unix
    seconds by the API server's clock, None while it has not told."""

    kept: KeptLists
    bound: BoundPods
    judges: Judges
    state: Resource[ConfigMapWire] | None = None
    server_now: Callable[[], float | None] = lambda: None


class SteeringFeed:
    """``monotonic``: seconds of the clock by which the sources date what they know."""

    def __init__(
        self,
        sources: Sources,
        settings: ExtenderSettings,
        *,
        clock: Clock,
        metrics: ExtenderMetrics,
        notes: FeedNotes,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources, self._settings, self._clock, self._monotonic = sources, settings, clock, monotonic
        self._metrics, self._notes = metrics, notes
        self._table = NodeTable(sources.judges.reading())
        self._moves = PlannedMoves()
        self._lock = threading.Lock()
        self._steering = Steering(
            view=None,
            judge=None,
            may_refuse_all=settings.refuse_all,
            oldest_view_s=settings.oldest_view,
            reservations=Reservations(lasts_s=settings.reservation),
        )
        self._seen_pods: BoundColumns | None = None
        self._recent: deque[Arrival] = deque(maxlen=MOST_ARRIVALS)
        self._files_at = monotonic() + FILES_S
        self._notes_at = 0.0
        self._was_ready: bool | None = None
        self.passed_at = monotonic()
        """Of the last pass that came to its end."""

    # ---- for those who answer ---------------------------------------------------------------------------------------------

    def steering(self) -> Steering:
        return self._steering

    def hold(self, chosen: Chosen) -> bool:
        """The reservation is the pod's for some seconds; False when it is another's."""
        with self._lock:
            now, steering = self._clock.now(), self._steering
            held = steering.reservations.with_hold(chosen.reservation, pod_uid=chosen.pod_uid, now=now)
            if held is not None:
                self._steering = replace(steering, reservations=held)
            return held is not None

    # ---- for the thread that feeds ----------------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """Passes, until ``stop`` is set."""
        failures = 0
        while not stop.is_set():
            try:
                self.step()
                failures = 0
            except Exception:
                # Views grow old and are given up, so that nobody is judged by what is no longer true.
                if not failures:
                    log.exception("a defect of this program in feeding the extender; it is tried again")
                failures += 1
            stop.wait(self._settings.refresh if not failures else max(1.0, self._settings.refresh))

    def step(self) -> None:
        """One pass."""
        now, at = self._clock.now(), self._monotonic()
        changed = self._follow_files(at)
        self._follow_moves(now)
        known = self._sources.kept.known(NODE_LOADS)
        if known is not None and self._is_plausible(known):
            changed = self._table.look(known.items) or changed
            changed = changed or self._sources.bound.columns() is not self._seen_pods
            if changed or self._date(known, now=now, at=at) - self._made_at() >= RENEW_S:
                self._publish(known, now=now, at=at)
        self._say(now, at)
        self.passed_at = self._monotonic()

    def _is_plausible(self, known: Known[NodeLoadWire]) -> bool:
        """A cluster that has lost all its nodes at once is more likely an API server that has lost its data."""
        view = self._steering.view
        return bool(known.items) or view is None or not view.names

    def _follow_files(self, at: float) -> bool:
        if at < self._files_at:
            return False
        self._files_at = at + FILES_S
        if not self._sources.judges.refresh():
            return False
        self._table.read_as(self._sources.judges.reading())
        return True

    def _follow_moves(self, now: float) -> None:
        """Whose room is reserved, by the controller's own record, and which pods have come to take it.

        Of a replacement is expected what the pod that it replaces was measured to use.
        """
        state, bound = self._sources.state, self._sources.bound
        known = None if state is None else self._sources.kept.known(state)
        came = bound.arrivals()
        self._recent.extend(came)
        while self._recent and self._recent[0].at < now - self._settings.reservation:
            self._recent.popleft()
        if known is not None and self._moves.look(known.items):
            planned = self._moves.reservations
            self._change(lambda reservations: reservations.with_planned(planned, now=now))
            came = list(self._recent)  # one of them may have come before the news of the move
        if came:
            used = self._change(lambda reservations: reservations.with_arrivals(came))
            uses = {each.key: each.use for each in self._steering.reservations.planned}
            bound.expect({uid: uses[key] for key, uid in used.items()})

    def _change(self, change: Callable[[Reservations], Reservations]) -> dict[str, str]:
        """Change the reservations; which were used up by it: key -> uid of the pod."""
        with self._lock:
            before = self._steering.reservations
            after = change(before)
            self._steering = replace(self._steering, reservations=after)
        return {key: uid for key, uid in after.used.items() if before.used.get(key) != uid}

    # ---- views ------------------------------------------------------------------------------------------------------------

    def _made_at(self) -> float:
        view = self._steering.view
        return -np.inf if view is None else view.made_at

    def _date(self, known: Known[NodeLoadWire], *, now: float, at: float) -> float:
        return now - (at - known.at)

    def _publish(self, known: Known[NodeLoadWire], *, now: float, at: float) -> None:
        columns, pods = self._table.columns, self._sources.bound.columns()
        self._seen_pods = pods
        view, row = _view(columns, pods, made_at=self._date(known, now=now, at=at))
        judge = self._sources.judges.judge(columns, now=now)
        with self._lock:
            self._steering = replace(self._steering, view=view, judge=judge)
        done = settled(
            pods,
            row=row,
            measured_at=columns.own.written_at,
            window_s=WINDOW_S,
            oldest=now - keeps_for_s(self._sources.judges),
            wanted_since=now - self._sources.judges.counts_for_s,
        )
        self._sources.bound.forget(done)

    # ---- words ------------------------------------------------------------------------------------------------------------

    def _say(self, now: float, at: float) -> None:
        steering = self._steering
        ready = steering.ready(now=now)
        self._metrics.knows(reservations=steering.reservations.open(now=now), anticipated=len(self._sources.bound))
        if self._sources.bound.watching:
            self._notes.watching_pods()
        if ready and not self._was_ready:
            log.info("steering", nodes=len(self._table.columns.names), reservations=steering.reservations.open(now=now))
        elif self._was_ready and not ready:
            log.warning(
                "abstaining: every node passes and all score alike, for nothing newer is known", oldest_view_s=steering.oldest_view_s
            )
        self._was_ready = ready
        if at >= self._notes_at and steering.view is not None:
            self._notes_at = at + NOTES_S
            self._notes.look_at(self._table.columns, now=now, server_now=self._sources.server_now())


def keeps_for_s(judges: Judges) -> float:
    """How long a pod is remembered that nothing else lets be forgotten."""
    return max(WINDOW_S + LIFE_S, judges.counts_for_s)


def _view(columns: NodeColumns, pods: BoundColumns, *, made_at: float) -> tuple[NodeView, IntArray]:
    """The view, and the row of each pod's node in it."""
    row = np.fromiter((columns.rows.get(name, UNKNOWN_NODE) for name in pods.names), dtype=np.int64, count=len(pods.names))
    bound = bound_load(
        node=row, bound_at=pods.at, use=pods.use, capacity=columns.machine, measured_at=columns.own.written_at, window_s=WINDOW_S
    )
    view = node_view(
        columns.names,
        crane=columns.crane,
        own=columns.own,
        made_at=made_at,
        capacity=columns.machine,
        bound=bound,
        bindings=Bindings(node=row, at=pods.at),
        rows=columns.rows,
    )
    return view, row
