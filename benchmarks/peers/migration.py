"""The MigrationController that stands between LowNodeLoad and the eviction: jobs, and the limits that they wait for.

Documented behaviour: an eviction is a job for a pod. Never: pods whose workload has one replica, or as many as may migrate at once. A job
waits while the node has ``maxMigratingPerNode`` (2) pods on the way, while the workload has its share on the way or unavailable (replicas
over 10: a tenth; 4 to 10: two; fewer: one), or while the workload's token bucket is empty (burst 1, its share in five minutes). Jobs that
waited five minutes are aborted. Newest jobs first.

Evictions are direct: reservations need a scheduler of their own, which the world does not have. The real controller looks at waiting jobs
every half second; here they are looked at once a cycle, so with long cycles fewer pods pass than would. Pods on the way are those that
terminate or were let go in this cycle; replacements that are not ready count as unavailable.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from rebalancer.simulate.forward.eviction import EvictionApi
from rebalancer.state.cluster import ClusterState

MOST_PER_NODE = 2
JOB_TTL_S = 300.0
LIMITER_S = 300.0
BURST = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    uid: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """``tokens`` that a workload had ``at``."""

    tokens: float
    at: float


@dataclass(frozen=True, slots=True)
class Passed:
    """What one look at the jobs came to. ``tried``: pods whose eviction was asked for, in order."""

    tried: tuple[int, ...]
    waiting: tuple[Job, ...]
    buckets: dict[str, Bucket]


def most_at_once(replicas: float) -> int:
    """Default of maxMigratingPerWorkload and maxUnavailablePerWorkload."""
    if replicas > 10:
        return int(replicas * 0.1)
    return 2 if replicas >= 4 else 1


def may_ever_migrate(state: ClusterState, pod: int) -> bool:
    """The check that no waiting helps with; an unknown number of replicas does not pass it."""
    replicas = float(state.workloads.replicas[int(state.pods.workload[pod])])
    return bool(np.isfinite(replicas)) and replicas != 1 and replicas != most_at_once(replicas)


def arbitrate(state: ClusterState, jobs: tuple[Job, ...], buckets: dict[str, Bucket]) -> Passed:
    """Let go whom the limits let go; the rest waits, until it is too old."""
    desk, waiting, tried = _Desk(state, dict(buckets)), list[Job](), list[int]()
    for job in sorted(jobs, key=lambda job: -job.created_at):
        pod = state.pod_index.get(job.uid)
        if pod is None or state.pods.terminating[pod] or state.at - job.created_at >= JOB_TTL_S:
            continue
        if not desk.passes(pod):
            waiting.append(job)
            continue
        tried.append(pod)
        if not desk.evict(pod):
            waiting.append(job)
    return Passed(tuple(tried), tuple(waiting), desk.buckets)


class _Desk:
    """The ledgers of one look at the jobs."""

    def __init__(self, state: ClusterState, buckets: dict[str, Bucket]) -> None:
        self.buckets = buckets
        self._state = state
        self._api = EvictionApi(state)
        leaving = np.flatnonzero(state.pods.terminating & (state.pods.node >= 0))
        self._by_node: Counter[int] = Counter(state.pods.node[leaving].tolist())
        self._by_workload: Counter[int] = Counter()

    def passes(self, pod: int) -> bool:
        workload, node = int(self._state.pods.workload[pod]), int(self._state.pods.node[pod])
        replicas, ready = (float(column[workload]) for column in (self._state.workloads.replicas, self._state.workloads.ready))
        on_the_way = replicas - ready + self._by_workload[workload]
        return self._by_node[node] < MOST_PER_NODE and on_the_way < most_at_once(replicas) and self._tokens(workload) >= 1

    def evict(self, pod: int) -> bool:
        """True when the API server accepted; only then is anything charged."""
        if self._api.evict(pod):
            return False
        workload = int(self._state.pods.workload[pod])
        self.buckets[self._state.workloads.uids[workload]] = Bucket(self._tokens(workload) - 1, self._state.at)
        self._by_node[int(self._state.pods.node[pod])] += 1
        self._by_workload[workload] += 1
        return True

    def _tokens(self, workload: int) -> float:
        bucket = self.buckets.get(self._state.workloads.uids[workload])
        if bucket is None:
            return BURST
        rate = most_at_once(float(self._state.workloads.replicas[workload])) / LIMITER_S
        return min(BURST, bucket.tokens + (self._state.at - bucket.at) * rate)
