"""How bad a load is, and how much better a move makes it.

    heat      = sum over nodes and signals of weight * max(0, load - target)^2
    imbalance = sum over nodes and signals of weight * (load - pool mean)^2
    gain      = fall of heat + IMBALANCE_SHARE * fall of imbalance, of the source and of the destination

Squares make the hottest node count most; the imbalance term tells two destinations apart that are both under target. The pool's mean is
taken as it was before the plan: a move inside a pool does not change it where nodes are alike.

Where the policy keeps room for swings, every load above is the load's reach: mean usage plus ``deviations`` standard deviations of the pods
that are there. Variances add where usages do, so that a pod takes its own swings along.
"""

from __future__ import annotations

import numpy as np

from rebalancer.detect.findings import Findings
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_deviation, node_usage

IMBALANCE_SHARE = 0.05


class LoadBook:
    """What every node would use after the moves booked so far. Mutable; one instance a plan.

    ``usage`` (nodes, signals) float64 in the signals' units, NaN unknown; ``variance`` (nodes, signals) in their squares, 0 unknown.
    """

    def __init__(self, state: ClusterState, findings: Findings) -> None:
        self._state = state
        self._findings = findings
        self.usage: FloatArray = node_usage(state)
        self.usage[~state.nodes.ready] = np.nan
        self.variance: FloatArray = node_deviation(state) ** 2 if findings.deviations else np.zeros(self.usage.shape)
        self._swings: FloatArray = np.nan_to_num(state.pods.deviation) ** 2
        self.moves = 0
        """Grows with every booking and with every rewinding: what was worked out from the loads holds as long as this does not change."""
        self._before: list[tuple[IntArray, FloatArray, FloatArray]] = []
        """Of each booking: its two nodes, and their rows of ``usage`` and ``variance`` as they were."""
        self._mean = np.full(findings.load.shape, np.nan)
        claimed = findings.pool >= 0
        self._mean[claimed] = findings.pool_mean[findings.pool[claimed]]

    def load(self, nodes: IntArray | slice = slice(None)) -> FloatArray:
        """(nodes, signals) ratios."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.usage[nodes] / self._state.nodes.capacity[nodes], dtype=np.float64)

    def reach(self, nodes: IntArray | slice = slice(None)) -> FloatArray:
        """(nodes, signals) ratios: loads with the room for swings."""
        return self._reach(nodes, self.usage[nodes], self.variance[nodes])

    def reach_with(self, nodes: IntArray, pod: int) -> FloatArray:
        """(nodes, signals) ratios if the pod joined each of the nodes; a usage that is unknown stays unknown."""
        return self._reach(nodes, self.usage[nodes] + self._state.pods.usage[pod], self.variance[nodes] + self._swings[pod])

    def reach_without(self, node: int, pods: IntArray) -> FloatArray:
        """(pods, signals) ratios of the node if each of the pods alone had left it."""
        at = np.full(len(pods), node)
        return self._reach(at, self.usage[node] - self._state.pods.usage[pods], self.variance[node] - self._swings[pods])

    def _reach(self, nodes: IntArray | slice, usage: FloatArray, variance: FloatArray) -> FloatArray:
        swing = self._findings.deviations * np.sqrt(np.maximum(0.0, variance)) if self._findings.deviations else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((usage + swing) / self._state.nodes.capacity[nodes], dtype=np.float64)

    def badness(self, nodes: IntArray, load: FloatArray) -> FloatArray:
        """(nodes,) heat plus its share of imbalance; signals that a node is not judged by do not count."""
        f = self._findings
        judged = f.judged[nodes]
        heat = np.maximum(0.0, load - f.target[nodes]) ** 2
        spread = (load - self._mean[nodes]) ** 2
        value = f.weight[nodes] * (heat + IMBALANCE_SHARE * spread)
        return np.asarray(np.where(judged, value, 0.0).sum(axis=1), dtype=np.float64)

    def gain(self, *, source: int, nodes: IntArray, pod: int) -> FloatArray:
        """(nodes,) gain of moving the pod from ``source`` to each of the nodes; NaN where a load is unknown."""
        at = np.array([source])
        before_source = self.badness(at, self.reach(at))[0]
        after_source = self.badness(at, self.reach_without(source, np.array([pod])))[0]
        before = self.badness(nodes, self.reach(nodes))
        after = self.badness(nodes, self.reach_with(nodes, pod))
        return np.asarray((before_source - after_source) + (before - after), dtype=np.float64)

    def book(self, *, source: int, destination: int, pod: int) -> None:
        """Move the pod; a signal that it is not measured by changes nothing, since nobody knows by how much."""
        usage, swings = self._state.pods.usage[pod], self._swings[pod]
        self.moves += 1
        ends = np.array([source, destination])
        self._before.append((ends, self.usage[ends], self.variance[ends]))
        known = ~np.isnan(usage)
        self.usage[source, known] = np.maximum(0.0, self.usage[source, known] - usage[known])
        self.usage[destination, known] += usage[known]
        if self._findings.deviations:
            self.variance[source] = np.maximum(0.0, self.variance[source] - swings)
            self.variance[destination] += swings

    def mark(self) -> int:
        """Where `rewind` goes back to."""
        return len(self._before)

    def rewind(self, mark: int) -> None:
        """Take back everything that was booked since the mark."""
        while len(self._before) > mark:
            ends, usage, variance = self._before.pop()
            self.usage[ends], self.variance[ends] = usage, variance
        self.moves += 1
