"""Two candidates never lead at once: every order of sending, serving, losing and answering, on clocks that disagree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rebalancer.kube.lease import LeaseClaim, LeaseRecord
from rebalancer.runtime.election import Due, Election, Observation, Outrun, Read, Seen, Standing, Timing, Unknown, Wait, Write, Written

TIMING = Timing(lease_s=15, renew_s=10, retry_s=2)
PICK = st.integers(min_value=0, max_value=2)
TICK_S = 0.25
EXACT = 1e-6


class Link(Enum):
    """What is between a process and the API server."""

    FINE = "fine"
    SILENT = "silent"
    """Requests do not arrive; they may later."""
    DEAF = "deaf"
    """Requests arrive, answers do not; they may later."""
    CUT = "cut"
    """Requests are lost."""
    PAUSED = "paused"
    """The process itself stands still, and its clock does not: it finds old answers when it goes on."""


@dataclass
class Lease:
    """The API server: one record, and a version that never comes twice."""

    record: LeaseRecord | None = None
    version: int = 0

    def serve(self, asked: Read | LeaseClaim) -> Seen | LeaseRecord | Outrun:
        if isinstance(asked, Read):
            return Seen(self.record)
        if asked.over is None:
            return Outrun() if self.record is not None else self.store(asked)
        if self.record is None:
            return Seen(None)
        return self.store(asked) if asked.over.version == self.record.version else Outrun()

    def store(self, claim: LeaseClaim) -> LeaseRecord:
        self.version += 1
        self.record = LeaseRecord(
            holder=claim.holder,
            duration_s=claim.duration_s,
            acquired="",
            renewed="",
            transitions=claim.transitions,
            version=str(self.version),
        )
        return self.record


@dataclass(eq=False)
class Request:
    """On its way until it is served, answered or lost. The candidate may have given up on it meanwhile."""

    sender: Process
    asked: Read | LeaseClaim
    sent_at: float
    answer: Seen | LeaseRecord | Outrun | None = None


@dataclass(eq=False)
class Process:
    """One life of a replica. ``rate``: seconds of its clock in a second; ``offset``: what its clock showed at the beginning."""

    election: Election
    rate: float
    offset: float
    standing: Standing = field(default_factory=Standing)
    open: Request | None = None
    wake_at: float = -math.inf
    link: Link = Link.FINE
    alive: bool = True

    def clock(self, time: float) -> float:
        return self.offset + self.rate * time

    def leads(self, time: float) -> bool:
        return self.alive and self.election.leads(self.standing, now=self.clock(time))


@dataclass(frozen=True)
class Eviction:
    """Under way, and out of its process's hands, until ``ends``."""

    by: Process
    ends: float


class Candidates(RuleBasedStateMachine):
    @initialize(
        count=st.integers(min_value=2, max_value=3),
        offsets=st.tuples(*[st.floats(min_value=-1e6, max_value=1e6)] * 3),
        rates=st.one_of(st.just((1.0, 1.0, 1.0)), st.tuples(*[st.floats(min_value=0.9, max_value=1.1)] * 3)),
    )
    def begin(self, count: int, offsets: tuple[float, ...], rates: tuple[float, ...]) -> None:
        self.time = 0.0
        self.lease = Lease()
        self.lives = 0
        self.rates, self.offsets = rates, offsets
        self.same_rate = len(set(rates)) == 1
        self.requests: list[Request] = []
        self.evictions: list[Eviction] = []
        self.processes = [self.born(index) for index in range(count)]
        self.time_passes(TIMING.lease_s / 0.9 + 3.0)

    def born(self, index: int) -> Process:
        self.lives += 1
        return Process(Election(f"life-{self.lives}", TIMING), rate=self.rates[index], offset=self.offsets[index])

    # ---- time and processes ---------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.25, 0.5, 0.75, 2.0, 5.0, 9.0, 12.0, 16.0, 25.0]))
    def time_passes(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_S)):
            self.tick()

    def tick(self) -> None:
        """One request takes two ticks at the least: it is sent, then served, then answered."""
        for request in list(self.requests):
            if request.answer is not None and request.sender.link in (Link.FINE, Link.SILENT, Link.CUT):
                self.answer(request)
            elif request.answer is None and request.sender.link is Link.CUT:
                self.requests.remove(request)
            elif request.answer is None and request.sender.link is not Link.SILENT:
                request.answer = self.lease.serve(request.asked)
        for process in self.processes:
            self.go_on(process)
        self.time += TICK_S
        self.at_most_one_leads()
        self.nobody_leads_while_an_eviction_of_another_is_under_way()

    def go_on(self, process: Process) -> None:
        now = process.clock(self.time)
        if process.link is Link.PAUSED:
            return
        if process.open is not None and now > process.open.sent_at + TIMING.request_s:
            process.open = None  # its time-out; the request may still be served
            self.observe(process, Unknown())
        elif process.open is None and now >= process.wake_at:
            self.observe(process, Due())

    @rule(
        who=st.sampled_from(["leader", "other"]),
        mid_request=st.booleans(),
        link=st.sampled_from(Link),
        seconds=st.sampled_from([0.0, 3.0, 8.0, 12.0, 16.0, 21.0]),
        then=st.sampled_from(Link),
    )
    def a_link_changes(self, who: str, mid_request: bool, link: Link, seconds: float, then: Link) -> None:
        """``mid_request``: at the moment at which the process has sent something, which is when it hurts."""
        ranked = sorted(self.processes, key=lambda process: not process.leads(self.time))
        process = ranked[0] if who == "leader" else ranked[-1]
        for _ in range(10):
            if mid_request and process.open is None:
                self.tick()
        process.link = link
        self.time_passes(seconds)
        process.link = then

    @rule(pick=PICK)
    def a_process_is_killed_and_started_anew(self, pick: int) -> None:
        self.replace(pick % len(self.processes))

    @rule(pick=PICK)
    def a_process_ends_well(self, pick: int) -> None:
        """It gives the lease back, once nothing of its own is being written."""
        index = pick % len(self.processes)
        process = self.processes[index]
        if any(eviction.by is process and eviction.ends > self.time for eviction in self.evictions):
            return
        claim = process.election.release(process.standing)
        if claim is not None:
            self.requests.append(Request(process, claim, sent_at=process.clock(self.time)))
        self.replace(index)

    def replace(self, index: int) -> None:
        self.processes[index].alive = False
        self.processes[index] = self.born(index)

    # ---- requests -------------------------------------------------------------------------------------------------------

    def observe(self, process: Process, observation: Observation) -> None:
        now = process.clock(self.time)
        process.standing, action = process.election.step(process.standing, observation, now=now)
        if isinstance(action, Wait):
            process.wake_at = now + action.seconds
            return
        process.open = Request(process, action.claim if isinstance(action, Write) else action, sent_at=now)
        self.requests.append(process.open)

    def answer(self, request: Request) -> None:
        if request.answer is None:
            return
        self.requests.remove(request)
        process = request.sender
        if not process.alive or process.open is not request:
            return
        process.open = None
        answer = request.answer
        self.observe(process, Written(answer, sent_at=request.sent_at) if isinstance(answer, LeaseRecord) else answer)

    @precondition(lambda self: self.requests)
    @rule(pick=st.integers(min_value=0, max_value=50))
    def a_request_that_was_held_up_is_served(self, pick: int) -> None:
        """In any order, long after its sender gave up or ended."""
        request = self.requests[pick % len(self.requests)]
        request.answer = request.answer or self.lease.serve(request.asked)

    @precondition(lambda self: self.requests)
    @rule(pick=st.integers(min_value=0, max_value=50))
    def a_request_or_its_answer_is_lost(self, pick: int) -> None:
        self.requests.pop(pick % len(self.requests))

    # ---- what others do -------------------------------------------------------------------------------------------------

    @rule()
    def somebody_labels_the_lease(self) -> None:
        if self.lease.record is not None:
            self.lease.version += 1
            self.lease.record = replace(self.lease.record, version=str(self.lease.version))

    @rule()
    def somebody_deletes_the_lease(self) -> None:
        """At any time: before a process has seen it, while one is being made, and right before another process starts."""
        self.lease.record = None

    @rule(pick=PICK)
    def an_eviction_begins(self, pick: int) -> None:
        process = self.processes[pick % len(self.processes)]
        if process.election.valid_for(process.standing, TIMING.reserve_s, now=process.clock(self.time)):
            self.evictions.append(Eviction(process, ends=self.time + TIMING.reserve_s / process.rate))

    # ---- what must hold -------------------------------------------------------------------------------------------------

    @invariant()
    def at_most_one_leads(self) -> None:
        if hasattr(self, "processes"):
            assert sum(process.leads(self.time) for process in self.processes) <= 1

    @invariant()
    def nobody_leads_while_an_eviction_of_another_is_under_way(self) -> None:
        """On clocks of the same speed; where they differ, only the beginning of an eviction is guarded."""
        if hasattr(self, "processes") and self.same_rate:
            leaders = {process for process in self.processes if process.leads(self.time)}
            running = {eviction.by for eviction in self.evictions if eviction.ends - EXACT > self.time}
            assert len(leaders | running) <= 1

    def teardown(self) -> None:
        """Whatever happened: once requests are answered, somebody leads within the longest wait and a few tries."""
        if not hasattr(self, "processes"):
            return
        for process in self.processes:
            process.link = Link.FINE
        self.time_passes(TIMING.lease_s / 0.9 + 4 * TIMING.retry_s + 20 * TICK_S)
        assert sum(process.leads(self.time) for process in self.processes) == 1


Candidates.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestTwoCandidatesNeverLeadAtOnce = Candidates.TestCase
