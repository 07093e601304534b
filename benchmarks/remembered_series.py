"""The series of the simulated Prometheus, each family built once a moment.

A large cluster's pods are asked for in shards, all of the same moment. Building every series of a family anew for each of them would make
the cost of the answers grow with the square of the cluster, and the benchmark wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rebalancer.simulate.promql.frames import Block
from rebalancer.simulate.promql.syntax import Matcher
from rebalancer.simulate.series import ClusterSeries

KEPT = 2
"""Families: the signals whose pods are asked for at the same time."""


class RememberedSeries(ClusterSeries):
    """Serves what ``series`` serves, as long as nothing in the world changes. Used under the lock of the world."""

    def __init__(self, series: ClusterSeries) -> None:
        super().__init__(series._history, series._directory, series.options)
        self.faults, self.extra = series.faults, series.extra
        self._built: dict[tuple[str, float, float], list[Block]] = {}

    def select(self, name: str, matchers: Sequence[Matcher], start: float, end: float) -> list[Block]:
        key = (name, start, end)
        blocks = self._built.get(key)
        if blocks is None:
            blocks = super().select(name, (), start, end)
            while len(self._built) >= KEPT:
                del self._built[next(iter(self._built))]
            self._built[key] = blocks
        chosen = [(block, block.labels.admitted(matchers)) for block in blocks]
        return [block if mask.all() else block.take(np.flatnonzero(mask)) for block, mask in chosen if mask.any()]
