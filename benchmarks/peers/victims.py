"""What the evictors of all peers refuse alike, and the order of priority and QoS that they all begin with.

Refused: static and mirror pods, pods that terminate or have ended, pods without an owner, those of DaemonSets, those of system-critical
priority, and those with local storage. Usage is no key of the order, and equals stay in the order in which the pods are listed.
"""

from __future__ import annotations

import numpy as np

from rebalancer.guard.priorities import SYSTEM_CRITICAL
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase


def evictable(state: ClusterState) -> BoolArray:
    """(pods,): the default filters let the pod go."""
    pods = state.pods
    daemons = np.array([ref.kind == "DaemonSet" for ref in state.workloads.refs], dtype=np.bool_)
    owned = pods.workload >= 0
    of_daemon = np.zeros(len(pods.uids), dtype=np.bool_)
    of_daemon[owned] = daemons[pods.workload[owned]]
    local = np.array([bool(volumes.local) for volumes in pods.volumes], dtype=np.bool_)
    ended = np.isin(pods.phase, (int(Phase.SUCCEEDED), int(Phase.FAILED)))
    critical = pods.priority >= SYSTEM_CRITICAL
    return np.asarray((pods.node >= 0) & owned & ~(pods.mirror | pods.terminating | ended | of_daemon | critical | local), dtype=np.bool_)


def by_priority_and_qos(state: ClusterState, pods: IntArray) -> IntArray:
    """Low priority first, then BestEffort, Burstable, Guaranteed; equals as they are given."""
    order = np.lexsort((np.arange(len(pods)), state.pods.qos[pods], state.pods.priority[pods]))
    return np.asarray(pods[order], dtype=np.int64)
