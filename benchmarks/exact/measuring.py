"""Our plan for a frozen cluster beside the optimum: the same pods, the same budgets, the same loads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.exact.fewest import Cured, Fewest, fewest_moves, most_cured
from benchmarks.exact.frozen import Frozen
from benchmarks.exact.problem import Places, Problem, ceilings, pose
from benchmarks.exact.worst import Lowest, lowest_worst
from rebalancer.detect.classify import detect
from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.plan.method import Bench, ProposedMove
from rebalancer.plan.planner import decide, lay_bench
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.state.history import NOTHING_HAPPENED

CURED = 1e-9
"""A load that is over its target by less is at it."""


@dataclass(frozen=True, slots=True)
class Ours:
    """The plan of `plan.planner.decide`, as moves of a problem."""

    moves: tuple[tuple[int, int], ...]
    cured: int
    """Hot nodes that it brings to their target or under, on every judged signal."""
    worst: float
    """`Problem.strain` after it, as predicted."""
    after: FloatArray
    """(N, S) load."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Our plan and the yardstick, under one set of rules."""

    hot: int
    worst_before: float
    ours: Ours
    most: Cured
    """How many hot nodes can be cured together."""
    cure: Fewest
    """The fewest moves that cure so many."""
    same: Fewest
    """The fewest moves after which no node is worse off than after ours, as far as it is over its ceiling then."""
    lowest: Lowest
    """The lowest worst load with as many moves as ours."""
    seconds: float
    """All programs together."""

    @property
    def moves_distance(self) -> float | None:
        """How many more moves ours has than are needed for what it does, a share of those needed; None when that is not known."""
        if self.same.moves is None:
            return None
        return len(self.ours.moves) / len(self.same.moves) - 1 if self.same.moves else float(len(self.ours.moves) > 0)

    @property
    def worst_distance(self) -> float:
        return self.ours.worst / self.lowest.worst - 1 if self.lowest.worst > 0 else 0.0


def put_beside(
    frozen: Frozen,
    policy: RebalancePolicy,
    *,
    limits: bool = True,
    places: Places = Places.FREE,
    narrower: Beside | None = None,
    seconds: float = 60.0,
    seed: int = 0,
) -> Beside:
    """``seconds``: for each of the four questions. ``policy``: of the plan and of the budgets.

    ``narrower``: what was found under the same limits with fewer places, so that no time limit makes more freedom look worse.
    """
    findings = detect(frozen.state, policy.spec)
    bench, proposed = _fresh_bench(frozen, findings, policy), our_moves(frozen, findings, policy)
    problem = pose(bench, limits=limits, places=places)
    if places is Places.FREE:
        problem = with_moves(problem, proposed)
    ours = _ours(problem, findings, proposed)
    hot: BoolArray = np.asarray(findings.node_class == int(NodeClass.HOT), dtype=np.bool_)
    sources = hot.copy()
    sources[[move.source for move in proposed]] = True
    ceiling = ceilings(problem)
    cured = most_cured(problem, ceiling, seconds=seconds, seed=seed)
    cure = fewest_moves(problem, ceiling, uncured=int(hot.sum()) - cured.count, also_from=sources, seconds=seconds, seed=seed)
    reached = np.fmax(ceiling, np.where(findings.judged, ours.after, -np.inf))
    same = fewest_moves(problem, reached, also_from=sources, seconds=seconds, seed=seed)
    known = [*([ours.moves] if places is Places.FREE else []), *([narrower.lowest.moves] if narrower else [])]
    lowest = lowest_worst(problem, len(proposed), known=known, also_from=sources, seconds=seconds, seed=seed)
    return Beside(
        hot=int(hot.sum()),
        worst_before=problem.strain(problem.load),
        ours=ours,
        most=cured,
        cure=cure,
        same=same,
        lowest=lowest,
        seconds=cured.seconds + cure.seconds + same.seconds + lowest.seconds,
    )


def our_moves(frozen: Frozen, findings: Findings, policy: RebalancePolicy) -> tuple[ProposedMove, ...]:
    """What this project plans, in evict mode and with no past."""
    decision = decide(state=frozen.state, findings=findings, policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT)
    return decision.proposal.moves


def with_moves(problem: Problem, moves: tuple[ProposedMove, ...]) -> Problem:
    """The problem with these moves allowed, whatever the scheduler's filters said of them before the plan began."""
    opened = problem.open.copy()
    for move in moves:
        opened[np.flatnonzero(problem.pods == move.pod), move.destination] = True
    return replace(problem, open=opened)


def _fresh_bench(frozen: Frozen, findings: Findings, policy: RebalancePolicy) -> Bench:
    return lay_bench(state=frozen.state, findings=findings, policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT)


def _ours(problem: Problem, findings: Findings, proposed: tuple[ProposedMove, ...]) -> Ours:
    row = {pod: position for position, pod in enumerate(problem.pods.tolist())}
    moves = tuple((row[move.pod], move.destination) for move in proposed)
    after = problem.load_after(moves)
    hot = findings.node_class == int(NodeClass.HOT)
    with np.errstate(invalid="ignore"):
        over = (findings.judged & (after > findings.target + CURED)).any(axis=1)
    return Ours(moves, int((hot & ~over).sum()), problem.strain(after), after)
