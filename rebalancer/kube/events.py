"""Events for those who cannot see the controller's log: on the pod, its workload or the node, in words, and never as a flood.

An Event is a courtesy. It is written at most once for the same object and reason in a quarter of an hour, at a limited rate, and a cycle
never fails over it: every end of an attempt is counted, none is raised.
"""

from __future__ import annotations

import contextlib
import datetime
import enum
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, RebalancerError
from rebalancer.kube.limiter import TokenBucket

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

REPORTING_CONTROLLER = "rebalancer.dev/controller"
REPEAT_AFTER = datetime.timedelta(minutes=15)
LONGEST_S = 3.0
"""For one attempt: a cycle has better things to do than to wait for it."""
NOTE_BYTES = 1024
NAME_BYTES = 128
CLUSTER_SCOPED_NAMESPACE = "default"


class EventType(enum.Enum):
    NORMAL = "Normal"
    WARNING = "Warning"


class EventResult(enum.Enum):
    """What became of an Event; a closed set, fit for a label."""

    WRITTEN = "written"
    REPEATED = "repeated"
    LIMITED = "limited"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The object that an Event is about. ``namespace`` is empty for cluster-scoped ones. ``uid`` may be unknown: empty."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    def on_wire(self) -> dict[str, str]:
        fields = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "namespace": self.namespace, "uid": self.uid}
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class Event:
    """``reason``: why, in one CamelCase word (`Rebalanced`). ``action``: what was done or refused (`Evict`). ``note``: a sentence."""

    regarding: ObjectRef
    reason: str
    action: str
    note: str
    related: ObjectRef | None = None
    type: EventType = EventType.NORMAL


class EventWriter:
    """Writes Events of `events.k8s.io/v1`. ``instance`` is this process, as its pod is called. One thread at a time.

    ``counts``: how many attempts ended how, since the start. ``told`` hears of each attempt, with the error if it has failed.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        instance: str,
        bucket: TokenBucket | None = None,
        told: Callable[[EventResult, str], None] = lambda result, error: None,
    ) -> None:
        self._client = client
        self._instance = _cut(instance, NAME_BYTES)
        self._bucket = bucket or TokenBucket(1.0, 25)
        self._told = told
        self._written: dict[tuple[ObjectRef, str], datetime.datetime] = {}
        self.counts: Counter[EventResult] = Counter(dict.fromkeys(EventResult, 0))

    def write(self, event: Event, *, now: datetime.datetime, deadline: Deadline) -> EventResult:
        """Write ``event`` unless it is a repetition or too much. ``now``: aware wall time. Never raises a RebalancerError."""
        try:
            result, error = self._write(event, now=now, deadline=deadline), ""
        except RebalancerError as failure:
            result, error = EventResult.FAILED, str(failure)
        self.counts[result] += 1
        self._told(result, error)
        return result

    def _write(self, event: Event, *, now: datetime.datetime, deadline: Deadline) -> EventResult:
        self._written = {key: at for key, at in self._written.items() if now - at < REPEAT_AFTER}
        key = (event.regarding, event.reason)
        if key in self._written:
            return EventResult.REPEATED
        if not self._bucket.try_take():
            return EventResult.LIMITED
        namespace = event.regarding.namespace or CLUSTER_SCOPED_NAMESPACE
        body = self._body(event, namespace=namespace, now=now)
        deadline = deadline.at_most(LONGEST_S)
        with contextlib.suppress(KubernetesConflict):  # an Event of this very name is there: an earlier answer was lost
            self._client.request("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body=body, deadline=deadline, write=True)
        self._written[key] = now
        return EventResult.WRITTEN

    def _body(self, event: Event, *, namespace: str, now: datetime.datetime) -> dict[str, object]:
        at = now.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        about = event.regarding
        seed = "\0".join((about.kind, namespace, about.name, about.uid, event.reason, self._instance, at))
        mark = hashlib.sha256(seed.encode()).hexdigest()[:16]
        body: dict[str, object] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name[:230].rstrip('.-')}.{mark}", "namespace": namespace},
            "eventTime": at,
            "type": event.type.value,
            "reason": _cut(event.reason, NAME_BYTES),
            "action": _cut(event.action, NAME_BYTES),
            "note": _cut(event.note, NOTE_BYTES),
            "reportingController": REPORTING_CONTROLLER,
            "reportingInstance": self._instance,
            "regarding": about.on_wire(),
        }
        if event.related is not None:
            body["related"] = event.related.on_wire()
        return body


def _cut(text: str, most: int) -> str:
    """``text`` in at most ``most`` bytes of UTF-8: the server counts bytes."""
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    return encoded[: most - 3].decode(errors="ignore") + "…"
