"""Evict mode: soft taints first, then one eviction at a time, each re-checked right before and told in an Event.

The only write on a pod is `pods/eviction`, with the pod's UID. Whatever the API server answers becomes an outcome with its sentence;
nothing is retried here beyond what `kube.eviction` does for a disruption budget that is about to recover.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.act.nominations import HOLD_S
from rebalancer.act.outcome import Outcome, Prepared, Result
from rebalancer.act.tainting import SoftTainting, TaintResult, taint_work
from rebalancer.act.telling import Teller
from rebalancer.act.together import Together
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError, KubernetesForbidden, KubernetesThrottled
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import EventWriter
from rebalancer.kube.eviction import Eviction, EvictionOutcome, evict, read_pod_identity
from rebalancer.plan.model import Move, Plan
from rebalancer.policy.model import Pool
from rebalancer.state.tables import WorkloadRef

_RESULTS = {
    EvictionOutcome.EVICTED: Result.EVICTED,
    EvictionOutcome.IN_PROGRESS: Result.EVICTED,
    EvictionOutcome.UNKNOWN: Result.UNKNOWN,
    EvictionOutcome.ALREADY_GONE: Result.GONE,
    EvictionOutcome.REPLACED: Result.GONE,
    EvictionOutcome.BLOCKED_BY_BUDGET: Result.BLOCKED,
    EvictionOutcome.SEVERAL_BUDGETS: Result.BLOCKED,
    EvictionOutcome.THROTTLED: Result.THROTTLED,
    EvictionOutcome.FORBIDDEN: Result.FORBIDDEN,
    EvictionOutcome.FAILED: Result.FAILED,
}
_STOPS = (Result.THROTTLED, Result.FORBIDDEN, Result.UNKNOWN)
"""What the next move of the plan would meet as well. One eviction in doubt is enough."""


class EvictActuator:
    """``events``: None writes none. ``attempts``: see `kube.eviction.evict`. Whether it steers by soft taints, the plan says.

    ``tainted``: see ``told`` of `SoftTainting`. ``hold_s``: see `Nominations`.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        events: EventWriter | None,
        attempts: int = 3,
        tainted: Callable[[TaintResult], None] = lambda result: None,
        hold_s: float = HOLD_S,
    ) -> None:
        self._client = client
        self._teller = Teller(events)
        self._attempts = attempts
        self._tainting = SoftTainting(client, told=tainted)
        self._together = Together(client, changed=lambda move, deadline: self._changed(move, deadline=deadline), hold_s=hold_s)

    def prepare(self, plan: Plan, *, at: float, deadline: Deadline) -> Prepared:
        self._together.begin(plan)
        return self._tainting.steer(taint_work(plan, put=self._tainting.put), deadline=deadline)

    def carry_out(self, move: Move, *, at: float, deadline: Deadline) -> Outcome:
        held_back = self._together.held_back(move, deadline=deadline)
        outcome = held_back or self._changed(move, deadline=deadline) or self._evicted(move, deadline=deadline)
        self._together.hear(outcome, deadline=deadline)
        self._teller.outcome(outcome, at=at, deadline=deadline)
        return outcome

    def tell_rest(self, workload: WorkloadRef, why: str, *, at: float, deadline: Deadline) -> None:
        self._teller.rest(workload, why, at=at, deadline=deadline)

    def clean_up(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None) -> tuple[str, ...]:
        return self._tainting.remove_all(deadline=deadline, pools=pools)

    def _changed(self, move: Move, *, deadline: Deadline) -> Outcome | None:
        """The re-check: why the move does not hold any more. A pod that is gone or leaving is left to `evict`, which says so."""
        pod = move.pod
        try:
            found = read_pod_identity(self._client, namespace=pod.namespace, name=pod.name, deadline=deadline)
        except KubernetesForbidden as error:
            return Outcome(move, Result.FORBIDDEN, str(error), stop=True)
        except KubernetesThrottled as error:
            return Outcome(move, Result.THROTTLED, str(error), stop=True)
        except KubernetesError as error:
            return Outcome(move, Result.FAILED, str(error))
        if found is None or found.uid != pod.uid or found.terminating or found.node == move.source:
            return None
        return Outcome(move, Result.CHANGED, f"it is on {found.node or 'no node'}, not on {move.source} any more")

    def _evicted(self, move: Move, *, deadline: Deadline) -> Outcome:
        pod = move.pod
        answer = evict(self._client, namespace=pod.namespace, name=pod.name, uid=pod.uid, deadline=deadline, attempts=self._attempts)
        return outcome_of(move, answer)


def outcome_of(move: Move, answer: Eviction) -> Outcome:
    """What the answer of the eviction API means for the move and for the rest of its plan."""
    result = _RESULTS[answer.outcome]
    return Outcome(move, result, answer.message, stop=result in _STOPS)
