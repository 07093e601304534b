"""Campaigning for the lease, and saying at every moment whether this process leads: the threads around `election`.

One thread asks the API server and does nothing else, so a cycle can never make a renewal late. A second one only watches the clock: when
the last renewal is too long ago it ends the leadership on time, even while a request, a name look-up or a credential plugin hangs. Losing
the lease never ends the process; it campaigns again.
"""

from __future__ import annotations

import random
import secrets
import socket
import threading
import time
from collections.abc import Callable

import structlog

from rebalancer.errors import Interrupted, KubernetesConflict, KubernetesError, KubernetesNotFound
from rebalancer.kube.lease import LeaseClaim, LeaseClient
from rebalancer.runtime.election import Action, Due, Election, Observation, Outrun, Read, Seen, Standing, Unknown, Wait, Write, Written

log = structlog.get_logger(__name__)

HUNG_AFTER_S = 60.0
"""A campaign that has not taken a step for so long counts as dead, so that the process is started anew."""
_IN_GOOD_TIME_S = 3600.0
_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux alone has it; the monotonic clock stands still there while the machine sleeps, and the lease does not."""


def steady_clock() -> float:
    """Seconds that no setting of the wall clock moves, and that go on while the machine sleeps where the system has such a clock."""
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)


def new_identity() -> str:
    """The host's name, which is the pod's, and an ending that no other process has, not even the next one in this container."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


class Term:
    """One leadership from its beginning to its end. What was begun in one term is never finished in the next.

    ``stop`` is set at its end, and when the process is asked to stop: it is the stop of the cycle that runs.
    """

    def __init__(self, refusal: Callable[[Term], str], *, reserve_s: float) -> None:
        self._refusal = refusal
        self.stop = threading.Event()
        self.lost = ""
        """Why it ended; empty while it lasts."""
        self.reserve_s = reserve_s
        """The time for one write, which the lease must outlive."""

    def refusal(self) -> str:
        """Why nothing may be written now, in words; empty when a write of at most ``reserve_s`` may begin."""
        return self._refusal(self)

    def interruption(self) -> Interrupted:
        """What a cycle that is stopped raises."""
        if self.lost:
            return Interrupted("the lease was lost before the work was finished", remedy="nothing is left half done; whoever leads goes on")
        return Interrupted("stopped on request before the work was finished", remedy="nothing is left half done; start it again")


class Leadership:
    """Campaigns from `start` to `close`. Every question about it may be asked from any thread and is answered at once.

    ``clock``: monotonic seconds. ``wall``: unix seconds, written into the record for people and used for nothing else.
    """

    def __init__(
        self,
        lease: LeaseClient,
        election: Election,
        *,
        clock: Callable[[], float] = steady_clock,
        wall: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._lease = lease
        self._election = election
        self._clock = clock
        self._wall = wall
        self._chance = chance
        self._changed = threading.Condition()
        self._standing = Standing()
        self._term: Term | None = None
        self._news: list[Callable[[], None]] = []
        self._closing = threading.Event()
        self._release = False
        self._stepped_at = clock()
        self._trouble = ""
        self._campaign = threading.Thread(target=self._run, name="leader election", daemon=True)
        self._watch = threading.Thread(target=self._watched, name="leader watch", daemon=True)
        self._began: Callable[[], None] = lambda: None
        self._ended: Callable[[str], None] = lambda reason: None

    @property
    def identity(self) -> str:
        return self._election.identity

    @property
    def place(self) -> str:
        """What is campaigned for, as it stands in a sentence."""
        return self._lease.place

    @property
    def term(self) -> Term | None:
        """The leadership of this moment; None while standing by."""
        with self._changed:
            self._expire()
            return self._term

    def valid_for(self, seconds: float) -> bool:
        """True if this process leads, and whatever takes ``seconds`` from now ends before another may lead."""
        with self._changed:
            self._expire()
            return self._term is not None and self._election.valid_for(self._standing, seconds, now=self._clock())

    def start(self, *, began: Callable[[], None], ended: Callable[[str], None]) -> None:
        """Campaign. ``began`` and ``ended`` (with the reason) are called in turns, once for each term, soon after the fact."""
        self._began, self._ended = began, ended
        self._watch.start()
        self._campaign.start()

    def alive(self) -> bool:
        """True while both threads run and the campaign goes on."""
        limit = max(HUNG_AFTER_S, 3 * self._election.timing.lease_s)
        return self._campaign.is_alive() and self._watch.is_alive() and self._clock() - self._stepped_at < limit

    def interrupt(self) -> None:
        """Stop the cycle that runs, and keep the lease meanwhile."""
        with self._changed:
            if self._term is not None:
                self._term.stop.set()

    def close(self, *, release: bool, within_s: float) -> None:
        """Lead no more. ``release``: give the lease back, so that another need not wait; only when nothing of ours is being written."""
        with self._changed:
            self._release = release
            self._closing.set()
            self._end_term("this process stops")
            self._changed.notify_all()
        for thread in (self._campaign, self._watch):
            if thread.is_alive():
                thread.join(within_s)

    # ---- the campaign ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        observation: Observation = Due()
        while True:
            action = self._step(observation)
            if self._closing.is_set():
                break
            observation = self._perform(action)
        if self._release:
            self._give_back()

    def _step(self, observation: Observation) -> Action:
        with self._changed:
            self._expire()  # a term that is over ends before the observation may begin the next one
            now = self._clock()
            self._stepped_at = now
            self._standing, action = self._election.step(self._standing, observation, now=now, chance=self._chance())
            self._follow()
            return action

    def _perform(self, action: Action) -> Observation:
        if isinstance(action, Wait):
            self._closing.wait(action.seconds)
            return Due()
        sent_at = self._clock()
        try:
            observation = self._asked(action, sent_at=sent_at)
        except KubernetesError as error:
            self._tell_trouble(str(error))
            return Unknown()
        except Exception as error:  # whatever it is, a campaign that dies would leave nobody to lead
            log.exception("leader election met a defect of this program, and goes on", error=type(error).__name__)
            return Unknown()
        self._tell_trouble("")
        return observation

    def _asked(self, action: Read | Write, *, sent_at: float) -> Observation:
        if isinstance(action, Read):
            return Seen(self._lease.read())
        try:
            return Written(self._lease.write(action.claim, at=self._wall()), sent_at=sent_at)
        except KubernetesConflict:
            return Outrun()
        except KubernetesNotFound:
            if action.claim.over is None:
                raise
            return Seen(None)

    def _tell_trouble(self, trouble: str) -> None:
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            log.warning("the lease cannot be read or written", lease=self.place, error=trouble)
        else:
            log.info("the lease can be read and written again", lease=self.place)

    def _give_back(self) -> None:
        """Best effort: an unreleased lease only makes the next leader wait for its end."""
        try:
            if not self._wrote(self._election.release(self._standing)):
                self._standing = self._election.step(self._standing, Seen(self._lease.read()), now=self._clock())[0]
                self._wrote(self._election.release(self._standing))
        except KubernetesError as error:
            log.warning("the lease was not given back; another replica leads when it ends", lease=self.place, error=str(error))

    def _wrote(self, claim: LeaseClaim | None) -> bool:
        if claim is None:
            return True
        try:
            self._lease.write(claim, at=self._wall())
        except KubernetesConflict:
            return False
        log.info("the lease is given back", lease=self.place)
        return True

    # ---- terms; all of it under the lock --------------------------------------------------------------------------------

    def _expire(self) -> None:
        self._standing = self._election.expire(self._standing, now=self._clock())
        self._follow()

    def _follow(self) -> None:
        """Begin or end a term, as the standing says."""
        leads = self._standing.renewed_at is not None and not self._closing.is_set()
        if leads and self._term is None:
            self._term = Term(self._refusal, reserve_s=self._election.timing.reserve_s)
            self._news.append(self._began)
            log.info("leading", lease=self.place, identity=self.identity)
            self._changed.notify_all()
        elif not leads:
            self._end_term(self._standing.lost)

    def _end_term(self, reason: str) -> None:
        term, self._term = self._term, None
        if term is None:
            return
        term.lost = reason
        term.stop.set()
        self._news.append(lambda: self._ended(reason))
        if not self._closing.is_set():
            log.warning("the lease was lost", lease=self.place, reason=reason)
        self._changed.notify_all()

    def _refusal(self, term: Term) -> str:
        with self._changed:
            self._expire()
            if term is not self._term:
                return f"the lease was lost: {term.lost}"
            now, need = self._clock(), term.reserve_s
            if self._election.valid_for(self._standing, need, now=now):
                return ""
            return f"the lease ends in {self._election.left_s(self._standing, now=now):.1f} s, an eviction needs {need:g} s"

    # ---- the watch ------------------------------------------------------------------------------------------------------

    def _watched(self) -> None:
        while True:
            with self._changed:
                self._expire()
                if not self._news and not self._closing.is_set():
                    self._changed.wait(self._until_expiry())
                    self._expire()
                news, self._news = self._news, []
                closing = self._closing.is_set()
            for call in news:
                try:
                    call()
                except Exception:
                    log.exception("a change of leadership could not be followed")
            if closing and not self._news:
                return

    def _until_expiry(self) -> float:
        renewed = self._standing.renewed_at
        if renewed is None:
            return _IN_GOOD_TIME_S
        return max(0.0, renewed + self._election.timing.renew_s - self._clock())
