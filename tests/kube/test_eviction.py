"""Eviction: one request for the pod that was meant, and every answer of the API read as what it means."""

from __future__ import annotations

import pytest

from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted
from rebalancer.kube.client import KubeClient
from rebalancer.kube.eviction import Eviction, EvictionOutcome, PodIdentity, evict, read_pod_identity
from rebalancer.kube.retries import Backoff
from tests.kube.conftest import Connect
from tests.support.scripted_api import Reply, ScriptedApi, status

POD = "/api/v1/namespaces/shop/pods/web-1"
EVICTION = f"{POD}/eviction"
DONE = Reply(status=201, body={"kind": "Status", "status": "Success", "code": 201})
QUICK = Backoff(first_s=0.01, factor=1.0, ceiling_s=0.01)


def pod(*, uid: str = "uid-1", phase: str = "Running", node: str | None = "node-1", deleted: bool = False) -> Reply:
    metadata = {"name": "web-1", "uid": uid, "resourceVersion": "7"} | ({"deletionTimestamp": "2026-11-05T12:00:00Z"} if deleted else {})
    return Reply(body={"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": {"phase": phase}})


def budget(message: str = "The disruption budget web needs 3 healthy pods and has 3 currently", **rest: object) -> Reply:
    return status(
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
        reason="TooManyRequests",
        causes=(("DisruptionBudget", message),),
        **rest,
    )


def run(client: KubeClient, *, deadline: Deadline | None = None, attempts: int = 3, dry_run: bool = False) -> Eviction:
    return evict(
        client,
        namespace="shop",
        name="web-1",
        uid="uid-1",
        deadline=deadline or Deadline.after(20.0),
        attempts=attempts,
        dry_run=dry_run,
        backoff=QUICK,
    )


def test_an_eviction_names_the_pod_by_uid_and_nothing_else(api: ScriptedApi, client: KubeClient) -> None:
    """The body as the API wants it: no grace period, the UID as precondition."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, DONE)
    result = run(client)
    assert (result.outcome, result.status, result.attempts, result.counts) == (EvictionOutcome.EVICTED, 201, 1, True)
    assert api.requests("POST")[0].json == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-1", "namespace": "shop"},
        "deleteOptions": {"preconditions": {"uid": "uid-1"}},
    }


def test_a_trial_asks_the_server_for_a_dry_run(api: ScriptedApi, client: KubeClient) -> None:
    """``dryRun: [All]`` beside the precondition; the result does not count as an eviction."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, DONE)
    result = run(client, dry_run=True)
    assert api.requests("POST")[0].json["deleteOptions"] == {"preconditions": {"uid": "uid-1"}, "dryRun": ["All"]}
    assert result.outcome is EvictionOutcome.EVICTED
    assert not result.counts


def test_p1_two_refusals_of_the_budget_then_success(api: ScriptedApi, client: KubeClient) -> None:
    """Bounded retry with back-off; the pod is read again before every try."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, budget(), budget(), DONE)
    result = run(client, attempts=3)
    assert (result.outcome, result.attempts) == (EvictionOutcome.EVICTED, 3)
    assert [asked.method for asked in api.asked] == ["GET", "POST"] * 3


def test_p1_a_budget_that_never_gives_way_is_named(api: ScriptedApi, client: KubeClient) -> None:
    """After the last try the outcome carries the budget's name and the server's numbers."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, budget())
    result = run(client, attempts=2)
    assert result == Eviction(
        EvictionOutcome.BLOCKED_BY_BUDGET,
        "The disruption budget web needs 3 healthy pods and has 3 currently",
        status=429,
        budget="web",
        attempts=2,
    )
    assert not result.counts
    assert len(api.requests("POST")) == 2


def test_a_budget_is_not_waited_for_past_the_deadline(api: ScriptedApi, client: KubeClient) -> None:
    """V16: a stale budget asks for 10 s, which the deadline does not have."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, budget("The disruption budget web is still being processed by the server.", headers={"Retry-After": "10"}))
    result = run(client, deadline=Deadline.after(5.0))
    assert (result.outcome, result.retry_after_s, result.attempts) == (EvictionOutcome.BLOCKED_BY_BUDGET, 10.0, 1)


def test_a_retry_after_of_the_budget_is_honoured(api: ScriptedApi, client: KubeClient) -> None:
    """The server's number is used instead of our back-off."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, budget(headers={"Retry-After": "0"}), DONE)
    long = Backoff(first_s=3600.0)
    result = evict(client, namespace="shop", name="web-1", uid="uid-1", deadline=Deadline.after(20.0), backoff=long)
    assert (result.outcome, result.attempts) == (EvictionOutcome.EVICTED, 2)


def test_v17_three_evictions_under_a_budget_of_two(api: ScriptedApi, client: KubeClient) -> None:
    """201, 201, and 429 without Retry-After: the third is refused, and no time is named."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, DONE, DONE, budget())
    results = [run(client, attempts=1) for _ in range(3)]
    assert [result.outcome for result in results] == [EvictionOutcome.EVICTED] * 2 + [EvictionOutcome.BLOCKED_BY_BUDGET]
    assert results[2].retry_after_s is None


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_v13_v15_an_uncharged_eviction_is_an_eviction(api: ScriptedApi, client: KubeClient, phase: str) -> None:
    """The server decides about unready and pending pods; we only ask."""
    api.on("GET", POD, pod(phase=phase))
    api.on("POST", EVICTION, DONE)
    assert run(client).outcome is EvictionOutcome.EVICTED


@pytest.mark.parametrize("code", [429, 403])
def test_p3_an_evacuation_that_was_started_is_in_progress(api: ScriptedApi, client: KubeClient, code: int) -> None:
    """A refusal with that text means that the move is on its way: not repeated, and counted."""
    said = 'admission webhook "virt" denied the request: Eviction triggered evacuation of VMI "shop/vm"'
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, status(code, said))
    result = run(client)
    assert (result.outcome, result.message, result.attempts, result.counts) == (EvictionOutcome.IN_PROGRESS, said, 1, True)


def test_p3_the_text_may_stand_in_the_cause(api: ScriptedApi, client: KubeClient) -> None:
    """A budget that says it is working on it."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, budget("Eviction triggered evacuation of shop/vm"))
    assert run(client).outcome is EvictionOutcome.IN_PROGRESS


def test_429_without_a_cause_is_throttling(api: ScriptedApi, client: KubeClient) -> None:
    """The rate is limited: sent once, with the time that the server wants."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, status(429, "too many requests, please try again later", headers={"Retry-After": "1"}))
    result = run(client)
    assert (result.outcome, result.retry_after_s, result.attempts) == (EvictionOutcome.THROTTLED, 1.0, 1)


def test_two_budgets_on_a_pod_are_reported_and_never_tried_again(api: ScriptedApi, client: KubeClient) -> None:
    """500 with that text is a misconfiguration."""
    said = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, status(500, said))
    result = run(client)
    assert (result.outcome, result.message, result.attempts) == (EvictionOutcome.SEVERAL_BUDGETS, said, 1)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (status(404, 'pods "web-1" not found'), EvictionOutcome.ALREADY_GONE),
        (status(403, "no right"), EvictionOutcome.FORBIDDEN),
        (status(401, "Unauthorized"), EvictionOutcome.FORBIDDEN),
        (status(400, "name in URL does not match"), EvictionOutcome.FAILED),
        (status(422, "forbidden option"), EvictionOutcome.FAILED),
        (status(500, "failed calling webhook"), EvictionOutcome.FAILED),
        (Reply(status=429, body=b"", content_type="text/plain"), EvictionOutcome.THROTTLED),
    ],
)
def test_other_answers(api: ScriptedApi, client: KubeClient, reply: Reply, outcome: EvictionOutcome) -> None:
    """Each has one outcome, is sent once, and says something."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, reply)
    result = run(client)
    assert result.outcome is outcome
    assert result.message
    assert not result.counts
    assert len(api.requests("POST")) == 1


@pytest.mark.parametrize(
    ("now", "outcome", "words"),
    [
        (pod(uid="uid-2"), EvictionOutcome.REPLACED, "another pod by now"),
        (pod(deleted=True), EvictionOutcome.ALREADY_GONE, "terminating already"),
        (pod(phase="Succeeded"), EvictionOutcome.ALREADY_GONE, "has ended"),
        (pod(phase="Failed"), EvictionOutcome.ALREADY_GONE, "has ended"),
        (status(404, "not found"), EvictionOutcome.ALREADY_GONE, "is gone"),
        (status(403, "may not get pods"), EvictionOutcome.FORBIDDEN, "may not get pods"),
        (status(500, "etcd"), EvictionOutcome.FAILED, "etcd"),
    ],
)
def test_the_pod_is_read_right_before_and_a_needless_eviction_is_not_sent(
    api: ScriptedApi, client: KubeClient, now: Reply, outcome: EvictionOutcome, words: str
) -> None:
    """A wrong UID would charge the budget before it is refused, so it never reaches the server."""
    api.on("GET", POD, now)
    result = run(client)
    assert result.outcome is outcome
    assert words in result.message
    assert result.attempts == 0
    assert api.requests("POST") == []


@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        (pod(uid="uid-2"), EvictionOutcome.REPLACED),
        (status(404, "gone"), EvictionOutcome.ALREADY_GONE),
        (pod(deleted=True), EvictionOutcome.ALREADY_GONE),
        (pod(), EvictionOutcome.FAILED),
    ],
)
def test_a_conflict_is_explained_by_the_pod(api: ScriptedApi, client: KubeClient, then: Reply, outcome: EvictionOutcome) -> None:
    """409 is a failed precondition or a lost race inside the server: the pod tells which."""
    api.on("GET", POD, pod(), then)
    api.on("POST", EVICTION, status(409, "Precondition failed: UID in precondition: uid-1, UID in object meta: uid-2"))
    result = run(client)
    assert (result.outcome, result.status, result.attempts) == (outcome, 409, 1)


LOST = {
    "silence": Reply(silent=True),
    "dropped": Reply(drop=True),
    "load balancer": Reply(status=504, body=b"<html>", content_type="text/html"),
    "a success that is none": Reply(status=200, body=b"OK", content_type="text/plain"),
}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        (pod(deleted=True), EvictionOutcome.EVICTED),
        (status(404, "gone"), EvictionOutcome.EVICTED),
        (pod(uid="uid-2"), EvictionOutcome.EVICTED),
        (pod(), EvictionOutcome.UNKNOWN),
        (status(403, "no"), EvictionOutcome.UNKNOWN),
    ],
)
def test_a_lost_answer_is_looked_for_in_the_pod(
    api: ScriptedApi, connect: Connect, lost: Reply, then: Reply, outcome: EvictionOutcome
) -> None:
    """The request is never sent a second time; what cannot be known counts as an eviction."""
    api.on("GET", POD, pod(), then)
    api.on("POST", EVICTION, lost)
    result = run(connect(timeout_s=0.3))
    assert (result.outcome, result.counts) == (outcome, True)
    assert len(api.requests("POST")) == 1


@pytest.mark.parametrize(
    ("then", "outcome"), [(pod(deleted=True), EvictionOutcome.EVICTED), (pod(), EvictionOutcome.FAILED)], ids=["leaving", "there"]
)
def test_after_a_failure_inside_the_server_the_pod_tells_what_became_of_it(
    api: ScriptedApi, client: KubeClient, then: Reply, outcome: EvictionOutcome
) -> None:
    """A store that timed out may have done it all the same."""
    api.on("GET", POD, pod(), then)
    api.on("POST", EVICTION, status(500, "etcdserver: request timed out"))
    result = run(client)
    assert (result.outcome, result.status) == (outcome, 500)


def test_a_lost_answer_is_looked_for_even_after_the_deadline(api: ScriptedApi, client: KubeClient) -> None:
    """The deadline ends the wait for the answer, not the question what came of it."""
    api.on("GET", POD, pod(), pod(deleted=True))
    api.on("POST", EVICTION, Reply(silent=True))
    assert run(client, deadline=Deadline.after(0.6)).outcome is EvictionOutcome.EVICTED


def test_a_trial_without_answer_has_failed(api: ScriptedApi, connect: Connect) -> None:
    """A dry run changes nothing, so nothing is open."""
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, Reply(drop=True))
    result = run(connect(), dry_run=True)
    assert (result.outcome, result.counts) == (EvictionOutcome.FAILED, False)


def test_a_stop_while_waiting_for_a_budget_sends_nothing_more(api: ScriptedApi, client: KubeClient) -> None:
    """SIGTERM during the back-off: interrupted, with every answer known."""
    deadline = Deadline.after(20.0)
    api.on("GET", POD, pod())
    api.on("POST", EVICTION, budget())

    def stop_soon() -> float:
        deadline.stop.set()
        return 0.0

    with pytest.raises(Interrupted):
        evict(client, namespace="shop", name="web-1", uid="uid-1", deadline=deadline, chance=stop_soon)
    assert len(api.requests("POST")) == 1


def test_p2_no_answer_ever_leads_to_a_delete(api: ScriptedApi, connect: Connect) -> None:
    """Whatever the server says, the only write is the eviction."""
    api.on("GET", POD, pod())
    replies = [DONE, budget(), *(status(code, "no") for code in (400, 401, 403, 404, 409, 422, 429, 500, 503)), Reply(drop=True)]
    api.on("POST", EVICTION, *replies)
    client = connect()
    for _ in replies:
        run(client, attempts=1)
    assert {(asked.method, asked.path) for asked in api.asked} == {("GET", POD), ("POST", EVICTION)}


def test_the_identity_of_a_pod_is_what_the_server_says(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """UID, node, phase and whether it is terminating; an unbound pod has no node."""
    api.on("GET", POD, pod(), pod(node=None, phase="Pending", deleted=True), status(404, "gone"))
    read = [read_pod_identity(client, namespace="shop", name="web-1", deadline=deadline) for _ in range(3)]
    assert read == [
        PodIdentity(uid="uid-1", node="node-1", phase="Running", terminating=False, resource_version="7"),
        PodIdentity(uid="uid-1", node="", phase="Pending", terminating=True, resource_version="7"),
        None,
    ]
