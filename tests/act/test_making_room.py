"""The room that is made for a pod that waits: kept by a nomination, which is renewed until the pod is placed; one pod after the other."""

from __future__ import annotations

import msgspec
import pytest

from rebalancer.act.actuator import carry_out_plan
from rebalancer.act.evicting import EvictActuator
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.plan.model import Move, Plan, PodRef
from tests.act.plans import AT, move, plan
from tests.act.test_evicting import DONE, budget_refusal, pod, pod_path
from tests.support.scripted_api import Reply, ScriptedApi, status


def waiting(name: str, *, node: str = "", nominated: str = "", uid: str = "") -> Reply:
    body = {
        "metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": "7"},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Pending", "nominatedNodeName": nominated},
    }
    return Reply(body=body)


def room(name: str, *, of: str, source: str = "hot") -> Move:
    claim = PodRef(namespace="shop", name=of, uid=f"uid-{of}")
    return msgspec.structs.replace(move(name, source=source), makes_room_for=claim)


def serve(api: ScriptedApi, *names: str, source: str = "hot", answer: Reply = DONE) -> None:
    for name in names:
        api.on("GET", pod_path(name), pod(name, node=source))
        api.on("POST", f"{pod_path(name)}/eviction", answer)


def serve_waiting(api: ScriptedApi, name: str, *found: Reply) -> None:
    api.on("PATCH", f"{pod_path(name)}/status", Reply(body={}))
    api.on("GET", pod_path(name), *found)


def done(client: KubeClient, deadline: Deadline, *moves: Move, hold_s: float = 5.0) -> list[Outcome]:
    actuator = EvictActuator(client, events=None, attempts=1, hold_s=hold_s)
    made: Plan = plan(*moves)
    actuator.prepare(made, at=AT, deadline=deadline)
    return carry_out_plan(made, actuator, at=AT, deadline=deadline)


def nominated(api: ScriptedApi) -> list[tuple[str, str]]:
    """Pod and node of each nomination, in the order in which they were made."""
    asked = [each for each in api.requests("PATCH") if each.path.endswith("/status")]
    return [(each.path.split("/")[-2], each.json["status"]["nominatedNodeName"]) for each in asked]


def order(api: ScriptedApi) -> list[str]:
    """Evictions that were meant and nominations, in one order."""
    steps = []
    for each in api.requests():
        if each.path.endswith("/eviction") and not (each.json.get("deleteOptions") or {}).get("dryRun"):
            steps.append(f"evict {each.path.split('/')[-2]}")
        elif each.method == "PATCH" and each.path.endswith("/status"):
            steps.append(f"nominate {each.path.split('/')[-2]}")
    return steps


def test_a_nomination_that_the_scheduler_took_away_is_renewed_until_the_pod_is_placed(
    api: ScriptedApi, client: KubeClient, deadline: Deadline
) -> None:
    serve(api, "a")
    serve_waiting(api, "w", waiting("w", nominated="hot"), waiting("w"), waiting("w", nominated="hot"), waiting("w", node="hot"))
    assert [each.result for each in done(client, deadline, room("a", of="w"))] == [Result.EVICTED]
    assert nominated(api) == [("w", "hot"), ("w", "hot")]


@pytest.mark.parametrize("found", [waiting("w", uid="another"), status(404)])
def test_nothing_is_kept_for_a_pod_that_is_gone(api: ScriptedApi, client: KubeClient, deadline: Deadline, found: Reply) -> None:
    """Or that another has taken the name of."""
    serve(api, "a")
    serve_waiting(api, "w", found)
    assert [each.result for each in done(client, deadline, room("a", of="w"))] == [Result.EVICTED]
    assert nominated(api) == [("w", "hot")]


def test_a_refusal_of_a_moment_costs_nobody_the_room(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The pod could not be read once, and then its nomination could not be renewed: both are asked again."""
    serve(api, "a")
    api.on("PATCH", f"{pod_path('w')}/status", Reply(body={}), status(409), Reply(body={}))
    api.on("GET", pod_path("w"), status(500), waiting("w"), waiting("w"), waiting("w", node="hot"))
    assert [each.result for each in done(client, deadline, room("a", of="w"))] == [Result.EVICTED]
    assert nominated(api) == [("w", "hot")] * 3


def test_room_is_made_for_one_after_the_other(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """All that leave for one go first; the next is nominated when the first is placed."""
    serve(api, "a", "b", "c")
    serve_waiting(api, "w", waiting("w", nominated="hot"), waiting("w", nominated="hot"), waiting("w", node="hot"))
    serve_waiting(api, "x", waiting("x", node="hot"))
    outcomes = done(client, deadline, room("a", of="w"), room("b", of="w"), room("c", of="x"))
    assert [each.result for each in outcomes] == [Result.EVICTED] * 3
    assert order(api) == ["nominate w", "evict a", "evict b", "nominate x", "evict c"]


def test_a_node_whose_room_is_not_taken_yet_is_left_alone_and_another_is_not(
    api: ScriptedApi, client: KubeClient, deadline: Deadline
) -> None:
    """Two that are nominated for one node would keep each other out."""
    serve(api, "a", "b")
    serve(api, "c", source="warm")
    serve_waiting(api, "w", waiting("w", nominated="hot"))
    serve_waiting(api, "x", waiting("x", node="hot"))
    serve_waiting(api, "y", waiting("y", node="warm"))
    moves = room("a", of="w"), room("b", of="x"), room("c", of="y", source="warm")
    outcomes = done(client, deadline, *moves, hold_s=0.3)
    assert [each.result for each in outcomes] == [Result.EVICTED, Result.CHANGED, Result.EVICTED]
    assert outcomes[1].reason == "not tried: another pod has not taken its room on hot yet"
    assert order(api) == ["nominate w", "evict a", "nominate y", "evict c"]


def test_nobody_is_looked_after_where_clocks_do_not_run(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """With no time to hold, every room is made at once and left to the scheduler."""
    serve(api, "a", "b")
    serve_waiting(api, "w", waiting("w", nominated="hot"))
    serve_waiting(api, "x", waiting("x", nominated="hot"))
    outcomes = done(client, deadline, room("a", of="w"), room("b", of="x"), hold_s=0.0)
    assert [each.result for each in outcomes] == [Result.EVICTED] * 2
    assert nominated(api) == [("w", "hot"), ("x", "hot")]


def test_nobody_leaves_when_one_of_them_would_stay(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    serve(api, "a")
    serve(api, "b", answer=budget_refusal())
    serve_waiting(api, "w", waiting("w"))
    outcomes = done(client, deadline, room("a", of="w"), room("b", of="w"))
    assert [each.result for each in outcomes] == [Result.BLOCKED] * 2
    assert order(api) == []


def test_nobody_leaves_when_the_pod_cannot_be_nominated(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Another would take the room."""
    serve(api, "a")
    api.on("PATCH", f"{pod_path('w')}/status", status(403))
    outcomes = done(client, deadline, room("a", of="w"))
    assert [each.result for each in outcomes] == [Result.FORBIDDEN]
    assert "w cannot be nominated for hot" in outcomes[0].reason
    assert order(api) == ["nominate w"]
