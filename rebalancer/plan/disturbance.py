"""What an eviction costs those whose pod it is, beside the eviction of a pod that hardly anybody notices.

The weight is 1 for a pod of no priority in a large workload, and grows with three things that are known of every pod: the class of its
work (what is lost when it starts anew), the share of its workload that is away until the replacement is ready, and its priority. A move has
to win ``gain.disruptionCost`` times its weight, and of two pods alike in size the one of less weight goes first.
"""

from __future__ import annotations

import numpy as np

from rebalancer.plan.destination import Landing
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import PodClass

CLASS_WEIGHT = {
    PodClass.BATCH: 1.0,
    PodClass.SERVING: 1.0,
    PodClass.UNKNOWN: 1.0,
    PodClass.EXPERIMENT: 2.0,
    PodClass.TRAINING: 4.0,
    PodClass.SYSTEM: 4.0,
}
"""A notebook loses what is not saved, a training run what was computed since its last checkpoint, a system pod may take others along."""
REPLICA_SHARE = 2.0
"""Added for a workload of which the pod is all there is; half of it where it is one of two."""
HIGHEST_PRIORITY = 1e9
"""The highest that a PriorityClass of a user can have; it doubles the weight, on a logarithmic scale."""


def disturbance(state: ClusterState, pods: IntArray) -> FloatArray:
    """(pods,) weight of evicting each of them, 1 or more. A workload whose ready replicas are unknown counts as one of two."""
    table = state.pods
    by_class = np.array([CLASS_WEIGHT[table.classes[pod]] for pod in pods.tolist()], dtype=np.float64)
    workload = table.workload[pods]
    ready = np.where(workload >= 0, state.workloads.ready[workload] if len(state.workloads.ready) else np.nan, 1.0)
    replicas = np.maximum(1.0, np.where(np.isnan(ready), 2.0, ready))
    priority = np.log10(1.0 + np.clip(table.priority[pods], 0, HIGHEST_PRIORITY)) / np.log10(1.0 + HIGHEST_PRIORITY)
    return np.asarray(by_class * (1.0 + REPLICA_SHARE / replicas) * (1.0 + priority), dtype=np.float64)


def not_worth_it(state: ClusterState, pod: int, landing: Landing, *, cost: float) -> str:
    """Why the move would win too little for what it disturbs, with the numbers; empty when it is worth it."""
    weight = float(disturbance(state, np.array([pod]))[0])
    if landing.gain > cost * weight:
        return ""
    name = state.nodes.names[landing.destination]
    asked = f"gain.disruptionCost {cost:g} times {weight:.1f} for what its eviction disturbs is {cost * weight:.4f}"
    return f"moving it to {name} would win {landing.gain:.4f}; {asked}"
