"""The hinting beside the cycle: gated pods get their node and are let go, on the leader; on a standby they are let go when they are late.

Some threads and nothing else that could hold a pod up: one watches the gated pods, a few write, one looks at the time. They ask the API
server by a connection of their own, so that no cycle makes them wait. Hints and the announcement are written under the leadership of the
moment alone; a gate may be opened by whoever sees that its pod has waited for too long, since that only gives back what would have been
without us. Whatever fails ends with an open gate and no hint.

Where everything stands still, the announcement ends by itself (`hint_policy`), and the pods that were gated in its last seconds wait for
the next start, a standby, or `rebalancer cleanup`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import structlog

from rebalancer.act.announcing import Announcement
from rebalancer.act.ungating import let_go, propose, remove_hints
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, KubernetesError, RebalancerError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gates import gated_pods
from rebalancer.kube.watch import Watch, WatchReport, WatchTiming
from rebalancer.runtime.hint_board import HintBoard
from rebalancer.runtime.hint_readiness import hints_unready
from rebalancer.runtime.hint_table import GatedTable, Waiting
from rebalancer.runtime.leadership import Term
from rebalancer.runtime.memory import OpenMove
from rebalancer.steer.hinting import LABEL, GatedPod, Ungated, announcement, node_order, owner_label

log = structlog.get_logger(__name__)

TICK_S = 0.25
WORKERS = 4
REQUEST_S = 5.0
"""Longest time for what is asked about one pod."""
STANDBY_FACTOR = 2.0
"""A standby waits so much longer than the leader before it opens a gate."""
GOOD_FOR_S = 30.0
"""How long an announcement is good for when nobody renews it."""
RENEW_S = 10.0
SETTLE_S = 0.3
"""From a new announcement to the first eviction: every API server reads it by a watch of its own."""
JOIN_S = 0.5
TIMING = WatchTiming(server=10.0, silence=12.0, forbidden=5.0)
"""Connections are short, so that one that died unnoticed holds no pod for long."""


class HintNotes(Protocol):
    """Who is told what became of gated pods, from any thread."""

    def gated(self) -> None: ...

    def ungated(self, result: Ungated, *, since_creation_s: float, since_sight_s: float | None) -> None:
        """``since_sight_s``: None for a pod that was not watched."""

    def at_the_gate(self, pods: int) -> None: ...


class HintKeeper:
    """`start` once, `follow` whenever the policy may have changed, `lead` before each cycle of a leadership, `close` at the end."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        lease: str,
        notes: HintNotes,
        report: WatchReport,
        timing: WatchTiming = TIMING,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``lease``: the name of the controller's Lease, and of its announcement."""
        self.board = HintBoard()
        self._client, self._notes, self._report, self._timing = client, notes, report, timing
        self._namespace, self._name, self._owner = namespace, lease, owner_label(namespace=namespace, lease=lease)
        self._clock, self._wall = clock, wall
        self._announcement = Announcement(client, namespace=namespace, name=self._name)
        self._writing = threading.Lock()
        self._said: frozenset[tuple[str, str]] = frozenset()
        self._renew_at = 0.0
        self._term: Callable[[], Term | None] = lambda: None
        self._wait_s = 5.0
        self._running: _Running | None = None

    def start(self, term: Callable[[], Term | None]) -> None:
        """``term``: the leadership of the moment, None on a standby."""
        self._term = term

    def alive(self) -> bool:
        """True while every thread runs, or hints are off."""
        running = self._running
        return running is None or all(thread.is_alive() for thread in running.threads)

    @property
    def on(self) -> bool:
        return self._running is not None

    def follow(self, *, hints: bool, wait_s: float) -> None:
        """Begin or end, as the policy says now. ``wait_s``: the longest time that a pod waits for its hint."""
        self._wait_s = wait_s
        if hints and self._running is None:
            self._begin()
        elif not hints and self._running is not None:
            self._end(clean_up=self._term() is not None, within_s=REQUEST_S)

    def close(self, *, within_s: float) -> None:
        """End. What an earlier leader left is its successor's: a standby takes nothing off."""
        if self._running is not None:
            self._end(clean_up=self._term() is not None, within_s=within_s)

    # ---- for the cycle ------------------------------------------------------------------------------------------------

    def lead(self, term: Term) -> None:
        """A cycle begins under this leadership. Never raises: when the earlier leader's announcement is unknown, all open moves wait."""
        if self.board.begun(term) or not self.on:
            return
        waiting: frozenset[str] | None = None
        with self._writing:
            try:
                waiting = self._announcement.read(deadline=Deadline.after(REQUEST_S))
            except RebalancerError as error:
                log.warning("what an earlier leader announced is not known", error=str(error))
            self._said, self._renew_at = frozenset(), 0.0
        self.board.begin(term, waiting)

    def unready(self, *, deadline: Deadline) -> str:
        """See `hint_port.Hints`. Without a look that the admission policy is there, plans would count on what does not happen."""
        if not self.on:
            return "placement hints are not counted on: they are only being switched on"
        why = hints_unready(self._client, namespace=self._namespace, name=self._name, deadline=deadline.at_most(REQUEST_S))
        return why and f"placement hints are not counted on: {why}"

    def announce(self, moves: Sequence[OpenMove], *, deadline: Deadline) -> str:
        """Have the API server gate the replacements of these moves, before the first of them is carried out. Why it does not, in words;
        empty when it does. Raises Interrupted."""
        if not self.on:
            return "placement hints are off"
        self.board.plan(moves)
        before = self._said
        try:
            self._sync(deadline=deadline.at_most(REQUEST_S))
        except KubernetesError as error:
            return f"placement hints cannot be announced: {error}"
        if not self._said <= before:
            deadline.wait(SETTLE_S)
        return ""

    def show(self, moves: Sequence[OpenMove], *, hot: Collection[str]) -> None:
        self.board.show(moves, hot=hot)

    def expect(self, move: OpenMove) -> None:
        self.board.expect(move)

    def withdraw(self, move: OpenMove) -> None:
        self.board.withdraw(move)

    def carried_out(self) -> None:
        self.board.plan(())

    # ---- threads ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        running = _Running(self._client, owner=self._owner, report=self._report, notes=self._notes, timing=self._timing, clock=self._clock)
        self._running = running
        jobs: list[tuple[str, Callable[[], None]]] = [("watch", running.watch.run), ("time", lambda: self._mind_the_time(running))]
        jobs += [(f"{number}", lambda: self._work(running)) for number in range(WORKERS)]
        running.threads = [threading.Thread(target=job, name=f"hints-{name}", daemon=True) for name, job in jobs]
        for thread in running.threads:
            thread.start()
        log.info("placement hints are on", label=f"{LABEL}={self._owner}", announcement=self._announcement.place)

    def _end(self, *, clean_up: bool, within_s: float) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        deadline = Deadline.after(within_s)
        running.close()
        if clean_up:
            self._clean_up(deadline=deadline)
        self.board = HintBoard()

    def _clean_up(self, *, deadline: Deadline) -> None:
        with self._writing:
            self._said, self._renew_at = frozenset(), 0.0
            try:
                notes = remove_hints(
                    self._client,
                    namespace=self._namespace,
                    announcement=self._name,
                    owner=self._owner,
                    search=f"{LABEL}={self._owner}",
                    deadline=deadline,
                    opened=lambda pod: self._count(pod, Ungated.LEFTOVER, since_sight_s=None),
                )
            except RebalancerError as error:
                log.warning("pods may wait at a gate of ours; `rebalancer cleanup` opens it", error=str(error))
                return
        for note in notes:
            log.info("note", text=note)

    def _mind_the_time(self, running: _Running) -> None:
        while not running.stop.wait(TICK_S):
            try:
                self._tick(running)
            except Exception:  # whatever it is, the next look at the time starts afresh
                log.exception("a defect of this program beside the hinting")

    def _tick(self, running: _Running) -> None:
        term = self._term()
        leads = term is not None and self.board.shown(term)
        limit_s = self._wait_s * (1.0 if term is not None else STANDBY_FACTOR)
        for key in running.table.due(limit_s=limit_s, undecided=leads):
            running.arrivals.put(key)
        self._notes.at_the_gate(len(running.table))
        if term is not None and self.board.begun(term) and not term.refusal():
            try:
                self._sync(deadline=Deadline.after(REQUEST_S, stop=running.stop))
            except RebalancerError as error:
                log.warning("the announcement of placement hints could not be written", error=str(error))
                self._renew_at = self._clock() + 1.0

    def _work(self, running: _Running) -> None:
        while (key := running.arrivals.get()) is not None:
            waiting = running.table.begin(key)
            if waiting is None:
                continue
            over = False
            try:
                over = self._settle(running, waiting)
            except Interrupted:
                pass  # hints end; whoever ends them opens the gates
            except Exception:  # whatever it is, the pod is tried again
                log.exception("a defect of this program at a gated pod", pod=waiting.pod.key)
                running.table.failed(waiting)
                waiting.result = waiting.result or Ungated.LATE
            finally:
                running.table.end(waiting, over=over)

    # ---- one pod ------------------------------------------------------------------------------------------------------

    def _settle(self, running: _Running, waiting: Waiting) -> bool:
        """Decide about the pod, and let it go. True when it is done with."""
        deadline = Deadline.after(REQUEST_S, stop=running.stop)
        if waiting.result is None:
            self._decide(waiting, deadline=deadline)
        if waiting.result is None:
            return False
        try:
            there = let_go(self._client, waiting.pod, deadline=deadline)
        except RebalancerError as error:
            running.table.failed(waiting)
            if waiting.failures in (1, 10):
                log.warning("a scheduling gate could not be opened; it is tried again", pod=waiting.pod.key, error=str(error))
            return False
        if not there:
            if waiting.move is not None:
                self.board.give_back(waiting.move)
            return True
        self._tell(waiting)
        return True

    def _decide(self, waiting: Waiting, *, deadline: Deadline) -> None:
        pod, term = waiting.pod, self._term()
        if term is not None and self.board.shown(term) and not term.refusal():
            move = self.board.take(pod)
            if move is None:
                waiting.result = Ungated.NOT_AWAITED
                return
            waiting.move = move
            waiting.result, words = propose(self._client, pod, node_order(move, self.board.hot), deadline=deadline)
            if waiting.result is Ungated.HINTED:
                waiting.node = words
            else:
                log.warning("a replacement gets no hint", pod=pod.key, reason=words)
            return
        limit_s = self._wait_s * (1.0 if term is not None else STANDBY_FACTOR)
        if waiting.waited_s(self._clock()) >= limit_s:
            waiting.result = Ungated.LATE

    def _tell(self, waiting: Waiting) -> None:
        result, waited_s = waiting.result or Ungated.LATE, self._clock() - waiting.seen_at
        self._count(waiting.pod, result, since_sight_s=waited_s)
        log.info("ungated", pod=waiting.pod.key, result=result.value, node=waiting.node, seconds=round(waited_s, 3))

    def _count(self, pod: GatedPod, result: Ungated, *, since_sight_s: float | None) -> None:
        self._notes.ungated(result, since_creation_s=max(0.0, self._server_now() - pod.created_at), since_sight_s=since_sight_s)

    def _server_now(self) -> float:
        """Unix seconds by the API server's clock, which stamps pods and reads announcements; by ours while it has not told."""
        told = self._client.server_now
        return self._wall() if told is None else told

    # ---- the announcement ---------------------------------------------------------------------------------------------

    def _sync(self, *, deadline: Deadline) -> None:
        """Make the announcement say what the board says, and renew it in time. Raises KubernetesError and Interrupted."""
        with self._writing:
            moves = self.board.announced()
            wanted = frozenset((move.controller_uid, move.pod_uid) for move in moves)
            now = self._clock()
            if wanted == self._said and (not wanted or now < self._renew_at):
                return
            if not wanted:
                self._announcement.withdraw(deadline=deadline)
            else:
                self._announcement.write(announcement(moves, until=self._server_now() + GOOD_FOR_S), deadline=deadline)
            self._said, self._renew_at = wanted, now + RENEW_S


class _Running:
    """The threads of hints that are on, and what they share."""

    def __init__(
        self,
        client: KubeClient,
        *,
        owner: str,
        report: WatchReport,
        notes: HintNotes,
        timing: WatchTiming,
        clock: Callable[[], float],
    ) -> None:
        self.stop = threading.Event()
        self.arrivals: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._notes = notes
        resource = gated_pods(f"{LABEL}={owner}")
        self.table = GatedTable(client, resource, report=report, arrived=self._arrived, clock=clock)
        self.watch = Watch(client, resource, self.table, stop=self.stop, report=report, timing=timing, clock=clock)
        self.threads: list[threading.Thread] = []

    def close(self) -> None:
        self.stop.set()
        self.watch.break_off()
        for _ in range(WORKERS):
            self.arrivals.put(None)
        until = time.monotonic() + JOIN_S
        for thread in self.threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _arrived(self, key: str) -> None:
        self._notes.gated()
        self.arrivals.put(key)
