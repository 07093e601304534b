"""Annotate mode: a mark with an end on each candidate, renewed while the plan names it, gone when it does not; and no eviction, ever."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rebalancer.act.annotating import KEEP_S, AnnotateActuator
from rebalancer.act.names import CANDIDATE
from rebalancer.act.outcome import Result
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.policy.model import Pool, Spec
from rebalancer.policy.quantities import LabelSelector
from rebalancer.state.tables import WorkloadRef
from rebalancer.units import format_time
from tests.act.plans import AT, move, plan, report
from tests.support.scripted_api import Reply, ScriptedApi, page, status

PATH = "/api/v1/namespaces/shop/pods/web-1"


@pytest.fixture
def actuator(client: KubeClient) -> AnnotateActuator:
    return AnnotateActuator(client)


def marked(name: str, *, mark: str | None = "{}") -> dict[str, Any]:
    annotations = {"other": "kept"} | ({CANDIDATE: mark} if mark is not None else {})
    return {"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "annotations": annotations}}


def patches(api: ScriptedApi) -> dict[str, Any]:
    return {asked.path.rsplit("/", 1)[1]: asked.json["metadata"] for asked in api.requests("PATCH")}


def test_a_candidate_is_marked_with_why_where_and_until_when(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """One annotation, for this very pod, and no eviction."""
    api.on("PATCH", PATH, Reply(body={}))
    outcome = actuator.carry_out(move(), at=AT, deadline=deadline)
    (asked,) = api.asked
    metadata: Any = asked.json["metadata"]
    assert metadata["uid"] == "uid-web-1"
    assert json.loads(metadata["annotations"][CANDIDATE]) == {
        "reason": "cpu load 90 % > high 70 % in 10 of 10 windows",
        "gain": 0.05,
        "source": "hot",
        "destination": "cool",
        "expires": format_time(AT + KEEP_S),
    }
    assert (outcome.result, outcome.reason) == (Result.ANNOTATED, f"marked as a candidate until {format_time(AT + KEEP_S)}")


def test_a_later_plan_that_names_the_pod_again_renews_the_mark(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """The mark stays on in between, and its end moves."""
    api.on("GET", "/api/v1/pods", page([marked("web-1")]))
    api.on("PATCH", PATH, Reply(body={}))
    assert actuator.prepare(plan(move()), at=AT + 120, deadline=deadline).notes == ()
    assert patches(api) == {}
    actuator.carry_out(move(), at=AT + 120, deadline=deadline)
    mark = json.loads(patches(api)["web-1"]["annotations"][CANDIDATE])
    assert mark["expires"] == format_time(AT + 120 + KEEP_S)


def test_marks_that_the_plan_does_not_name_are_taken_off(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """Also those of an earlier process; other annotations are left alone."""
    api.on("GET", "/api/v1/pods", page([marked("web-1"), marked("old"), marked("plain", mark=None)]))
    api.on("PATCH", "/api/v1/namespaces/shop/pods/old", Reply(body={}))
    notes = actuator.prepare(plan(move()), at=AT, deadline=deadline).notes
    assert patches(api) == {"old": {"annotations": {CANDIDATE: None}, "uid": "uid-old"}}
    assert notes == ("candidate mark rebalancer.dev/candidate taken off 1 pod",)


def test_a_mark_on_a_pod_of_the_same_name_but_another_uid_is_stale(
    api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline
) -> None:
    """The plan means the pod, not the name."""
    api.on("GET", "/api/v1/pods", page([marked("web-1")]))
    api.on("PATCH", PATH, Reply(body={}))
    actuator.prepare(plan(move(uid="another")), at=AT, deadline=deadline)
    assert list(patches(api)) == ["web-1"]


def test_clean_up_takes_every_mark_off(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """One that vanishes meanwhile needs nothing."""
    api.on("GET", "/api/v1/pods", page([marked("a"), marked("b"), marked("gone")]))
    for name in ("a", "b"):
        api.on("PATCH", f"/api/v1/namespaces/shop/pods/{name}", Reply(body={}))
    assert actuator.clean_up(deadline=deadline) == ("candidate mark rebalancer.dev/candidate taken off 2 pods",)


def mark_of(source: str) -> str:
    return json.dumps({"reason": "r", "gain": 0.1, "source": source, "destination": "x", "expires": "2025-06-15T15:06:40Z"})


def test_marks_of_another_controllers_nodes_stay(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """By the source that they name; what is no mark of ours by its form is nobody's."""
    api.on("GET", "/api/v1/pods", page([marked("mine", mark=mark_of("a")), marked("theirs", mark=mark_of("b")), marked("odd", mark="{")]))
    for name in ("mine", "odd"):
        api.on("PATCH", f"/api/v1/namespaces/shop/pods/{name}", Reply(body={}))
    nodes = (report("a", 0.2), report("b", 0.9, pool=None, target=None))
    notes = actuator.prepare(plan(nodes=nodes), at=AT, deadline=deadline).notes
    assert notes == ("candidate mark rebalancer.dev/candidate taken off 2 pods",)
    assert set(patches(api)) == {"mine", "odd"}


def test_clean_up_leaves_marks_of_other_controllers_alone(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """The nodes that the policy's pools claim are asked for; a mark of a node that is gone goes."""
    api.on("GET", "/api/v1/pods", page([marked(name, mark=mark_of(name)) for name in ("mine", "theirs", "gone")]))
    names = {"mine": "gpu", "theirs": "cpu"}
    api.on("GET", "/api/v1/nodes", page([{"metadata": {"name": name, "labels": {"pool": pool}}} for name, pool in names.items()]))
    for name in ("mine", "gone"):
        api.on("PATCH", f"/api/v1/namespaces/shop/pods/{name}", Reply(body={}))
    pools = (Pool(name="gpu", node_selector=LabelSelector(match_labels={"pool": "gpu"}), signals=Spec().pools[0].signals),)
    assert actuator.clean_up(deadline=deadline, pools=pools) == ("candidate mark rebalancer.dev/candidate taken off 2 pods",)
    assert set(patches(api)) == {"mine", "gone"}


def test_a_mark_that_cannot_be_taken_off_is_told_and_the_others_are(
    api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline
) -> None:
    """A webhook that refuses one pod."""
    api.on("GET", "/api/v1/pods", page([marked("a"), marked("b")]))
    api.on("PATCH", "/api/v1/namespaces/shop/pods/a", status(500, "a webhook broke", reason="InternalError"))
    api.on("PATCH", "/api/v1/namespaces/shop/pods/b", Reply(body={}))
    notes = actuator.clean_up(deadline=deadline)
    assert notes[0].startswith("mark on pod shop/a could not be removed: ")
    assert notes[1] == "candidate mark rebalancer.dev/candidate taken off 1 pod"


def test_a_missing_right_is_told_once(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """Not once for each of a thousand pods."""
    api.on("GET", "/api/v1/pods", page([marked("a"), marked("b")]))
    api.on("PATCH", "/api/v1/namespaces/shop/pods/a", status(403, "pods is forbidden", reason="Forbidden"))
    notes = actuator.clean_up(deadline=deadline)
    assert len(notes) == 1
    assert len(api.requests("PATCH")) == 1


def test_pods_that_cannot_be_listed_are_an_error(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """Without the list nobody knows which marks are stale."""
    api.on("GET", "/api/v1/pods", status(403, "pods is forbidden", reason="Forbidden"))
    with pytest.raises(KubernetesError):
        actuator.prepare(plan(), at=AT, deadline=deadline)


@pytest.mark.parametrize(
    ("answer", "result", "stop"),
    [
        (status(404, "not found", reason="NotFound"), Result.GONE, False),
        (status(409, "precondition failed", reason="Conflict"), Result.GONE, False),
        (status(422, "uid is immutable", reason="Invalid"), Result.GONE, False),
        (status(403, "pods is forbidden", reason="Forbidden"), Result.FORBIDDEN, True),
        (status(429, "slow down", reason="TooManyRequests"), Result.THROTTLED, True),
        (status(500, "etcd is unwell", reason="InternalError"), Result.FAILED, False),
    ],
)
def test_every_refusal_has_its_result(
    answer: Reply, result: Result, stop: bool, api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline
) -> None:
    """A pod that is another one by now is gone; what the next pod would meet too stops the plan."""
    api.on("PATCH", PATH, answer)
    outcome = actuator.carry_out(move(), at=AT, deadline=deadline)
    assert (outcome.result, outcome.stop) == (result, stop)
    assert outcome.reason


def test_a_rest_is_told_to_nobody(api: ScriptedApi, actuator: AnnotateActuator, deadline: Deadline) -> None:
    """In this mode nothing was moved."""
    actuator.tell_rest(WorkloadRef("Deployment", "shop", "web"), "it rests", at=AT, deadline=deadline)
    assert api.asked == []
