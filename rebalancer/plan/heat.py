"""How bad a load is, and how much better a move makes it.

    heat      = sum over nodes and signals of weight * max(0, load - target)^2
    imbalance = sum over nodes and signals of weight * (load - pool mean)^2
    gain      = fall of heat + IMBALANCE_SHARE * fall of imbalance, of the source and of the destination

Squares make the hottest node count most; the imbalance term tells two destinations apart that are both under target. The pool's mean is
taken as it was before the plan: a move inside a pool does not change it where nodes are alike.
"""

from __future__ import annotations

import numpy as np

from rebalancer.detect.findings import Findings
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_usage

IMBALANCE_SHARE = 0.05


class LoadBook:
    """What every node would use after the moves booked so far. Mutable; one instance a plan.

    ``usage`` (nodes, signals) float64 in the signals' units, NaN unknown.
    """

    def __init__(self, state: ClusterState, findings: Findings) -> None:
        self._state = state
        self._findings = findings
        self.usage: FloatArray = node_usage(state)
        self.usage[~state.nodes.ready] = np.nan
        self._mean = np.full(findings.load.shape, np.nan)
        claimed = findings.pool >= 0
        self._mean[claimed] = findings.pool_mean[findings.pool[claimed]]

    def load(self, nodes: IntArray | slice = slice(None)) -> FloatArray:
        """(nodes, signals) ratios."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.usage[nodes] / self._state.nodes.capacity[nodes], dtype=np.float64)

    def load_with(self, nodes: IntArray, extra: FloatArray) -> FloatArray:
        """(nodes, signals) ratios if ``extra`` (signals,) joined each of the nodes; NaN in ``extra`` stays unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.usage[nodes] + extra) / self._state.nodes.capacity[nodes], dtype=np.float64)

    def badness(self, nodes: IntArray, load: FloatArray) -> FloatArray:
        """(nodes,) heat plus its share of imbalance; signals that a node is not judged by do not count."""
        f = self._findings
        judged = f.judged[nodes]
        heat = np.maximum(0.0, load - f.target[nodes]) ** 2
        spread = (load - self._mean[nodes]) ** 2
        value = f.weight[nodes] * (heat + IMBALANCE_SHARE * spread)
        return np.asarray(np.where(judged, value, 0.0).sum(axis=1), dtype=np.float64)

    def gain(self, *, source: int, nodes: IntArray, usage: FloatArray) -> FloatArray:
        """(nodes,) gain of moving ``usage`` (signals,) from ``source`` to each of the nodes; NaN where a load is unknown."""
        at = np.array([source])
        before_source = self.badness(at, self.load(at))[0]
        after_source = self.badness(at, self.load_with(at, -usage))[0]
        before = self.badness(nodes, self.load(nodes))
        after = self.badness(nodes, self.load_with(nodes, usage))
        return np.asarray((before_source - after_source) + (before - after), dtype=np.float64)

    def book(self, *, source: int, destination: int, usage: FloatArray) -> None:
        """Move ``usage`` (signals,); a signal that the pod is not measured by changes nothing, since nobody knows by how much."""
        known = ~np.isnan(usage)
        self.usage[source, known] = np.maximum(0.0, self.usage[source, known] - usage[known])
        self.usage[destination, known] += usage[known]
