"""What an eviction costs those whose pod it is, beside the eviction of a pod that hardly anybody notices.

    weight = class * (1 + share away * time away) * (1 + priority)

It is 1 for a pod of no priority in a large workload, and grows with the class of its work (what is lost when it starts anew), with the
share of its workload that is away until the replacement is Ready, with how long that takes, and with its priority. A move has to win
``gain.disruptionCost`` times its weight, and of two pods alike in size the one of less weight goes first.

How long it takes is what the last replacements of the workload took from the eviction on, else what its pods took from their start on, the
median of either. Time is counted in ``gain.startUp``, which is what nobody minds: a start that is shorter, or that nothing is known of,
counts as one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rebalancer.plan.destination import Landing
from rebalancer.policy.model import Gain
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History
from rebalancer.state.tables import PodClass
from rebalancer.units import format_duration

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
LONGEST = 10.0
"""How many times ``gain.startUp`` counts at the most: a pod that was once unready for a day is not known to start for so long."""
HIGHEST_PRIORITY = 1e9
"""The highest that a PriorityClass of a user can have; it doubles the weight, on a logarithmic scale."""
_LONGEST_KNOWN_S = 1e6
"""Longer starts are all the same, and leave room for the workload in one sortable number."""


class Disturbance:
    """The weights of one cycle."""

    def __init__(self, state: ClusterState, history: History, gain: Gain) -> None:
        self._state, self._history, self._gain = state, history, gain

    @cached_property
    def start_up_s(self) -> FloatArray:
        """(workloads,): seconds until a replacement is Ready; NaN unknown."""
        seconds = _medians(self._state)
        for ref, landed in self._history.start_up.items():
            row = self._state.workload_index.get(ref, -1)
            if row >= 0:
                seconds[row] = landed
        return seconds

    @cached_property
    def _times_away(self) -> FloatArray:
        """(workloads + 1,): in units of ``gain.startUp``, at least one; the last is for pods of no workload."""
        times = np.ones(len(self._state.workloads.refs) + 1)
        if self._gain.start_up:
            times[:-1] = np.nan_to_num(self.start_up_s / self._gain.start_up, nan=1.0)
        return np.clip(times, 1.0, LONGEST)

    def weights(self, pods: IntArray) -> FloatArray:
        """(pods,) weight of evicting each of them, 1 or more. A workload whose ready replicas are unknown counts as one of two."""
        state, table = self._state, self._state.pods
        by_class = np.array([CLASS_WEIGHT[table.classes[pod]] for pod in pods.tolist()], dtype=np.float64)
        workload = table.workload[pods]
        ready = np.where(workload >= 0, state.workloads.ready[workload] if len(state.workloads.ready) else np.nan, 1.0)
        replicas = np.maximum(1.0, np.where(np.isnan(ready), 2.0, ready))
        away = REPLICA_SHARE / replicas * self._times_away[workload]
        priority = np.log10(1.0 + np.clip(table.priority[pods], 0, HIGHEST_PRIORITY)) / np.log10(1.0 + HIGHEST_PRIORITY)
        return np.asarray(by_class * (1.0 + away) * (1.0 + priority), dtype=np.float64)

    def words(self, pod: int) -> str:
        """What of the weight is due to a long start, to be read behind the weight; empty where none is."""
        row = int(self._state.pods.workload[pod])
        if row < 0 or self._times_away[row] <= 1.0:
            return ""
        took = format_duration(round(float(self.start_up_s[row])))
        return f"{self._state.workloads.refs[row]} takes {took} to become Ready, gain.startUp is {format_duration(self._gain.start_up)}"

    def not_worth_it(self, pod: int, landing: Landing) -> str:
        """Why the move would win too little for what it disturbs, with the numbers; empty when it is worth it."""
        cost, weight = self._gain.disruption_cost, float(self.weights(np.array([pod]))[0])
        if landing.gain > cost * weight:
            return ""
        name, slow = self._state.nodes.names[landing.destination], self.words(pod)
        asked = f"gain.disruptionCost {cost:g} times {weight:.1f} for what its eviction disturbs is {cost * weight:.4f}"
        return f"moving it to {name} would win {landing.gain:.4f}; {asked}" + (f" ({slow})" if slow else "")


def _medians(state: ClusterState) -> FloatArray:
    """(workloads,): the lower median of what the pods of each workload took to become Ready; NaN where none is known."""
    found = np.full(len(state.workloads.refs), np.nan)
    took, workload = state.pods.ready_after, state.pods.workload
    rows = np.flatnonzero((workload >= 0) & np.isfinite(took))
    if not len(rows):
        return found
    # One number for both, the workload above the seconds: sorting numbers is ten times as fast as sorting by two columns.
    keys = np.sort(workload[rows] * (2 * _LONGEST_KNOWN_S) + np.minimum(took[rows], _LONGEST_KNOWN_S))
    owner = (keys // (2 * _LONGEST_KNOWN_S)).astype(np.int64)
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    last = np.append(first[1:], len(keys)) - 1
    middle = (first + last) // 2
    found[owner[middle]] = keys[middle] - owner[middle] * (2 * _LONGEST_KNOWN_S)
    return found
