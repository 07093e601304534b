"""Taking a move into the plan: on the load of both ends, on the scheduler's room, on the plan's budgets, all at once or not at all.

Several moves that are only good together are tried one after the other on the same books, and taken back when one of them fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.guard.gate import Booked, Candidate, book
from rebalancer.plan.destination import Landing
from rebalancer.plan.method import Bench, ProposedMove


def book_move(bench: Bench, candidate: Candidate, landing: Landing, *, reason: str, gang: int = -1) -> ProposedMove:
    """Book the move on all three books of the bench and return it with the loads of its ends before and after."""
    ends = np.array([candidate.source, landing.destination])
    before = bench.loads.load(ends)
    bench.loads.book(source=candidate.source, destination=landing.destination, pod=candidate.pod)
    bench.placements.book(candidate.pod, landing.destination)
    book(candidate, bench.scene)
    after = bench.loads.load(ends)
    return ProposedMove(
        pod=candidate.pod,
        source=candidate.source,
        destination=landing.destination,
        alternatives=landing.alternatives,
        chance=landing.chance,
        gain=landing.gain,
        led_by=landing.led_by,
        reason=reason,
        gang=gang,
        loads=tuple((float(before[0, c]), float(after[0, c]), float(before[1, c]), float(after[1, c])) for c in range(before.shape[1])),
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """Where all books of a bench stood."""

    loads: int
    placements: int
    booked: Booked


def mark(bench: Bench) -> Mark:
    return Mark(loads=bench.loads.mark(), placements=bench.placements.mark(), booked=bench.scene.booked.copy())


def rewind(bench: Bench, to: Mark) -> None:
    """Take back every move that was booked since the mark, from every book."""
    bench.loads.rewind(to.loads)
    bench.placements.rewind(to.placements)
    bench.scene.booked.become(to.booked)
