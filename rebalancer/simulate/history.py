"""What a scraper would have collected: counters and gauges of every pod and node at each scrape, computed when asked for.

Scrapes happen at whole multiples of the interval. Counters grow by the usage at the middle of each interval times the part of it that
the pod was there, so the sum over pods and the system is exactly what the node's counter grows by, and a pod that left stays visible to
a window that reaches back. Old scrapes are dropped beyond the retention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.load import LoadModel, Tenures
from rebalancer.simulate.world import World

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scrape:
    """One moment. Rows are those of the tenures (and nodes) known then; rows added later were not there."""

    at: float
    pod_cpu_seconds: Floats
    pod_memory: Floats
    node_cpu_seconds: Floats
    node_memory: Floats


class Samples:
    """A stretch of scrapes as matrices, each built when it is asked for. Shapes: (tenures, samples) and (nodes, samples)."""

    def __init__(self, scrapes: Sequence[Scrape], tenures: Tenures, nodes: int) -> None:
        self._scrapes = scrapes
        self._nodes = nodes
        self.tenures = tenures
        self.times: Floats = np.array([scrape.at for scrape in scrapes], dtype=np.float64)

    @property
    def node_shape(self) -> tuple[int, int]:
        return self._nodes, len(self._scrapes)

    def pod_present(self) -> Bools:
        tenures = self.tenures
        return (tenures.start[:, None] <= self.times) & (self.times < tenures.end[:, None])

    def pod_cpu_seconds(self) -> Floats:
        return _matrix([scrape.pod_cpu_seconds for scrape in self._scrapes], len(self.tenures.uids))

    def pod_memory(self) -> Floats:
        return _matrix([scrape.pod_memory for scrape in self._scrapes], len(self.tenures.uids))

    def node_cpu_seconds(self) -> Floats:
        return _matrix([scrape.node_cpu_seconds for scrape in self._scrapes], self._nodes)

    def node_memory(self) -> Floats:
        return _matrix([scrape.node_memory for scrape in self._scrapes], self._nodes)

    def node_present(self) -> Bools:
        present = np.zeros(self.node_shape, dtype=bool)
        for column, scrape in enumerate(self._scrapes):
            present[: len(scrape.node_memory), column] = True
        return present


class History:
    def __init__(
        self, world: World, load: LoadModel, *, interval_s: float = 15.0, retention_s: float = 7200.0, back_s: float = 3600.0
    ) -> None:
        self._world, self._load = world, load
        self.interval_s = interval_s
        self._retention_s = retention_s
        self._scrapes: list[Scrape] = []
        self._next = math.floor((world.now - back_s) / interval_s)
        self._begin = self._next * interval_s

    def _grow(self) -> None:
        while self._next * self.interval_s <= self._world.now:
            self._scrapes.append(self._scrape(self._next * self.interval_s))
            self._next += 1
        keep_from = self._world.now - self._retention_s
        drop = 0
        while drop < len(self._scrapes) - 1 and self._scrapes[drop].at < keep_from:
            drop += 1
        del self._scrapes[:drop]

    def _scrape(self, at: float) -> Scrape:
        tenures = self._load.tenures()
        length = self.interval_s
        overlap = np.clip(np.minimum(tenures.end, at) - np.maximum(tenures.start, at - length), 0.0, length)
        middle = self._load.usage(at - length / 2, share=overlap / length)
        now = self._load.usage(at)
        if self._scrapes:
            last = self._scrapes[-1]
            pods = np.zeros(len(tenures.uids))
            pods[: len(last.pod_cpu_seconds)] = last.pod_cpu_seconds
            nodes = np.zeros(len(self._load.node_names))
            nodes[: len(last.node_cpu_seconds)] = last.node_cpu_seconds
        else:  # what was used before the first scrape that anybody can see
            pods = now.pod_cpu * np.maximum(0.0, at - length - tenures.start)
            nodes = now.node_cpu * 30 * 86400.0
        return Scrape(at, pods + middle.pod_cpu * length, now.pod_memory, nodes + middle.node_cpu * length, now.node_memory)

    def samples(self, start: float, end: float) -> Samples:
        """Every scrape from ``start`` to ``end``, both included, not after the world's now."""
        with self._world.lock:
            self._grow()
            chosen = [scrape for scrape in self._scrapes if start <= scrape.at <= end]
            tenures, nodes = self._load.tenures(), len(self._load.node_names)
        return Samples(chosen, tenures, nodes)


def _matrix(columns: list[Floats], rows: int) -> Floats:
    """The columns side by side, as long as ``rows``; NaN where a column is shorter."""
    matrix = np.full((rows, len(columns)), np.nan)
    for index, column in enumerate(columns):
        matrix[: len(column), index] = column
    return matrix
