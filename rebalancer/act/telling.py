"""Says in Events what happened to pods and workloads, for those who see the cluster and not the controller's log.

On the pod and on its owner, since the pod vanishes with its Events. An Event is a courtesy: it never fails a move, and `kube.events` keeps
it from becoming a flood.
"""

from __future__ import annotations

import datetime

from rebalancer.act.names import REASON_FAILED, REASON_MOVED, REASON_REFUSED
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.kube.events import Event, EventType, EventWriter, ObjectRef
from rebalancer.state.tables import WorkloadRef

_API_VERSIONS = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1"}
_SILENT = (Result.GONE, Result.CHANGED, Result.ABANDONED)
"""Nothing was done to the pod, and nobody has to do anything about it."""
_REASONS = {Result.EVICTED: REASON_MOVED, Result.BLOCKED: REASON_REFUSED, Result.THROTTLED: REASON_REFUSED}


class Teller:
    """``events``: None writes none."""

    def __init__(self, events: EventWriter | None) -> None:
        self._events = events

    def outcome(self, outcome: Outcome, *, at: float, deadline: Deadline) -> None:
        """What became of a move: an Event on the pod, and on its owner where its kind is one of Kubernetes' own."""
        if outcome.result in _SILENT:
            return
        move, done = outcome.move, outcome.result is Result.EVICTED
        promise = (
            f"it goes {move.whither}"
            if move.makes_room_for
            else f"predicted destination {move.destination}, predicted gain {move.gain:.4f}"
        )
        what = f"{outcome.reason}; {promise}"
        came = what if done else outcome.reason if outcome.result.counts else f"not moved: {outcome.reason}"
        note = f"pod {move.pod.name} on {move.source}: {move.reason}; {came}"
        pod = ObjectRef(api_version="v1", kind="Pod", name=move.pod.name, namespace=move.pod.namespace, uid=move.pod.uid)
        owner = move.workload
        subjects = [pod, None if owner is None else _owner(owner.kind, owner.namespace, owner.name)]
        related = ObjectRef(api_version="v1", kind="Node", name=move.source)
        for subject in subjects:
            self._write(subject, reason=_REASONS.get(outcome.result, REASON_FAILED), note=note, related=related, at=at, deadline=deadline)

    def rest(self, workload: WorkloadRef, why: str, *, at: float, deadline: Deadline) -> None:
        """A workload is not moved for a while: one Event on it."""
        subject = _owner(workload.kind, workload.namespace, workload.name)
        self._write(subject, reason=REASON_REFUSED, note=why, related=None, at=at, deadline=deadline)

    def _write(
        self, subject: ObjectRef | None, *, reason: str, note: str, related: ObjectRef | None, at: float, deadline: Deadline
    ) -> None:
        if self._events is None or subject is None:
            return
        kind = EventType.NORMAL if reason == REASON_MOVED else EventType.WARNING
        event = Event(regarding=subject, related=related, reason=reason, action="Evict", note=note, type=kind)
        self._events.write(event, now=datetime.datetime.fromtimestamp(at, tz=datetime.UTC), deadline=deadline)


def _owner(kind: str, namespace: str, name: str) -> ObjectRef | None:
    """None for kinds whose API version is not known here."""
    version = _API_VERSIONS.get(kind)
    return None if version is None else ObjectRef(api_version=version, kind=kind, name=name, namespace=namespace)
