"""What every plan needs, whatever it does with destinations: how many pods must leave a node before it can be under a load.

The largest m shares of a node's pods are the most that m of them can take, signal by signal. Where that is not enough, m pods are not, in
this plan or any other, with chains and swaps too. The counts are cuts for the program and bounds for its answers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from benchmarks.exact.problem import Problem
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

NOISE = 1e-7
"""Far below any pod's share. By so much a cut may be too weak; it is never too strong."""
IMPOSSIBLE = -1


def must_leave(problem: Problem, ceiling: FloatArray, falling: BoolArray, *, leaving: BoolArray | None = None) -> IntArray:
    """(N,): pods that must leave each ``falling`` node to bring it under ``ceiling`` (N, S); `IMPOSSIBLE` where all are too few.

    ``leaving`` (P,): the pods that have a place to go to at all; without it all count, and the answer holds for plans of every kind.
    """
    count, pods_of = np.zeros(len(falling), dtype=np.int64), _pods_by_node(problem)
    for node in np.flatnonzero(falling).tolist():
        here = pods_of[node]
        taken = _most_taken(problem, node, here if leaving is None else here[leaving[here]])
        excess = np.where(problem.findings.judged[node], problem.load[node] - ceiling[node], -np.inf)
        enough = (taken >= excess - NOISE).all(axis=1)
        count[node] = int(np.argmax(enough)) if enough.any() else IMPOSSIBLE
    return count


def worst_floor(problem: Problem, moves: int) -> float:
    """No plan of so many moves brings the worst strain (`Problem.strain`) under this.

    If destinations cost nothing, the best is to spend each move on the node that is the worst by then. And no plan at all brings the strain
    under what it is when all load of a pool is spread evenly.
    """
    f, pods_of = problem.findings, _pods_by_node(problem)
    queue: list[tuple[float, int, Iterator[float]]] = []
    for node in np.flatnonzero(problem.known).tolist():
        judged = f.judged[node]
        left = (problem.load[node] - _most_taken(problem, node, pods_of[node]))[:, judged] / f.high[node, judged]
        steps = iter(left.max(axis=1).tolist())
        queue.append((-next(steps), node, steps))
    heapq.heapify(queue)
    for _ in range(moves if queue else 0):
        _, node, steps = queue[0]
        lower = next(steps, None)
        if lower is None:
            break
        heapq.heapreplace(queue, (-lower, node, steps))
    return max(-queue[0][0] if queue else 0.0, _even(problem))


def _even(problem: Problem) -> float:
    """The largest strain of a pool and signal whose load is spread evenly; what cannot move is spread too."""
    f, worst = problem.findings, 0.0
    for pool in range(len(f.pools)):
        here = np.flatnonzero((f.pool == pool) & problem.known)
        for column in np.flatnonzero(f.judged[here].all(axis=0)).tolist() if len(here) else ():
            capacity = problem.capacity[here, column]
            worst = max(worst, float(problem.load[here, column] @ capacity / (f.high[here, column] @ capacity)))
    return worst


def _pods_by_node(problem: Problem) -> list[IntArray]:
    """Positions in `Problem.pods` of each node."""
    order = np.argsort(problem.source, kind="stable").astype(np.int64)
    bounds = np.searchsorted(problem.source[order], np.arange(len(problem.load) + 1))
    return [order[bounds[node] : bounds[node + 1]] for node in range(len(problem.load))]


def _most_taken(problem: Problem, node: int, here: IntArray) -> FloatArray:
    """(m + 1, S): the most that 0, 1, .. m pods take off the node, each signal for itself, under the strictest kind of cap."""
    share = problem.share[here, node]
    tables = [_taken(share, np.full(len(here), -1), np.zeros(0, dtype=np.int64))]
    tables.extend(_taken(share, caps.group[here], caps.at_most) for caps in problem.caps)
    rows = min(len(table) for table in tables)
    return np.asarray(np.minimum.reduce([table[:rows] for table in tables]), dtype=np.float64)


def _taken(share: FloatArray, group: IntArray, at_most: IntArray) -> FloatArray:
    """(m + 1, S). The groups part the pods, so the largest that are still allowed are the most (a partition matroid)."""
    columns = [np.cumsum([0.0, *_largest(share[:, column], group, at_most)]) for column in range(share.shape[1])]
    return np.stack(columns, axis=1)


def _largest(sizes: FloatArray, group: IntArray, at_most: IntArray) -> list[float]:
    """Falling; of each group as many as it allows. How many there are does not depend on the sizes."""
    left, found = at_most.tolist(), list[float]()
    for position in np.argsort(-sizes, kind="stable").tolist():
        row = int(group[position])
        if row >= 0:
            if left[row] <= 0:
                continue
            left[row] -= 1
        found.append(float(sizes[position]))
    return found
