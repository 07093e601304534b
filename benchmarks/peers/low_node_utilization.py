"""LowNodeUtilization of kubernetes-sigs/descheduler with usage from Prometheus.

Documented behaviour that this follows:

* One metric, here CPU. A sample is a share of the node, truncated to whole percent (0.569 is 56); a ready node without a sample fails the
  plugin for the cycle.
* Under-utilised: at or below ``thresholds`` and not cordoned. Over-utilised: strictly above ``targetThresholds``.
* Nothing happens without an under-utilised node, without an over-utilised one, or when all are under-utilised.
* One budget for the cluster: the sum over the under-utilised nodes of what is left to the target threshold; it must be above zero.
* Nodes with the highest usage first; victims by priority, then QoS, then as they are listed. Usage of pods is unknown in this mode, so
  nothing is subtracted: with ``evictionLimits.node`` unset exactly one pod leaves each over-utilised node in a cycle, with N up to N leave
  without any feedback.
* A refused eviction (a disruption budget) does not count to the limit, and the next pod is tried.
* The destination is the scheduler's affair; nodeFit is off by default and is off here.

``thresholds`` is the policy's low, ``targetThresholds`` its high. Values above 1 are cut, as a query that ends in clamp_max(..., 1) does.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers.marks import marks_of
from benchmarks.peers.victims import by_priority_and_qos, evictable
from rebalancer.policy.model import RebalancePolicy
from rebalancer.simulate.forward.eviction import EvictionApi
from rebalancer.simulate.forward.strategy import Actions, StrategyKind
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState

METRIC = "cpu"
_EXACT = 1e-9
"""Shares such as 0.29 times 100 come out a hair under the whole number that was written."""


class LowNodeUtilization:
    """``limit``: evictionLimits.node; None is unset."""

    def __init__(self, *, low: float, target: float, limit: int | None, name: str = "low-node-utilization") -> None:
        self.name = name
        self._low = int(low)
        self._target = int(target)
        self._limit = limit

    def decide(self, state: ClusterState, memory: object) -> Actions:
        percent = _percent(state)
        ready = np.asarray(state.nodes.ready)
        missing = np.flatnonzero(ready & np.isnan(percent))
        if len(missing):
            return Actions(undecided=f"unable to find metric entry for {state.nodes.names[int(missing[0])]}")
        with np.errstate(invalid="ignore"):
            under = ready & (percent <= self._low) & ~state.nodes.unschedulable
            over = ready & (percent > self._target)
        budget = float((self._target - percent[under]).sum())
        if not under.any() or bool(under[ready].all()) or not over.any() or budget <= 0:
            return Actions()
        hottest_first = np.flatnonzero(over)
        hottest_first = hottest_first[np.argsort(-percent[hottest_first], kind="stable")]
        return Actions(evictions=self._victims(state, [int(node) for node in hottest_first]))

    def _victims(self, state: ClusterState, nodes: list[int]) -> tuple[int, ...]:
        api, movable, tried = EvictionApi(state), evictable(state), list[int]()
        for node in nodes:
            left = 1 if self._limit is None else self._limit
            for pod in by_priority_and_qos(state, np.flatnonzero(movable & (state.pods.node == node))).tolist():
                if not left:
                    break
                tried.append(pod)
                left -= not api.evict(pod)
        return tuple(tried)


def _percent(state: ClusterState) -> FloatArray:
    """(nodes,): the sample in whole percent, NaN where there is none."""
    column = state.signal_index[METRIC]
    share = state.nodes.usage[:, column] / state.nodes.capacity[:, column]
    return np.asarray(np.floor(np.minimum(share, 1.0) * 100 + _EXACT), dtype=np.float64)


def _kind(name: str, limit: int | None) -> StrategyKind:
    said = "unset" if limit is None else str(limit)

    def make(policy: RebalancePolicy) -> LowNodeUtilization:
        marks = marks_of(policy)
        return LowNodeUtilization(low=marks.low[METRIC], target=marks.high[METRIC], limit=limit, name=name)

    return StrategyKind(name, f"LowNodeUtilization of the descheduler, CPU from Prometheus, evictionLimits.node {said}.", make)


LOW_NODE_UTILIZATION = _kind("low-node-utilization", None)
LOW_NODE_UTILIZATION_1 = _kind("low-node-utilization-1", 1)
LOW_NODE_UTILIZATION_5 = _kind("low-node-utilization-5", 5)
