"""When a gang may move whole, and how many of its members may go without it: worked out once a gang and plan.

A gang moves whole or not at all, but for the surplus above its minimum, which goes one by one. Whole it moves when the policy lets it and
its owner, or the policy, accepts that its work begins anew. What each member must pass beside that, the gates ask of each member.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from rebalancer.guard.checkpoints import not_checkpointed
from rebalancer.policy.model import Mode, Spec
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gangs import GangSystem, MinimumSource
from rebalancer.state.tables import Phase, PodClass

_SOURCES: Mapping[MinimumSource, str] = {
    MinimumSource.OBJECT: "",
    MinimumSource.MARK: "",
    MinimumSource.MEMBERS: "all ",
}


class GangRules:
    """Answers from a cache after the first member of a gang. ``mode``: what only marks pods needs nobody's consent to a restart."""

    def __init__(self, state: ClusterState, spec: Spec, mode: Mode) -> None:
        self._state, self._spec, self._mode = state, spec, mode
        self._barred: dict[int, str] = {}

    def of_pod(self, pod: int) -> int:
        """Row of the pod's gang; -1 for a pod in none."""
        return self._state.gangs.of_pod(pod)

    def members(self, gang: int) -> IntArray:
        """Rows of all that are not finished, ascending."""
        order, starts = self._by_gang
        return np.asarray(self._state.gangs.pod[order[starts[gang] : starts[gang + 1]]], dtype=np.int64)

    @cached_property
    def _by_gang(self) -> tuple[IntArray, IntArray]:
        gangs = self._state.gangs
        order = np.argsort(gangs.gang, kind="stable")
        return order, np.searchsorted(gangs.gang[order], np.arange(len(gangs) + 1))

    @cached_property
    def _working(self) -> BoolArray:
        """(pods,): holds its place in a gang."""
        pods = self._state.pods
        return np.asarray(pods.ready & (pods.phase == int(Phase.RUNNING)) & (pods.node >= 0) & ~pods.terminating, dtype=np.bool_)

    def working(self, gang: int) -> int:
        """Members that are Ready and not on their way out."""
        return int(self._working[self.members(gang)].sum())

    def spare(self, gang: int) -> int:
        """Members that may be away without the gang ending; not below 0."""
        gangs = self._state.gangs
        if self._spec.victims.gangs == "refuse" or gangs.systems[gang] is GangSystem.KUEUE:
            return 0
        return max(0, self.working(gang) - int(gangs.minimum[gang]))

    def accepts_restart(self, pod: int) -> bool:
        """Whether the owner of a training pod accepts that it begins anew: by its word, or as surplus of an elastic job."""
        gang = self.of_pod(pod)
        if gang < 0:
            return not not_checkpointed(self._state, pod)
        return not self.barred(gang) or (self._state.gangs.elastic[gang] and self.spare(gang) > 0)

    def barred(self, gang: int) -> str:
        """Why the gang may not move whole, as a clause; empty when it may."""
        found = self._barred.get(gang)
        if found is None:
            found = self._barred[gang] = self._why_barred(gang)
        return found

    def _why_barred(self, gang: int) -> str:
        gangs, pods, victims = self._state.gangs, self._state.pods, self._spec.victims
        if gangs.systems[gang] is GangSystem.KUEUE:
            return "nobody makes the pods of a plain group anew"
        if victims.gangs == "refuse":
            return "policy victims.gangs is refuse"
        if gangs.backoff_limit[gang] <= 0:
            return "its job has backoffLimit 0, so the first failure ends it"
        if self._mode is Mode.ANNOTATE:
            return ""
        for pod in sorted(self.members(gang).tolist(), key=self._state.pod_name):
            rule: str = getattr(victims.classes, pods.classes[pod].value)
            restarts = pods.classes[pod] is PodClass.TRAINING and rule == "annotate"
            if victims.gangs == "whole" and not restarts:
                continue  # what its class may, the gate of classes says
            if clause := not_checkpointed(self._state, pod):
                key = "victims.gangs is checkpointed" if victims.gangs == "checkpointed" else "victims.classes.training is annotate"
                return f"{self._state.pod_name(pod)} {clause} (policy {key})"
        return ""

    def words(self, gang: int, pod: int) -> str:
        """What the gang is, how many it needs, and what becomes of its work when one is lost."""
        gangs = self._state.gangs
        count, minimum = len(self.members(gang)), int(gangs.minimum[gang])
        needs = f"{_SOURCES[gangs.sources[gang]]}{minimum}"
        limit = self._backoff_limit(gang, pod)
        then = f", backoffLimit {limit:g}" if math.isfinite(limit) else ""
        return (
            f"gang {gangs.title(gang)} of {count} pod{'s' if count != 1 else ''}, which needs {needs} of them "
            f"(restartPolicy {self._state.pods.restart_policy[pod]}{then})"
        )

    def _backoff_limit(self, gang: int, pod: int) -> float:
        limit, workload = float(self._state.gangs.backoff_limit[gang]), int(self._state.pods.workload[pod])
        rules = self._state.workloads.jobs[workload] if workload >= 0 else None
        return rules.backoff_limit if math.isnan(limit) and rules is not None else limit
