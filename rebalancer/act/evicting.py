"""Evict mode: soft taints first, then one eviction at a time, each re-checked right before and told in an Event.

The only write on a pod is `pods/eviction`, with the pod's UID. Whatever the API server answers becomes an outcome with its sentence;
nothing is retried here beyond what `kube.eviction` does for a disruption budget that is about to recover.
"""

from __future__ import annotations

import datetime

from rebalancer.act.names import REASON_FAILED, REASON_MOVED, REASON_REFUSED
from rebalancer.act.outcome import Outcome, Result
from rebalancer.act.tainting import SoftTainting, taint_work
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import Event, EventType, EventWriter, ObjectRef
from rebalancer.kube.eviction import Eviction, EvictionOutcome, evict, read_pod_identity
from rebalancer.plan.model import Move, Plan

_RESULTS = {
    EvictionOutcome.EVICTED: Result.EVICTED,
    EvictionOutcome.IN_PROGRESS: Result.EVICTED,
    EvictionOutcome.UNKNOWN: Result.EVICTED,  # it may have happened, so it counts to every limit
    EvictionOutcome.ALREADY_GONE: Result.GONE,
    EvictionOutcome.REPLACED: Result.GONE,
    EvictionOutcome.BLOCKED_BY_BUDGET: Result.BLOCKED,
    EvictionOutcome.SEVERAL_BUDGETS: Result.BLOCKED,
    EvictionOutcome.THROTTLED: Result.THROTTLED,
    EvictionOutcome.FORBIDDEN: Result.FORBIDDEN,
    EvictionOutcome.FAILED: Result.FAILED,
}
_API_VERSIONS = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}


class EvictActuator:
    """``steer``: put soft taints before the first eviction. ``events``: None writes none. ``attempts``: see `kube.eviction.evict`."""

    def __init__(self, client: KubeClient, *, steer: bool, events: EventWriter | None, attempts: int = 3) -> None:
        self._client = client
        self._steer = steer
        self._events = events
        self._attempts = attempts
        self._tainting = SoftTainting(client)

    def prepare(self, plan: Plan, *, at: float, deadline: Deadline) -> tuple[str, ...]:
        return self._tainting.apply(taint_work(plan), deadline=deadline) if self._steer else ()

    def carry_out(self, move: Move, *, at: float, deadline: Deadline) -> Outcome:
        pod = move.pod
        try:
            found = read_pod_identity(self._client, namespace=pod.namespace, name=pod.name, deadline=deadline)
        except KubernetesError as error:
            return self._told(Outcome(move, Result.FAILED, str(error)), at=at, deadline=deadline)
        if found is not None and found.uid == pod.uid and not found.terminating and found.node != move.source:
            where = found.node or "no node"
            return self._told(Outcome(move, Result.CHANGED, f"it is on {where}, not on {move.source} any more"), at=at, deadline=deadline)
        answer = evict(self._client, namespace=pod.namespace, name=pod.name, uid=pod.uid, deadline=deadline, attempts=self._attempts)
        return self._told(_outcome(move, answer), at=at, deadline=deadline)

    def clean_up(self, *, deadline: Deadline) -> tuple[str, ...]:
        return self._tainting.remove_all(deadline=deadline)

    def _told(self, outcome: Outcome, *, at: float, deadline: Deadline) -> Outcome:
        """Write the Event for what happened, on the pod and on its owner, since the pod vanishes with its Events."""
        if self._events is None or outcome.result in (Result.GONE, Result.CHANGED):
            return outcome
        move = outcome.move
        done = outcome.result is Result.EVICTED
        blocked = outcome.result in (Result.BLOCKED, Result.THROTTLED)
        reason = REASON_MOVED if done else REASON_REFUSED if blocked else REASON_FAILED
        gain = f"predicted destination {move.destination}, predicted gain {move.gain:.4f}"
        note = f"{move.reason}; {gain}" if done else f"{move.reason}; not moved: {outcome.reason}"
        now = datetime.datetime.fromtimestamp(at, tz=datetime.UTC)
        pod = ObjectRef(api_version="v1", kind="Pod", name=move.pod.name, namespace=move.pod.namespace, uid=move.pod.uid)
        node = ObjectRef(api_version="v1", kind="Node", name=move.source)
        subjects = [pod]
        owner = move.workload
        if owner is not None and owner.kind in _API_VERSIONS:
            subjects.append(ObjectRef(api_version=_API_VERSIONS[owner.kind], kind=owner.kind, name=owner.name, namespace=owner.namespace))
            note = f"pod {move.pod.name} on {move.source}: {note}"
        for subject in subjects:
            event = Event(
                regarding=subject,
                related=node,
                reason=reason,
                action="Evict",
                note=note,
                type=EventType.NORMAL if done else EventType.WARNING,
            )
            self._events.write(event, now=now, deadline=deadline)
        return outcome


def _outcome(move: Move, answer: Eviction) -> Outcome:
    result = _RESULTS[answer.outcome]
    stop = answer.outcome in (EvictionOutcome.THROTTLED, EvictionOutcome.FORBIDDEN)
    return Outcome(move, result, answer.message, stop=stop)
