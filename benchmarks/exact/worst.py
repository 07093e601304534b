"""The lowest worst load that so many moves can reach, as a share of the ``high`` marks: the smallest ceiling for which there is a plan.

The search is between two ends that come nearer to each other. The lower end is proven: at first by `cover.worst_floor`, which no plan
of any kind gets under, then by programs that have no solution. The upper end is a plan that was found. Most often the first floor can be
reached, and one program is the whole search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.exact.cover import worst_floor
from benchmarks.exact.fewest import fewest_moves
from benchmarks.exact.problem import Problem
from benchmarks.exact.program import Outcome
from rebalancer.state.arrays import BoolArray

CLOSE = 1e-3
"""The ends are near enough: a tenth of a per cent."""
MOST_STEPS = 40
PATIENCE = 3
"""A program that is not solved in this part of the time that is left is given up, and the search goes on above it."""
LEAST_SHARE = 0.1
"""But it gets so much of the whole time."""


@dataclass(frozen=True, slots=True)
class Lowest:
    """``worst``: strain (`Problem.strain`) after ``moves``. ``proven``: no plan without chains gets lower; ``bound``: none at all does."""

    worst: float
    moves: tuple[tuple[int, int], ...]
    proven: float
    bound: float
    seconds: float

    @property
    def gap(self) -> float:
        return (self.worst - self.proven) / self.worst if self.worst > 0 else 0.0


def lowest_worst(
    problem: Problem,
    moves: int,
    *,
    known: Sequence[tuple[tuple[int, int], ...]] = (),
    also_from: BoolArray | None = None,
    seconds: float = 60.0,
    seed: int = 0,
) -> Lowest:
    """At most ``moves`` moves; ``seconds`` for all programs together. ``known``: plans to start from, of no more moves.

    ``also_from``: see `fewest`.
    """
    high = np.where(problem.findings.judged, problem.findings.high, np.inf)
    best, plan = min((problem.strain(problem.load_after(each)), each) for each in ((), *known))
    bound = min(best, worst_floor(problem, moves))
    proven = lower = bound
    spent = 0.0
    for _ in range(MOST_STEPS):
        if best - lower <= CLOSE * best or spent >= seconds:
            break
        tried = (lower + best) / 2
        each = max(seconds * LEAST_SHARE, (seconds - spent) / PATIENCE)
        result = fewest_moves(problem, tried * high, also_from=also_from, at_most=moves, seconds=min(each, seconds - spent), seed=seed)
        spent += result.seconds
        if result.moves is not None:
            best, plan = min(best, problem.strain(problem.load_after(result.moves))), result.moves
            continue
        lower = tried
        if result.outcome is Outcome.INFEASIBLE:
            proven = max(proven, tried)
    return Lowest(best, plan, proven, bound, spent)
