"""Evict mode: taints first, each pod looked at right before, every answer turned into one result and one sentence, and Events."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.act.actuator import carry_out_plan
from rebalancer.act.evicting import EvictActuator, outcome_of
from rebalancer.act.names import REASON_FAILED, REASON_MOVED, REASON_REFUSED, SOFT_TAINTS
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import EventWriter
from rebalancer.kube.eviction import Eviction, EvictionOutcome
from rebalancer.plan.model import OwnerRef
from rebalancer.state.tables import WorkloadRef
from tests.act.plans import AT, move, plan, report
from tests.support.scripted_api import Reply, ScriptedApi, status

DONE = Reply(status=201, body={"kind": "Status", "status": "Success", "code": 201})
EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"


def pod_path(name: str = "web-1") -> str:
    return f"/api/v1/namespaces/shop/pods/{name}"


def pod(name: str = "web-1", *, uid: str = "", node: str = "hot", phase: str = "Running", deleted: bool = False) -> Reply:
    metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": "7"}
    metadata |= {"deletionTimestamp": "2026-11-05T12:00:00Z"} if deleted else {}
    return Reply(body={"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": {"phase": phase}})


def serve(api: ScriptedApi, *answers: Reply, name: str = "web-1") -> None:
    api.on("GET", pod_path(name), pod(name))
    api.on("POST", f"{pod_path(name)}/eviction", *(answers or (DONE,)))
    api.on("POST", EVENTS, Reply(status=201, body={}))


def evictions(api: ScriptedApi) -> list[str]:
    return [asked.path for asked in api.requests("POST") if asked.path.endswith("/eviction")]


def events(api: ScriptedApi) -> list[dict[str, Any]]:
    return [asked.json for asked in api.requests("POST", EVENTS)]


@pytest.fixture
def actuator(client: KubeClient) -> EvictActuator:
    return EvictActuator(client, events=EventWriter(client, instance="rebalancer-0"), attempts=1)


def carried_out(actuator: EvictActuator, deadline: Deadline) -> Outcome:
    return actuator.carry_out(move(), at=AT, deadline=deadline)


def test_an_eviction_goes_out_once_and_is_told(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """The plain case."""
    serve(api)
    outcome = carried_out(actuator, deadline)
    assert (outcome.result, outcome.reason, outcome.stop) == (Result.EVICTED, "pod shop/web-1 is evicted", False)
    assert evictions(api) == [f"{pod_path()}/eviction"]


def test_the_pod_and_its_owner_get_an_event_with_reason_prediction_and_node(
    api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """The pod's Events vanish with it, so its owner is told as well; both name the source."""
    serve(api)
    carried_out(actuator, deadline)
    on_pod, on_owner = events(api)
    assert on_pod["regarding"] == {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": "shop", "uid": "uid-web-1"}
    assert on_owner["regarding"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"}
    for event in (on_pod, on_owner):
        assert (event["reason"], event["type"], event["action"]) == (REASON_MOVED, "Normal", "Evict")
        assert event["related"] == {"apiVersion": "v1", "kind": "Node", "name": "hot"}
        assert event["reportingController"] == "rebalancer.dev/controller"
        assert event["note"] == (
            "pod web-1 on hot: cpu load 90 % > high 70 % in 10 of 10 windows; pod shop/web-1 is evicted; "
            "predicted destination cool, predicted gain 0.0500"
        )


@pytest.mark.parametrize("owner", [None, OwnerRef(kind="PyTorchJob", namespace="shop", name="train")])
def test_an_owner_of_an_unknown_kind_gets_no_event(
    owner: OwnerRef | None, api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """Its API version would have to be guessed; the pod still gets its own."""
    serve(api)
    actuator.carry_out(move(owner=owner), at=AT, deadline=deadline)
    assert [event["regarding"]["kind"] for event in events(api)] == ["Pod"]


def test_a_pod_on_another_node_by_now_is_not_evicted(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """A StatefulSet's pod of the same name and a pod that was bound anew: the plan does not hold for it."""
    serve(api)
    api.on("GET", pod_path("moved"), pod("moved", node="elsewhere"))
    outcome = actuator.carry_out(move("moved"), at=AT, deadline=deadline)
    assert (outcome.result, outcome.reason) == (Result.CHANGED, "it is on elsewhere, not on hot any more")
    assert evictions(api) == []
    assert events(api) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (status(404, "not found", reason="NotFound"), "is gone"),
        (pod(uid="another"), "another pod by now"),
        (pod(deleted=True), "terminating already"),
        (pod(phase="Succeeded"), "has ended (Succeeded)"),
    ],
)
def test_a_pod_that_is_gone_or_leaving_is_not_evicted_and_nobody_is_bothered(
    found: Reply, words: str, api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """The cluster moved on by itself: no eviction, no Event, no stop."""
    api.on("GET", pod_path(), found)
    outcome = carried_out(actuator, deadline)
    assert (outcome.result, outcome.stop) == (Result.GONE, False)
    assert words in outcome.reason
    assert len(api.requests("POST")) == 0


RESULTS = {
    EvictionOutcome.EVICTED: (Result.EVICTED, False),
    EvictionOutcome.IN_PROGRESS: (Result.EVICTED, False),
    EvictionOutcome.UNKNOWN: (Result.UNKNOWN, True),
    EvictionOutcome.ALREADY_GONE: (Result.GONE, False),
    EvictionOutcome.REPLACED: (Result.GONE, False),
    EvictionOutcome.BLOCKED_BY_BUDGET: (Result.BLOCKED, False),
    EvictionOutcome.SEVERAL_BUDGETS: (Result.BLOCKED, False),
    EvictionOutcome.THROTTLED: (Result.THROTTLED, True),
    EvictionOutcome.FORBIDDEN: (Result.FORBIDDEN, True),
    EvictionOutcome.FAILED: (Result.FAILED, False),
}


@pytest.mark.parametrize("answer", list(EvictionOutcome))
def test_every_answer_of_the_eviction_api_has_its_result(answer: EvictionOutcome) -> None:
    """None is left out; and what may have happened counts as if it had."""
    outcome = outcome_of(move(), Eviction(answer, "as the server said"))
    assert (outcome.result, outcome.stop) == RESULTS[answer]
    assert outcome.reason == "as the server said"
    assert outcome.result.counts == Eviction(answer, "").counts


def budget_refusal() -> Reply:
    words = "The disruption budget web needs 3 healthy pods and has 3 currently"
    return status(429, "Cannot evict pod", reason="TooManyRequests", causes=(("DisruptionBudget", words),))


@pytest.mark.parametrize(
    ("answer", "result", "reason", "words"),
    [
        (budget_refusal(), Result.BLOCKED, REASON_REFUSED, "The disruption budget web needs 3 healthy pods"),
        (status(500, "This pod has more than one PodDisruptionBudget", reason="x"), Result.BLOCKED, REASON_REFUSED, "more than one"),
        (status(429, "too many requests", reason="TooManyRequests"), Result.THROTTLED, REASON_REFUSED, "too many requests"),
        (status(403, "pods is forbidden", reason="Forbidden"), Result.FORBIDDEN, REASON_FAILED, "forbids to create pods/eviction"),
        (status(422, "a webhook says no", reason="Invalid"), Result.FAILED, REASON_FAILED, "a webhook says no"),
    ],
)
def test_a_refusal_is_a_warning_event_with_the_words_of_the_server(
    answer: Reply, result: Result, reason: str, words: str, api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """Whoever owns the pod sees why it was not moved, without the controller's log."""
    serve(api, answer)
    outcome = carried_out(actuator, deadline)
    assert outcome.result is result
    told = events(api)
    assert [(event["reason"], event["type"]) for event in told] == [(reason, "Warning")] * 2
    assert all("not moved: " in event["note"] for event in told)
    assert words in outcome.reason


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (status(403, "pods is forbidden", reason="Forbidden"), Result.FORBIDDEN),
        (status(429, "slow down", reason="TooManyRequests"), Result.THROTTLED),
    ],
)
def test_a_re_check_that_is_forbidden_or_throttled_stops_the_plan(
    answer: Reply, result: Result, api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """Reading the next pod would be refused as well: nothing is evicted blindly."""
    api.on("GET", pod_path(), answer)
    outcomes = carry_out_plan(plan(move(), move("web-2")), actuator, at=AT, deadline=deadline)
    assert [outcome.result for outcome in outcomes] == [result, Result.ABANDONED]
    assert api.requests("GET", pod_path("web-2")) == []
    assert evictions(api) == []


def test_a_re_check_that_fails_evicts_nothing_and_leaves_the_next_move_its_turn(
    api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """Unknown is not "still there"."""
    serve(api, name="web-2")
    api.on("GET", pod_path(), status(500, "etcd is unwell", reason="InternalError"))
    outcomes = carry_out_plan(plan(move(), move("web-2")), actuator, at=AT, deadline=deadline)
    assert [outcome.result for outcome in outcomes] == [Result.FAILED, Result.EVICTED]
    assert evictions(api) == [f"{pod_path('web-2')}/eviction"]


def test_an_eviction_without_an_answer_counts_and_says_what_is_not_known(
    api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """The connection broke and the pod is still there: it may yet be evicted."""
    serve(api, Reply(drop=True))
    outcome = carried_out(actuator, deadline)
    assert outcome.result is Result.UNKNOWN
    assert "may yet be evicted" in outcome.reason
    assert "may yet be evicted" in events(api)[0]["note"]


def test_a_stop_request_before_the_request_evicts_nothing(api: ScriptedApi, actuator: EvictActuator, stopped: Deadline) -> None:
    """Interrupted leaves the actuator only while nothing is under way."""
    serve(api)
    with pytest.raises(Interrupted):
        carried_out(actuator, stopped)
    assert api.asked == []


def test_events_can_be_left_out(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """policy events: false."""
    serve(api)
    assert carried_out(EvictActuator(client, events=None), deadline).result is Result.EVICTED
    assert events(api) == []


def test_an_event_that_cannot_be_written_does_not_fail_the_move(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """An Event is a courtesy."""
    api.on("GET", pod_path(), pod())
    api.on("POST", f"{pod_path()}/eviction", DONE)
    api.on("POST", EVENTS, status(403, "events is forbidden", reason="Forbidden"))
    assert carried_out(actuator, deadline).result is Result.EVICTED


def test_all_taints_are_in_place_before_the_first_eviction(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """Else the first replacements may land on a node that is about to be tainted."""
    nodes = ("hot", "warm")
    for name in nodes:
        metadata = {"name": name, "resourceVersion": "1"}
        api.on("GET", f"/api/v1/nodes/{name}", Reply(body={"metadata": metadata, "spec": {}}))
        api.on("PATCH", f"/api/v1/nodes/{name}", Reply(body={"metadata": metadata, "spec": {}}))
    serve(api)
    made = plan(move(), nodes=(report("hot", 0.9), report("warm", 0.6), report("cool", 0.2)), soft_taints=nodes)
    notes = actuator.prepare(made, at=AT, deadline=deadline).notes
    carry_out_plan(made, actuator, at=AT, deadline=deadline)
    written = [asked.path for asked in api.asked if asked.method in ("PATCH", "POST") and asked.path != EVENTS]
    assert written == ["/api/v1/nodes/hot", "/api/v1/nodes/warm", f"{pod_path()}/eviction"]
    assert notes == ("soft taint rebalancer.dev/hot put on hot, warm",)


def test_taints_that_may_not_be_put_are_told_with_the_nodes(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """Whoever carries out the plan has to know which nodes will not repel a replacement."""
    api.on("GET", "/api/v1/nodes/hot", status(403, "nodes is forbidden", reason="Forbidden"))
    serve(api)
    made = plan(move(), nodes=(report("hot", 0.9), report("cool", 0.2)), soft_taints=("hot",))
    prepared = actuator.prepare(made, at=AT, deadline=deadline)
    assert prepared.untainted == ("hot",)
    assert len(prepared.notes) == 1
    assert prepared.notes[0].startswith("soft taint of node hot could not be changed: ")


def test_clean_up_takes_our_taints_off(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """The same as `rebalancer cleanup` and a clean shutdown do."""
    taint = {"key": SOFT_TAINTS[0].key, "value": SOFT_TAINTS[0].value, "effect": "PreferNoSchedule"}
    item = {"metadata": {"name": "hot", "uid": "u", "resourceVersion": "1"}, "spec": {"taints": [taint]}, "status": {}}
    api.on("GET", "/api/v1/nodes", Reply(body={"metadata": {"resourceVersion": "1"}, "items": [item]}))
    api.on("GET", "/api/v1/nodes/hot", Reply(body=item))
    api.on("PATCH", "/api/v1/nodes/hot", Reply(body=item))
    assert actuator.clean_up(deadline=deadline) == ("soft taint rebalancer.dev/hot taken off hot",)


def test_t6_a_rest_is_one_event_on_the_workload(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """Told again within a quarter of an hour, it is still one."""
    api.on("POST", EVENTS, Reply(status=201, body={}))
    for _ in range(3):
        actuator.tell_rest(WorkloadRef("StatefulSet", "shop", "db"), "it came back and rests until noon", at=AT, deadline=deadline)
    (event,) = events(api)
    assert (event["reason"], event["type"], event["note"]) == (REASON_REFUSED, "Warning", "it came back and rests until noon")
    assert event["regarding"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "namespace": "shop"}
