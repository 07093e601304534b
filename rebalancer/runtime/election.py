"""Who leads: the rules of the election, as values in and values out.

No thread, no request and no clock is here; `leadership` does what an action says and hands back what came of it. Times are readings of the
candidate's own monotonic clock. Three rules keep two candidates from leading at once, whatever clocks show and however long answers take:

- A leader counts from the moment at which it *sent* the last write that was confirmed, and leads for ``renew_s`` from there.
- A candidate counts from the moment at which it *saw* the record change, and takes it when it stayed the same for the holder's duration.
- Whoever finds no Lease makes one that nobody holds, and waits for it as for any other: it may have been deleted a moment ago, and who
  held it then may not know of that yet. The first replica of a new installation waits too; nothing can tell the two apart.

What the leader sent was seen by others only later, and ``renew_s`` is shorter than the duration, so the leader stops first. Writes carry
the version that was read, so one that comes late, or meets another's, changes nothing. The times in the record are never looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from rebalancer.kube.lease import RELEASED_S, LeaseClaim, LeaseRecord

JITTER_SHARE = 0.2
REQUEST_SHARE = 0.9
"""Of the retry period: the longest time for one request."""
NOBODY = "nobody, made by "
"""Before the name of its maker, the holder of a Lease that was made because there was none."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, ``lease_s`` > ``renew_s`` > ``retry_s``."""

    lease_s: float = 15.0
    """How long others leave a record alone that does not change."""
    renew_s: float = 10.0
    """How long a leader goes on without a confirmed renewal."""
    retry_s: float = 2.0
    """Between two tries."""

    def __post_init__(self) -> None:
        if not self.lease_s > self.renew_s > self.retry_s > 0:
            raise ValueError(
                f"a lease of {self.lease_s:g} s, renewed within {self.renew_s:g} s, tried every {self.retry_s:g} s cannot be kept"
            )

    @property
    def request_s(self) -> float:
        return REQUEST_SHARE * self.retry_s

    @property
    def reserve_s(self) -> float:
        """What is left of the lease, at the least, while it is led: the time for one write that must not outlive it."""
        return self.lease_s - self.renew_s


# ---- what came of an action --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Due:
    """The wait is over."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The record was read, or is known to be absent."""

    record: LeaseRecord | None


@dataclass(frozen=True, slots=True)
class Written:
    """Our write was confirmed; ``sent_at`` is when it left."""

    record: LeaseRecord
    sent_at: float


@dataclass(frozen=True, slots=True)
class Outrun:
    """Our write was refused: somebody else wrote since we read."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """No usable answer; what was asked may have been done, may yet be done, or not."""


Observation: TypeAlias = Due | Seen | Written | Outrun | Unknown


# ---- what to do next ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    pass


@dataclass(frozen=True, slots=True)
class Write:
    claim: LeaseClaim


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


Action: TypeAlias = Read | Write | Wait


@dataclass(frozen=True, slots=True)
class Standing:
    """What a candidate knows. ``record``: the last one seen; when the Lease is gone since, it stays, without a version.

    ``changed_at``: when it was first seen as it is, or gone. ``renewed_at``: when the last confirmed write of this leadership was sent;
    None while not leading. ``tried_at``: start of the current try. ``outrun``: a write of this try was refused already.
    """

    record: LeaseRecord | None = None
    changed_at: float = -math.inf
    renewed_at: float | None = None
    tried_at: float = -math.inf
    outrun: bool = False
    lost: str = ""
    """Why the last leadership ended, in words that follow "the lease was lost: "."""


@dataclass(frozen=True, slots=True)
class Election:
    """The rules for the candidate ``identity``, which no other process may ever bear: it knows its own writes by it."""

    identity: str
    timing: Timing

    def step(self, standing: Standing, observation: Observation, *, now: float, chance: float = 0.0) -> tuple[Standing, Action]:
        """What is known now, and what to do about it. ``chance``, uniform in [0, 1), shortens waits so that candidates spread."""
        standing = self.expire(standing, now=now)
        match observation:
            case Due():
                standing = replace(standing, tried_at=now, outrun=False)
                return standing, self._claim(standing.record) if standing.renewed_at is not None and standing.record is not None else Read()
            case Seen(record=record):
                return self._seen(standing, record, now=now, chance=chance)
            case Written(record=record, sent_at=sent_at):
                standing = self._noticed(standing, record, now=now)
                if record.holder == self.identity and now < sent_at + self.timing.renew_s:
                    standing = replace(standing, renewed_at=sent_at, lost="")
                return standing, self._wait(standing, now=now, chance=chance)
            case Outrun() if standing.renewed_at is not None and not standing.outrun:
                return replace(standing, outrun=True), Read()
            case Outrun() | Unknown():
                return standing, self._wait(standing, now=now, chance=chance)

    def expire(self, standing: Standing, *, now: float) -> Standing:
        """Not leading any more, once the last confirmed renewal is too long ago."""
        renewed = standing.renewed_at
        if renewed is None or now < renewed + self.timing.renew_s:
            return standing
        return replace(standing, renewed_at=None, lost=f"it could not be renewed for {self.timing.renew_s:g} s")

    def leads(self, standing: Standing, *, now: float) -> bool:
        return self.expire(standing, now=now).renewed_at is not None

    def left_s(self, standing: Standing, *, now: float) -> float:
        """Seconds until others may take the lease at the earliest; 0 while not leading."""
        return (
            self.timing.lease_s - (now - standing.renewed_at) if self.leads(standing, now=now) and standing.renewed_at is not None else 0.0
        )

    def valid_for(self, standing: Standing, seconds: float, *, now: float) -> bool:
        """True if this candidate leads, and whatever takes ``seconds`` from now ends before others may lead."""
        return self.leads(standing, now=now) and self.left_s(standing, now=now) >= seconds

    def release(self, standing: Standing) -> LeaseClaim | None:
        """The write that gives the lease away; None if the record names another holder. Only after the last write of the leadership."""
        record = standing.record
        if record is None or record.holder != self.identity or not record.version:
            return None
        return LeaseClaim(over=record, holder="", duration_s=RELEASED_S, transitions=record.transitions, acquires=False)

    def _seen(self, standing: Standing, record: LeaseRecord | None, *, now: float, chance: float) -> tuple[Standing, Action]:
        if standing.renewed_at is not None and (record is None or record.holder != self.identity):
            gone = record is None or record.holder.startswith(NOBODY)
            holder = record.holder if record is not None else ""
            lost = "it was deleted" if gone else f"{holder or 'nobody'} holds it now"
            standing = replace(standing, renewed_at=None, lost=lost)
        if record is not None:
            standing = self._noticed(standing, record, now=now)
        elif standing.record is not None:
            standing = self._noticed(standing, replace(standing.record, version=""), now=now)
        if record is None:
            return standing, self._make(standing.record)
        if self._is_free(record, since=standing.changed_at, now=now):
            return standing, self._claim(record)
        return standing, self._wait(standing, now=now, chance=chance)

    def _noticed(self, standing: Standing, record: LeaseRecord, *, now: float) -> Standing:
        """Any write counts as a sign of life, whatever it changed."""
        before = standing.record
        if before is not None and before.version == record.version:
            return standing
        return replace(standing, record=record, changed_at=now)

    def _is_free(self, record: LeaseRecord, *, since: float, now: float) -> bool:
        if record.holder in ("", self.identity):
            return True
        return now - since >= (record.duration_s or self.timing.lease_s)

    def _make(self, last: LeaseRecord | None) -> Write:
        """A Lease that nobody holds; ``last``: what was seen before it was gone, if anything was."""
        transitions = 0 if last is None else last.transitions + 1
        holder = NOBODY + self.identity
        return Write(LeaseClaim(over=None, holder=holder, duration_s=self.timing.lease_s, transitions=transitions, acquires=False))

    def _claim(self, over: LeaseRecord) -> Write:
        """Renew it, or take it over. The first to take one that was just made is not its second holder."""
        acquires = over.holder != self.identity
        transitions = over.transitions + (acquires and not over.holder.startswith(NOBODY))
        return Write(
            LeaseClaim(over=over, holder=self.identity, duration_s=self.timing.lease_s, transitions=transitions, acquires=acquires)
        )

    def _wait(self, standing: Standing, *, now: float, chance: float) -> Wait:
        """Until the next try is due, a period after the start of this one; never a loop without a pause."""
        period = self.timing.retry_s * (1.0 - JITTER_SHARE * chance)
        due = standing.tried_at + period if math.isfinite(standing.tried_at) else now + period
        return Wait(min(period, max(due - now, self.timing.retry_s / 10)))
