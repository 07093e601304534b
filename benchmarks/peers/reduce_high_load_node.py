"""ReduceHighLoadNode of the TKE DeScheduler.

Documented behaviour that this follows:

* A node is hot when its mean of five minutes is above the threshold on CPU *or* memory (the window is the policy's, five minutes unless it
  says otherwise).
* Pods leave until the node is at or below the target utilisation, as far as that goes; low priority first.
* A pod may leave while more than half of its workload's replicas are ready; disruption budgets hold.
* There is no condition on destinations: the product says to run a load-aware scheduler beside it. The world has the stock scheduler.

Workloads have to opt in by an annotation; every workload of a scenario has. The threshold is the policy's high, the target its target. Not
documented and decided here: hottest nodes first; equals as they are listed; pods of unknown usage stay, since they cannot be subtracted.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from benchmarks.peers.marks import PeerMarks, marks_of
from benchmarks.peers.victims import by_priority_and_qos, evictable
from rebalancer.simulate.forward.eviction import EvictionApi
from rebalancer.simulate.forward.strategy import Actions, StrategyKind
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState


class ReduceHighLoadNode:
    name = "reduce-high-load-node"

    def __init__(self, marks: PeerMarks) -> None:
        self._marks = marks

    def decide(self, state: ClusterState, memory: object) -> Actions:
        threshold, target = (self._marks.shares(state, marks) for marks in (self._marks.high, self._marks.target))
        load = state.nodes.usage / state.nodes.capacity
        with np.errstate(invalid="ignore"):
            hot = np.flatnonzero((load > threshold).any(axis=1) & state.nodes.ready)
        worst = np.nanmax(load[hot], axis=1) if len(hot) else np.zeros(0)
        round_ = _Round(state, target)
        for node in hot[np.argsort(-worst, kind="stable")].tolist():
            round_.relieve(node)
        return Actions(evictions=tuple(round_.tried))


class _Round:
    """One cycle: what was tried, and what of each workload has left already."""

    def __init__(self, state: ClusterState, target: FloatArray) -> None:
        self._state = state
        self._target = target
        self._api = EvictionApi(state)
        known = np.isfinite(state.pods.measured[:, np.isfinite(target)]).all(axis=1)
        self._movable = evictable(state) & known
        self._gone: Counter[int] = Counter()
        self.tried: list[int] = []

    def relieve(self, node: int) -> None:
        """Evict until the node is at its target, or nobody may leave."""
        state = self._state
        used = state.nodes.usage[node].copy()
        for pod in by_priority_and_qos(state, np.flatnonzero(self._movable & (state.pods.node == node))).tolist():
            with np.errstate(invalid="ignore"):
                if not (used / state.nodes.capacity[node] > self._target).any():
                    return
            if not self._enough_ready(pod):
                continue
            self.tried.append(pod)
            if not self._api.evict(pod):
                self._gone[int(state.pods.workload[pod])] += 1
                used -= state.pods.measured[pod]

    def _enough_ready(self, pod: int) -> bool:
        """More than half of the replicas are ready; what is unknown is not enough."""
        workload = int(self._state.pods.workload[pod])
        ready = float(self._state.workloads.ready[workload]) - self._gone[workload]
        return ready > float(self._state.workloads.replicas[workload]) / 2


REDUCE_HIGH_LOAD_NODE = StrategyKind(
    ReduceHighLoadNode.name,
    "ReduceHighLoadNode of the TKE DeScheduler: from the threshold down to the target, low priority first.",
    lambda policy: ReduceHighLoadNode(marks_of(policy)),
)
