"""The least number of evictions that brings every node that is over its ceiling under it, and no other node over its own.

    minimise  sum z[p]                                                  z[p] = 1: pod p leaves
    such that sum_n y[p, n] = z[p]                                       y[p, n] = 1: it goes to node n
              load[n] + sum_in share * y - sum_out share * z <= ceiling[n]  on every judged signal
              sum_in asked * y - sum_out given back * z <= free[n]          on every resource
              sum of z over a group <= what its cap allows
              sum of z over a node >= what must leave it (`cover`)          follows from the rest; makes the relaxation tight

Where some nodes cannot be cured, alone or all together, `most_cured` says how many can: one more binary a node lets it keep what it has.

Only pods of nodes that are over their ceiling leave, and of those that ``also_from`` names. By default, then, a chain (B leaves a cool node
to make room there for A) is not in the program; with every node it is, and the program is far larger. ``bound`` of `Fewest` holds for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.exact.cover import IMPOSSIBLE, must_leave
from benchmarks.exact.problem import Problem
from benchmarks.exact.program import Outcome, Rows, solve
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

OVER = 1e-9
"""A load that is over its ceiling by less is at it."""


@dataclass(frozen=True, slots=True)
class Fewest:
    """The answer, or what is known of it when the time was up."""

    outcome: Outcome
    moves: tuple[tuple[int, int], ...] | None
    """(position in `Problem.pods`, node); None when no plan was found or there is none."""
    proven: float
    """No plan of the program's kind has fewer moves; inf when there is none at all."""
    bound: float
    """No plan of any kind has fewer; inf when there is none."""
    seconds: float

    @property
    def gap(self) -> float | None:
        """(moves found - proven) / moves found; None when nothing was found."""
        if self.moves is None:
            return None
        return (len(self.moves) - self.proven) / len(self.moves) if self.moves else 0.0


@dataclass(frozen=True, slots=True)
class Cured:
    """``count``: so many nodes can be brought under their ceiling together. ``proven``: no plan of the program's kind cures more."""

    count: int
    proven: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Columns:
    """One a pod that has a place to go to (it leaves), then one a pod and place (it goes there)."""

    leaver: IntArray
    """Position of the pod of each column of the first kind."""
    pod: IntArray
    """Row in ``leaver`` of each column of the second kind, and its node."""
    node: IntArray
    over: BoolArray
    """(N,): nodes over their ceiling."""
    leave: IntArray
    """(N,): pods that must leave each of them, given where pods may go; `cover.IMPOSSIBLE` where they are too few."""
    leave_at_all: IntArray
    """(N,): the same whatever the places."""

    @property
    def size(self) -> int:
        return len(self.leaver) + len(self.pod)


def fewest_moves(
    problem: Problem,
    ceiling: FloatArray,
    *,
    uncured: int = 0,
    also_from: BoolArray | None = None,
    at_most: int | None = None,
    seconds: float = 60.0,
    seed: int = 0,
) -> Fewest:
    """``ceiling`` (N, S): see `problem.ceilings`; every known node that is over it is to be cured, but for ``uncured`` ones, whichever.

    ``also_from`` (N,): other nodes that pods may leave. ``at_most``: any plan of so many moves will do, so the first one found is taken.
    """
    columns = _columns(problem, ceiling, also_from)
    least, bound = (_total(counts, uncured) for counts in (columns.leave, columns.leave_at_all))
    if least > (np.inf if at_most is None else at_most) or np.isinf(least):
        return Fewest(Outcome.INFEASIBLE, None, np.inf, bound, 0.0)
    spare = np.flatnonzero(columns.over) if uncured else None
    rows = _rows(problem, ceiling, columns, spare=spare)
    if spare is not None:
        rows.add(np.arange(columns.size, rows.columns), 1.0, upper=uncured)
    cost = np.zeros(rows.columns)
    if at_most is None:
        cost[: len(columns.leaver)] = 1.0
    else:
        rows.add(np.arange(len(columns.leaver)), 1.0, upper=at_most)
    answer = solve(rows, cost=cost, seconds=seconds, seed=seed)
    proven = max(least, float(np.ceil(answer.bound - 1e-4)))
    return Fewest(answer.outcome, _moves(columns, answer.chosen) if answer.found else None, proven, bound, answer.seconds)


def most_cured(problem: Problem, ceiling: FloatArray, *, seconds: float = 60.0, seed: int = 0) -> Cured:
    """How many nodes over their ``ceiling`` one plan, of any length, brings under it. The others keep what they have or less."""
    columns = _columns(problem, ceiling, None)
    spare = np.flatnonzero(columns.over)
    rows = _rows(problem, ceiling, columns, spare=spare)
    cost = np.concatenate((np.zeros(columns.size), np.ones(len(spare))))
    answer = solve(rows, cost=cost, seconds=seconds, seed=seed)
    left = int((answer.chosen >= columns.size).sum()) if answer.found else len(spare)
    hopeless = int((columns.leave == IMPOSSIBLE).sum())
    return Cured(len(spare) - left, len(spare) - max(hopeless, int(np.ceil(answer.bound - 1e-4))), answer.seconds)


def _total(leave: IntArray, uncured: int) -> float:
    """The least number of moves by `cover`, when the nodes that need most may be left."""
    needed = np.sort(np.where(leave == IMPOSSIBLE, np.inf, leave))
    return float(needed[: max(0, len(needed) - uncured)].sum())


def _moves(columns: _Columns, chosen: IntArray) -> tuple[tuple[int, int], ...]:
    going = chosen[(chosen >= len(columns.leaver)) & (chosen < columns.size)] - len(columns.leaver)
    return tuple(zip(columns.leaver[columns.pod[going]].tolist(), columns.node[going].tolist(), strict=True))


def _columns(problem: Problem, ceiling: FloatArray, also_from: BoolArray | None) -> _Columns:
    """Where a pod may go and would not break the ceiling all alone."""
    f = problem.findings
    with np.errstate(invalid="ignore"):
        over = np.where(f.judged, problem.load > ceiling + OVER, False).any(axis=1) & problem.known
        given = over if also_from is None else over | also_from
        pod, node = np.nonzero(problem.open & given[problem.source][:, None])
        after = np.where(given[:, None], 0.0, problem.load)[node] + problem.share[pod, node]  # what is given away may be all of it
        fits = np.where(f.judged[node], after <= ceiling[node] + OVER, True).all(axis=1)
    leaver, row = np.unique(pod[fits], return_inverse=True)
    leaving = np.zeros(len(problem.pods), dtype=np.bool_)
    leaving[leaver] = True
    return _Columns(
        leaver=leaver.astype(np.int64),
        pod=row.astype(np.int64),
        node=node[fits].astype(np.int64),
        over=over,
        leave=must_leave(problem, ceiling, over, leaving=leaving),
        leave_at_all=must_leave(problem, ceiling, over),
    )


def _rows(problem: Problem, ceiling: FloatArray, columns: _Columns, *, spare: IntArray | None) -> Rows:
    """``spare``: nodes that may keep what they have, each by a column of its own behind the others."""
    leavers, size = len(columns.leaver), len(columns.over)
    rows = Rows(columns.size + (0 if spare is None else len(spare)))
    sparing = {} if spare is None else {n: columns.size + row for row, n in enumerate(spare.tolist())}
    for row, places in enumerate(_split(columns.pod, leavers)):
        rows.add(np.append(places + leavers, row), np.append(np.ones(len(places)), -1.0), lower=0.0, upper=0.0)
    arriving, leaving = _split(columns.node, size), _split(problem.source[columns.leaver], size)
    for n in range(size):
        if len(arriving[n]) or columns.over[n]:
            _load_rows(rows, problem, ceiling[n], n, columns, arriving[n], leaving[n], sparing.get(n))
            _room_rows(rows, problem, n, columns, arriving[n], leaving[n])
        if columns.leave[n] == IMPOSSIBLE:  # it is spared, or there is no program
            rows.add(np.array([sparing[n]]), 1.0, lower=1.0)
        elif columns.leave[n]:
            spared = np.array([sparing[n]] if n in sparing else [], dtype=np.int64)
            amounts = np.concatenate((np.ones(len(leaving[n])), np.full(len(spared), float(columns.leave[n]))))
            rows.add(np.concatenate((leaving[n], spared)), amounts, lower=float(columns.leave[n]))
    for caps in problem.caps:
        for row, members in enumerate(_split(caps.group[columns.leaver], len(caps.at_most))):
            if len(members) > caps.at_most[row]:
                rows.add(members, 1.0, upper=float(caps.at_most[row]))
    return rows


def _load_rows(
    rows: Rows, problem: Problem, ceiling: FloatArray, n: int, columns: _Columns, arriving: IntArray, leaving: IntArray, spared: int | None
) -> None:
    arrivers = columns.leaver[columns.pod[arriving]]
    for signal in np.flatnonzero(problem.findings.judged[n]).tolist():
        arrives, leaves = problem.share[arrivers, n, signal], problem.share[columns.leaver[leaving], n, signal]
        room = float(ceiling[signal] - problem.load[n, signal])
        if arrives.sum() <= room:
            continue
        column, value = np.concatenate((arriving + len(columns.leaver), leaving)), np.concatenate((arrives, -leaves))
        if spared is not None and room < 0:
            column, value = np.append(column, spared), np.append(value, room)
        rows.add(column, value, upper=room)


def _room_rows(rows: Rows, problem: Problem, n: int, columns: _Columns, arriving: IntArray, leaving: IntArray) -> None:
    """Scaled by the largest amount, so that bytes and pieces are alike to the solver."""
    both, arrivers, leavers = (
        np.concatenate((arriving + len(columns.leaver), leaving)),
        columns.leaver[columns.pod[arriving]],
        columns.leaver[leaving],
    )
    for resource in range(problem.free.shape[1]):
        asked, back, free = problem.asked[arrivers, resource], problem.given_back[leavers, resource], problem.free[n, resource]
        scale = float(asked.max(initial=0.0))
        if scale > 0 and asked.sum() > free:  # who asks for nothing fits into a node that has less than nothing
            rows.add(both, np.concatenate((asked, -back)) / scale, upper=float(free / scale))


def _split(keys: IntArray, size: int) -> list[IntArray]:
    """Positions by key 0 .. size - 1; negative keys are left out."""
    order = np.argsort(keys, kind="stable").astype(np.int64)
    bounds = np.searchsorted(keys[order], np.arange(size + 1))
    return [order[bounds[key] : bounds[key + 1]] for key in range(size)]
