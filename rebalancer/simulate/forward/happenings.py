"""What comes from outside, written down before the world begins: bursts, node failures, arrivals, departures, rollouts.

A list in order of time, made from the seed alone. Whatever a strategy does, the same things happen at the same moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from rebalancer.state.arrays import IntArray

NODE_MONITOR_S = 40.0
"""After so long without a heartbeat the node controller says that a node is not Ready."""
TOLERATED_S = 300.0
"""So long pods tolerate that their node is not Ready, by the default toleration; then they are deleted."""


class What(Enum):
    SCALE = "scale"
    """The demand of the owner's slots times ``factor``."""
    NODE_DOWN = "node-down"
    NODE_LOST = "node-lost"
    """The pods of a node that stays down are deleted by the control plane."""
    NODE_UP = "node-up"
    ARRIVE = "arrive"
    LEAVE = "leave"
    ROLL_OUT = "roll-out"


@dataclass(frozen=True, slots=True)
class Happening:
    at: float
    what: What
    subject: int
    """Row of the node or of the owner."""
    factor: float = 1.0


@dataclass(slots=True)
class Calendar:
    """The happenings still to come."""

    entries: Sequence[Happening]
    _next: int = field(default=0)

    def until(self, moment: float) -> Sequence[Happening]:
        """Those up to ``moment`` that were not handed out before."""
        begin = self._next
        while self._next < len(self.entries) and self.entries[self._next].at <= moment:
            self._next += 1
        return self.entries[begin : self._next]


def in_order(entries: Sequence[Happening]) -> tuple[Happening, ...]:
    return tuple(sorted(entries, key=lambda one: (one.at, one.what.value, one.subject)))


def moments(rng: np.random.Generator, *, per_day: float, start: float, seconds: float) -> list[float]:
    """Moments of a Poisson process."""
    count = int(rng.poisson(per_day * seconds / 86400.0))
    return sorted((start + rng.uniform(0.0, seconds, count)).tolist())


def outage(node: int, *, at: float, lasts_s: float) -> list[Happening]:
    """A node that stops and comes back empty, or with its pods when it was away for less than they tolerate."""
    found = [Happening(at, What.NODE_DOWN, node), Happening(at + lasts_s, What.NODE_UP, node)]
    if lasts_s > NODE_MONITOR_S + TOLERATED_S:
        found.append(Happening(at + NODE_MONITOR_S + TOLERATED_S, What.NODE_LOST, node))
    return found


def burst(owner: int, *, at: float, lasts_s: float, factor: float) -> list[Happening]:
    return [Happening(at, What.SCALE, owner, factor), Happening(at + lasts_s, What.SCALE, owner, 1 / factor)]


def slots_of(owner: IntArray) -> dict[int, IntArray]:
    """owner row -> its slots."""
    order = np.argsort(owner, kind="stable")
    numbers, begins = np.unique(owner[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, begins[1:]), strict=True)) if len(order) else {}
