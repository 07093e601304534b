"""LowNodeLoad of koord-descheduler, with its anomaly detection (`anomaly`) and its migration limits (`migration`).

Documented behaviour that this follows:

* Usage without what pods used that are gone. A node whose metrics are missing or older than 180 s is neither source nor target.
* Over: strictly above high on any resource. Low: at or below low on all, and not cordoned.
* Nothing happens without a source, without a source that the detector confirms, without a low node, or when all are low.
* Sources by the mean of their resources' load, highest first. Headroom: the sum over the low nodes of what is left to high.
* Candidates are measured, pass the filters, and fit (nodeFit) on some low node by the scheduler's rules with its usage and theirs at or
  below high; each candidate is booked on that node for the round, also when it is not evicted in the end.
* Victims by priority, QoS, usage match, youngest first. Usage match over the resources that are over: ratio = usage / excess, score
  1 / ratio + 1 from a ratio of 1 on, else the ratio: the smallest pod that covers the excess alone, otherwise the biggest.
* Evict while the node is over and every resource has headroom; usage leaves node and headroom.
* An acted-on node gets a normal mark; one that is no longer over by the books is reset, as low nodes are.

Left out, since no pod of a scenario has them: prod thresholds, the classes and costs that are labels and annotations of Koordinator. The
load-aware scheduler plugin that Koordinator has beside it is not in the world. ``lowThresholds`` is the policy's low, ``highThresholds``
its high.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.peers.anomaly import AnomalyCondition, Detector, mark_abnormal, mark_normal, reset
from benchmarks.peers.marks import PeerMarks, marks_of
from benchmarks.peers.migration import Bucket, Job, arbitrate, may_ever_migrate
from benchmarks.peers.victims import evictable
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.policy.model import RebalancePolicy
from rebalancer.simulate.forward.strategy import Actions, StrategyKind
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState

EXPIRY_S = 180.0


@dataclass(frozen=True, slots=True)
class LoadMemory:
    """``detectors`` by node, ``buckets`` by workload uid."""

    detectors: dict[str, Detector] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()
    buckets: dict[str, Bucket] = field(default_factory=dict)


class LowNodeLoad:
    name = "low-node-load"

    def __init__(self, marks: PeerMarks, *, interval_s: float, condition: AnomalyCondition | None = None) -> None:
        self._marks = marks
        self._condition = condition or AnomalyCondition(cache_s=max(AnomalyCondition().cache_s, interval_s))

    def decide(self, state: ClusterState, memory: object) -> Actions:
        held = memory if isinstance(memory, LoadMemory) else LoadMemory()
        detectors, chosen = dict(held.detectors), list[int]()
        load_round = _Round(state, self._marks, {job.uid for job in held.jobs})
        low = np.flatnonzero(load_round.low)
        confirmed = self._confirm(state, np.flatnonzero(load_round.over), detectors)
        for node in low.tolist():
            if state.nodes.names[node] in detectors:
                detectors[state.nodes.names[node]] = reset(detectors[state.nodes.names[node]], at=state.at)
        if confirmed and len(low) and not bool(load_round.low[load_round.known].all()):
            for node in sorted(confirmed, key=load_round.rank):
                chosen.extend(load_round.relieve(node))
            for node in confirmed:
                name = state.nodes.names[node]
                detectors[name] = mark_normal(detectors[name], self._condition, at=state.at)
                if not load_round.is_over(node):
                    detectors[name] = reset(detectors[name], at=state.at)
        jobs = (*held.jobs, *(Job(state.pods.uids[pod], state.at) for pod in chosen))
        passed = arbitrate(state, jobs, held.buckets)
        return Actions(passed.tried, memory=LoadMemory(detectors, passed.waiting, passed.buckets))

    def _confirm(self, state: ClusterState, sources: IntArray, detectors: dict[str, Detector]) -> list[int]:
        """Mark every source once; those that the detector calls anomalous. With one abnormality there is no detector."""
        if self._condition.abnormalities == 1:
            detectors.update({state.nodes.names[node]: Detector(marked_at=state.at) for node in sources.tolist()})
            return [int(node) for node in sources]
        for node in sources.tolist():
            name = state.nodes.names[node]
            detectors[name] = mark_abnormal(detectors.get(name), self._condition, at=state.at)
        return [int(node) for node in sources if detectors[state.nodes.names[int(node)]].anomalous]


class _Round:
    """One round's classes and ledgers: usage of nodes, headroom, and what candidates were booked where."""

    def __init__(self, state: ClusterState, marks: PeerMarks, taken: set[str]) -> None:
        self._state = state
        low, high = marks.shares(state, marks.low), marks.shares(state, marks.high)
        self._judged: BoolArray = np.isfinite(high)
        capacity = state.nodes.capacity[:, self._judged]
        self._capacity, self._high = capacity, high[self._judged] * capacity
        self._used: FloatArray = np.maximum(state.nodes.usage - state.nodes.departed, 0.0)[:, self._judged]
        with np.errstate(invalid="ignore"):
            fresh = (state.nodes.sample_age_s[:, self._judged] <= EXPIRY_S).all(axis=1)
            self.known: BoolArray = state.nodes.ready & fresh & np.isfinite(self._used).all(axis=1)
            self.over: BoolArray = self.known & (self._used > self._high).any(axis=1)
            self.low: BoolArray = self.known & (self._used <= low[self._judged] * capacity).all(axis=1) & ~state.nodes.unschedulable
        self._headroom: FloatArray = (self._high - self._used)[self.low].sum(axis=0)
        self._booked = self._used.copy()
        self._needs: FloatArray = state.pods.measured[:, self._judged]
        free = np.array([uid not in taken for uid in state.pods.uids], dtype=np.bool_)
        self._movable: BoolArray = evictable(state) & np.isfinite(self._needs).all(axis=1) & free
        self._fits: Feasibility | None = None

    def rank(self, node: int) -> float:
        """Sort key: the highest mean load first."""
        return -float(np.minimum(1.0, self._used[node] / self._capacity[node]).mean())

    def is_over(self, node: int) -> bool:
        return bool((self._used[node] > self._high[node]).any())

    def relieve(self, node: int) -> list[int]:
        """Pods to evict from the node, in order; the ledgers are changed."""
        here = np.flatnonzero(self._movable & (self._state.pods.node == node))
        candidates = np.array([pod for pod in here.tolist() if may_ever_migrate(self._state, pod) and self._book(pod)], dtype=np.int64)
        found: list[int] = []
        for pod in self._ordered(candidates, node).tolist():
            if not self.is_over(node) or not (self._headroom > 0).all():
                break
            self._used[node] -= self._needs[pod]
            self._headroom -= self._needs[pod]
            found.append(pod)
        return found

    def _ordered(self, pods: IntArray, node: int) -> IntArray:
        excess = self._used[node] - self._high[node]
        over, state = excess > 0, self._state
        match = usage_match(self._needs[np.ix_(pods, np.flatnonzero(over))], excess[over])
        order = np.lexsort((-state.pods.created_at[pods], -match, state.pods.qos[pods], state.pods.priority[pods]))
        return np.asarray(pods[order], dtype=np.int64)

    def _book(self, pod: int) -> bool:
        """Book the pod on the first low node that it fits on; False when there is none."""
        if self._fits is None:
            self._fits = Feasibility(self._state, Placements(self._state))
        room = (self._booked + self._needs[pod] <= self._high).all(axis=1)
        fitting = np.flatnonzero(self._fits.allowed(pod) & self.low & room)
        if not len(fitting):
            return False
        self._booked[fitting[0]] += self._needs[pod]
        return True


def usage_match(usage: FloatArray, excess: FloatArray) -> FloatArray:
    """(pods,): how well each pod's usage (pods, resources) matches what is too much (resources,), the mean over the resources."""
    if not len(excess):
        return np.zeros(len(usage))
    ratio = usage / excess
    covers = ratio >= 1
    score = np.where(covers, 1 / np.where(covers, ratio, 1.0) + 1, ratio)
    return np.asarray(score.mean(axis=1), dtype=np.float64)


def _make(policy: RebalancePolicy) -> LowNodeLoad:
    return LowNodeLoad(marks_of(policy), interval_s=policy.spec.interval)


LOW_NODE_LOAD = StrategyKind(LowNodeLoad.name, "LowNodeLoad of Koordinator: detector of 5, usage match, migration limits.", _make)
