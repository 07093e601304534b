"""A gang is evicted with all its pods or left alone: looked at and tried on the server before the first of them goes."""

from __future__ import annotations

import pytest

from rebalancer.act.actuator import carry_out_plan
from rebalancer.act.evicting import EvictActuator
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.plan.model import Plan
from tests.act.plans import AT, move, plan
from tests.act.test_evicting import DONE, budget_refusal, pod, pod_path
from tests.support.scripted_api import Reply, ScriptedApi, status

NAMES = ("w-0", "w-1", "w-2")
BLOCKED = budget_refusal()


@pytest.fixture
def actuator(client: KubeClient) -> EvictActuator:
    return EvictActuator(client, events=None, attempts=1)


def gang_plan() -> Plan:
    return plan(*(move(name, gang="job-set shop/llm") for name in NAMES), move("web-1"))


def serve(api: ScriptedApi, name: str, *answers: Reply, found: Reply | None = None) -> None:
    api.on("GET", pod_path(name), found or pod(name))
    api.on("POST", f"{pod_path(name)}/eviction", *(answers or (DONE,)))


def evictions(api: ScriptedApi, *, tried: bool = False) -> list[str]:
    """Names of pods that were evicted, or tried."""
    asked = [each for each in api.requests("POST") if each.path.endswith("/eviction")]
    return [each.path.split("/")[-2] for each in asked if bool((each.json.get("deleteOptions") or {}).get("dryRun")) == tried]


def carried_out(actuator: EvictActuator, deadline: Deadline) -> list[Outcome]:
    made = gang_plan()
    actuator.prepare(made, at=AT, deadline=deadline)
    return carry_out_plan(made, actuator, at=AT, deadline=deadline)


def test_all_members_are_tried_before_the_first_goes(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """Each once, without effect; a pod that is in no gang is not tried."""
    for name in (*NAMES, "web-1"):
        serve(api, name)
    outcomes = carried_out(actuator, deadline)
    assert [each.result for each in outcomes] == [Result.EVICTED] * 4
    assert evictions(api, tried=True) == list(NAMES)
    assert evictions(api) == [*NAMES, "web-1"]


@pytest.mark.parametrize(
    ("found", "answer", "result", "words"),
    [
        (pod("w-2", node="elsewhere"), DONE, Result.CHANGED, "it is on elsewhere, not on hot any more"),
        (status(404, "not found", reason="NotFound"), DONE, Result.BLOCKED, "shop/w-2 would stay"),
        (pod("w-2", uid="another"), DONE, Result.BLOCKED, "shop/w-2 would stay"),
        (None, BLOCKED, Result.BLOCKED, "shop/w-2 would stay"),
        (None, status(403, "forbidden", reason="Forbidden"), Result.BLOCKED, "shop/w-2 would stay"),
    ],
)
def test_n8_when_the_last_member_does_not_hold_none_is_evicted(
    found: Reply | None, answer: Reply, result: Result, words: str, api: ScriptedApi, actuator: EvictActuator, deadline: Deadline
) -> None:
    """And the moves after the gang have their turn."""
    for name in ("w-0", "w-1", "web-1"):
        serve(api, name)
    serve(api, "w-2", answer, found=found)
    outcomes = carried_out(actuator, deadline)
    assert [each.result for each in outcomes] == [result] * 3 + [Result.EVICTED]
    assert all(words in each.reason for each in outcomes[:3])
    assert evictions(api) == ["web-1"]


def test_a_gang_of_which_the_first_pod_stays_after_all_is_left_alone(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """Between the trial and the eviction somebody took the budget."""
    serve(api, "w-0", DONE, BLOCKED)
    for name in ("w-1", "w-2", "web-1"):
        serve(api, name)
    outcomes = carried_out(actuator, deadline)
    assert [each.result for each in outcomes] == [Result.BLOCKED, Result.CHANGED, Result.CHANGED, Result.EVICTED]
    assert outcomes[1].reason == "not tried: without shop/w-0, which stays, gang job-set shop/llm would not move whole"
    assert evictions(api) == ["w-0", "web-1"]


def test_a_gang_that_is_broken_already_goes_on_to_its_new_places(api: ScriptedApi, actuator: EvictActuator, deadline: Deadline) -> None:
    """The work of the first pod is lost; the others are of no use where they are."""
    serve(api, "w-1", DONE, BLOCKED)
    for name in ("w-0", "w-2", "web-1"):
        serve(api, name)
    outcomes = carried_out(actuator, deadline)
    assert [each.result for each in outcomes] == [Result.EVICTED, Result.BLOCKED, Result.EVICTED, Result.EVICTED]
