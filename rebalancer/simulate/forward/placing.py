"""The stock scheduler of the fast-forward world: the same filters and scores that plans are predicted with, over pending pods.

By priority, then by age, each pod goes to the best feasible node, and counts there for the next one. Ties are drawn, since to an outsider
those of the real one are arbitrary. With a hundred nodes and more only a window of the feasible nodes is looked at, and the next search
starts behind it, as in kube-scheduler. Preemption is not simulated.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.plan.stock_scores import StockScores, sample_size
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.cluster import ClusterState


class Placing:
    def __init__(self, ties: np.random.Generator) -> None:
        self._ties = ties
        self._start = 0

    def place(self, state: ClusterState) -> Iterator[tuple[int, int]]:
        """(pod row of the state, node) for each pending pod in its turn; -1 where no node is feasible."""
        pods = state.pods
        pending = np.flatnonzero((pods.node < 0) & ~pods.terminating).tolist()
        if not pending:
            return
        placements = Placements(state)
        feasibility = Feasibility(state, placements, steered_schedulers={each.scheduler_name for each in state.constraints})
        scores = StockScores(state, placements)
        for pod in sorted(pending, key=lambda row: (-int(pods.priority[row]), float(pods.created_at[row]), row)):
            node = self._choose(pod, feasibility, scores)
            if node >= 0:
                placements.book(pod, node)
            yield pod, node

    def _choose(self, pod: int, feasibility: Feasibility, scores: StockScores) -> int:
        feasible = self._window(feasibility.allowed(pod, leaving=False))
        best = scores.best(pod, feasible)
        return -1 if not len(best) else int(best[self._ties.integers(len(best))])

    def _window(self, feasible: BoolArray) -> BoolArray:
        """The feasible nodes that the search comes across before it stops."""
        size, wanted = len(feasible), sample_size(len(feasible))
        if wanted >= size:
            return feasible
        rows: IntArray = np.flatnonzero(feasible)
        turned = rows[np.argsort((rows - self._start) % size, kind="stable")]
        found = turned[:wanted]
        processed = size if len(turned) <= wanted else int((found[-1] - self._start) % size) + 1
        self._start = (self._start + processed) % size
        window = np.zeros(size, dtype=np.bool_)
        window[found] = True
        return window
