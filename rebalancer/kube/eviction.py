"""Asking the eviction API to move one pod away, and reading its answer exactly.

This is the only way in which a pod is ever removed: never a DELETE, so that every disruption budget and every admission webhook is asked.
The UID of the pod that was decided on always goes along, and the pod is read again right before: a wrong UID is refused by the server only
after the budget has been charged, and would block it for two minutes.

Source of the rules: `pkg/registry/core/pod/storage/eviction.go` of Kubernetes 1.36.
"""

from __future__ import annotations

import enum
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError, KubernetesForbidden, KubernetesNotFound, KubernetesUnreachable
from rebalancer.kube.failures import NotSent
from rebalancer.kube.operations import pod_path
from rebalancer.kube.retries import Backoff
from rebalancer.kube.status import BUDGET_CAUSE, Status, read_status, retry_after_s
from rebalancer.kube.transport import Answer

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

SETTLE_S = 5.0
BUDGET_BACKOFF = Backoff(first_s=2.0, factor=2.0, ceiling_s=30.0)

_STARTED = "Eviction triggered evacuation"
_SEVERAL = "more than one PodDisruptionBudget"
_BUDGET_NAME = re.compile(r"The disruption budget (\S+) ")


class EvictionOutcome(enum.Enum):
    """What came of asking. A closed set, fit for a label."""

    EVICTED = "evicted"
    ALREADY_GONE = "already-gone"
    REPLACED = "replaced"
    BLOCKED_BY_BUDGET = "blocked-by-budget"
    IN_PROGRESS = "in-progress"
    THROTTLED = "throttled"
    SEVERAL_BUDGETS = "several-budgets"
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Eviction:
    """``message``: one sentence, in the server's words where it gave any. ``budget``: the PodDisruptionBudget that refused, if it is named.

    ``attempts``: how often the eviction was sent; 0 if reading the pod made it needless. ``retry_after_s``: as the server asked.
    """

    outcome: EvictionOutcome
    message: str
    status: int | None = None
    retry_after_s: float | None = None
    budget: str = ""
    attempts: int = 0
    dry_run: bool = False

    @property
    def counts(self) -> bool:
        """True if the pod is leaving or may be: such an eviction counts to every limit, since UNKNOWN is not "no"."""
        return not self.dry_run and self.outcome in (EvictionOutcome.EVICTED, EvictionOutcome.IN_PROGRESS, EvictionOutcome.UNKNOWN)


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod that bears a name at this moment. ``node`` is empty while it is not bound."""

    uid: str
    node: str
    phase: str
    terminating: bool
    resource_version: str

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


class _Metadata(msgspec.Struct):
    uid: str
    resourceVersion: str = ""  # noqa: N815 - the name on the wire
    deletionTimestamp: str | None = None  # noqa: N815


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815


class _PodStatus(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


def read_pod_identity(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> PodIdentity | None:
    """Which pod has this name now; None if none has. Raises KubernetesError."""
    try:
        pod = client.get(pod_path(namespace=namespace, name=name), deadline=deadline).into(_Pod)
    except KubernetesNotFound:
        return None
    return PodIdentity(
        uid=pod.metadata.uid,
        node=pod.spec.nodeName,
        phase=pod.status.phase,
        terminating=pod.metadata.deletionTimestamp is not None,
        resource_version=pod.metadata.resourceVersion,
    )


def evict(
    client: KubeClient,
    *,
    namespace: str,
    name: str,
    uid: str,
    deadline: Deadline,
    dry_run: bool = False,
    attempts: int = 3,
    backoff: Backoff = BUDGET_BACKOFF,
    chance: Callable[[], float] = random.random,
) -> Eviction:
    """Evict the pod ``uid``, and only that one.

    A disruption budget that refuses is asked again up to ``attempts`` times in all, after the Retry-After of the server or, since it mostly
    names none, after ``backoff``; never past the deadline. Everything else is answered at once. ``dry_run`` is a true trial on the server:
    budgets and admission are checked, nothing changes. Raises nothing but Interrupted, and that only while no request is open.
    """
    request = _Request(client=client, namespace=namespace, name=name, uid=uid, dry_run=dry_run)
    sent = 0
    while True:
        needless = request.look(deadline)
        if needless is not None:
            return replace(needless, attempts=sent, dry_run=dry_run)
        result = replace(request.send(deadline), attempts=sent + 1, dry_run=dry_run)
        sent += 1
        if result.outcome is not EvictionOutcome.BLOCKED_BY_BUDGET or sent >= attempts:
            return result
        wait = result.retry_after_s if result.retry_after_s is not None else backoff.delay(sent, chance=chance())
        if wait >= deadline.remaining() or not deadline.wait(wait):
            return result


@dataclass(frozen=True, slots=True)
class _Request:
    client: KubeClient
    namespace: str
    name: str
    uid: str
    dry_run: bool

    def look(self, deadline: Deadline) -> Eviction | None:
        """Read the pod; the result if there is nothing to evict or nothing can be known."""
        try:
            pod = read_pod_identity(self.client, namespace=self.namespace, name=self.name, deadline=deadline)
        except KubernetesForbidden as error:
            return Eviction(EvictionOutcome.FORBIDDEN, str(error), status=error.status)
        except KubernetesError as error:
            return Eviction(EvictionOutcome.FAILED, str(error), status=error.status)
        return self._without_need(pod)

    def send(self, deadline: Deadline) -> Eviction:
        path = f"{pod_path(namespace=self.namespace, name=self.name)}/eviction"
        options: dict[str, object] = {"preconditions": {"uid": self.uid}}
        if self.dry_run:
            options["dryRun"] = ["All"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "deleteOptions": options,
        }
        try:
            answer = self.client.send("POST", path, body=body, deadline=deadline, write=True)
        except NotSent as error:
            return Eviction(EvictionOutcome.FAILED, str(error))
        except KubernetesUnreachable as error:
            return self._after_silence(str(error), deadline)
        except KubernetesForbidden as error:
            return Eviction(EvictionOutcome.FORBIDDEN, str(error), status=error.status)
        return self._read(answer, path=path, deadline=deadline)

    def _read(self, answer: Answer, *, path: str, deadline: Deadline) -> Eviction:
        if 200 <= answer.status < 300:
            return replace(self._confirmed(answer, deadline), status=answer.status)
        status = read_status(answer.body)
        if _STARTED in status.message or _STARTED in _cause_message(status):
            return Eviction(EvictionOutcome.IN_PROGRESS, status.message, status=answer.status)
        if answer.status == 429:
            return _too_many(status, retry_after=retry_after_s(answer.headers))
        if answer.status == 404:
            return Eviction(EvictionOutcome.ALREADY_GONE, f"{self._pod} is gone", status=404)
        if answer.status == 500 and _SEVERAL in status.message:
            return Eviction(EvictionOutcome.SEVERAL_BUDGETS, status.message, status=500)
        error = self.client.refusal(answer, method="POST", path=path)
        if isinstance(error, KubernetesForbidden):
            return Eviction(EvictionOutcome.FORBIDDEN, str(error), status=answer.status)
        if answer.status in (502, 503, 504):
            return replace(self._after_silence(str(error), deadline), status=answer.status)
        if answer.status == 409:
            return self._after_conflict(str(error), deadline)
        if answer.status >= 500:
            return replace(self._after_failure(str(error), deadline), status=answer.status)
        return Eviction(EvictionOutcome.FAILED, str(error), status=answer.status)

    def _confirmed(self, answer: Answer, deadline: Deadline) -> Eviction:
        """Success, if it comes from an API server: what stands in between may answer with success to anything."""
        try:
            answer.into(dict)
        except KubernetesUnreachable as error:
            return self._after_silence(str(error), deadline)
        return Eviction(EvictionOutcome.EVICTED, f"{self._pod} is evicted")

    def _after_failure(self, said: str, deadline: Deadline) -> Eviction:
        """500 is also said when the store was too slow to tell what became of a write."""
        seen = self._after_silence(said, deadline)
        return seen if seen.outcome is EvictionOutcome.EVICTED else Eviction(EvictionOutcome.FAILED, said)

    def _after_silence(self, said: str, deadline: Deadline) -> Eviction:
        """The request went out and no answer came: only the pod can tell. It is given a few seconds past the deadline for that."""
        if self.dry_run:
            return Eviction(EvictionOutcome.FAILED, said)
        try:
            pod = self._look_again(deadline)
        except KubernetesError as error:
            return Eviction(EvictionOutcome.UNKNOWN, f"{said}; whether {self._pod} is evicted could not be read ({error.message})")
        if pod is None or pod.uid != self.uid or pod.terminating:
            return Eviction(EvictionOutcome.EVICTED, f"{self._pod} is leaving, though the answer to its eviction was lost")
        return Eviction(EvictionOutcome.UNKNOWN, f"{said}; {self._pod} is still there, and may yet be evicted")

    def _after_conflict(self, said: str, deadline: Deadline) -> Eviction:
        """409 is a failed precondition or a conflict that outlasted the server's own 20 tries; reading the pod tells which."""
        try:
            needless = self._without_need(self._look_again(deadline))
        except KubernetesError:
            needless = None
        return replace(needless or Eviction(EvictionOutcome.FAILED, said), status=409)

    def _look_again(self, deadline: Deadline) -> PodIdentity | None:
        settle = Deadline.after(SETTLE_S, clock=deadline.clock)
        return read_pod_identity(self.client, namespace=self.namespace, name=self.name, deadline=settle)

    def _without_need(self, pod: PodIdentity | None) -> Eviction | None:
        if pod is None:
            return Eviction(EvictionOutcome.ALREADY_GONE, f"{self._pod} is gone")
        if pod.uid != self.uid:
            return Eviction(EvictionOutcome.REPLACED, f"{self._pod} is another pod by now, of the same name")
        if pod.terminating:
            return Eviction(EvictionOutcome.ALREADY_GONE, f"{self._pod} is terminating already")
        if pod.ended:
            return Eviction(EvictionOutcome.ALREADY_GONE, f"{self._pod} has ended ({pod.phase}) and uses nothing")
        return None

    @property
    def _pod(self) -> str:
        return f"pod {self.namespace}/{self.name}"


def _too_many(status: Status, *, retry_after: float | None) -> Eviction:
    cause = status.cause(BUDGET_CAUSE)
    if cause is None:
        said = status.message or "the API server limits the rate of requests"
        return Eviction(EvictionOutcome.THROTTLED, said, status=429, retry_after_s=retry_after)
    named = _BUDGET_NAME.match(cause.message)
    return Eviction(
        EvictionOutcome.BLOCKED_BY_BUDGET,
        cause.message or status.message,
        status=429,
        retry_after_s=retry_after,
        budget=named.group(1) if named else "",
    )


def _cause_message(status: Status) -> str:
    causes = (status.details.causes if status.details else None) or []
    return " ".join(cause.message for cause in causes)
