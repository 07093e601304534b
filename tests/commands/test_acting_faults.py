"""What goes wrong between a plan and its moves: refused, forbidden, lost, gone. Status 6 or 4, a sentence, no try too many."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rebalancer.simulate.faults import Act, Fault
from tests.commands.test_run_once import marked, tainted
from tests.support.embedded import Json, Ran, Stage

EVICT = ("run", "--once", "--mode", "evict", "-o", "json")
EVICTION = "/eviction$"


def refusal(code: int, message: str, *, cause: str = "") -> bytes:
    """The body of a refusal, as the Eviction API words it."""
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": cause}]} if cause else {}
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code, "details": details}
    return msgspec.json.encode(status)


def refuse_evictions(cluster: Stage, code: int, body: bytes, *, count: int | None = None) -> None:
    cluster.cluster.faults.status(code, method="POST", path=EVICTION, body=body, count=count, retry_after=0 if code == 429 else None)


def remembered(cluster: Stage) -> int:
    """Evictions in the memory that the cluster keeps."""
    stored = cluster.cluster.world.get("configmaps", "rebalancer-state", "default")
    return len(msgspec.json.decode(stored["data"]["memory.json"])["evictions"])


def moves(ran: Ran) -> int:
    return len(ran.document["moves"])


def test_without_the_right_to_evict_nothing_further_is_tried(cluster: Stage) -> None:
    """The first refusal ends the plan: status 6, the rule to add, no pod left its node, and nothing counts to a cooldown."""
    cluster.cluster.api.rights.deny("create", "pods/eviction")
    ran = cluster.run(*EVICT).ended(6)
    assert ran.error.startswith("Error: 4 of 4 moves were not carried out; the first, search/search-")
    assert '{apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}' in ran.error
    assert len(cluster.evictions) == 1
    assert remembered(cluster) == 0


def test_apply_without_the_right_to_evict(cluster: Stage) -> None:
    """The same, told line by line."""
    path = cluster.folder / "plan.json"
    cluster.run("plan", "--out", path).ended(0)
    cluster.cluster.api.rights.deny("create", "pods/eviction")
    ran = cluster.run("apply", path, "--mode", "evict").ended(6)
    words = [line.split()[0] for line in ran.out.splitlines() if "->" in line]
    assert words == ["forbidden", "abandoned", "abandoned", "abandoned"]
    assert 'add the rule {apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}' in ran.out
    assert ran.error.startswith(f"Error: 4 of 4 moves of {path} were not carried out.")
    assert len(cluster.evictions) == 1


def test_p1_a_budget_that_refuses_at_the_last_moment(cluster: Stage) -> None:
    """The server's own sentence is told; the pod stays and is not counted; the other moves are made."""
    cause = "The disruption budget web needs 7 healthy pods and has 7 currently"
    refuse_evictions(cluster, 429, refusal(429, "Cannot evict pod as it would violate the pod's disruption budget.", cause=cause), count=3)
    ran = cluster.run(*EVICT).ended(6)
    assert ran.error.startswith("Error: 1 of 4 moves was not carried out; the first, ")
    assert cause in ran.error
    assert len(set(cluster.evictions)) == moves(ran)
    assert remembered(cluster) == moves(ran) - 1
    refused = [event for event in cluster.cluster.world.objects("events") if event["reason"] == "RebalanceRefused"]
    assert refused
    assert all(cause in event["note"] for event in refused)


def test_p1_a_budget_that_recovers_is_waited_for(cluster: Stage) -> None:
    """Two refusals, then room: bounded tries, then success."""
    refuse_evictions(cluster, 429, refusal(429, "Cannot evict pod.", cause="The disruption budget web is full"), count=2)
    ran = cluster.run(*EVICT).ended(0)
    assert len(cluster.evictions) == moves(ran) + 2
    assert remembered(cluster) == moves(ran)


def test_a_server_that_throttles_ends_the_plan(cluster: Stage) -> None:
    """429 without a budget is a wish for fewer requests: nothing more is asked for in this cycle."""
    refuse_evictions(cluster, 429, refusal(429, "too many requests, please try again later"))
    ran = cluster.run(*EVICT).ended(6)
    assert "4 of 4 moves were not carried out" in ran.error
    assert len(cluster.evictions) == 1
    assert remembered(cluster) == 0


def test_p3_an_evacuation_that_has_begun_is_no_refusal(cluster: Stage) -> None:
    """The move is in flight: status 0, not asked again, and it counts."""
    refuse_evictions(cluster, 429, refusal(429, "Eviction triggered evacuation"), count=1)
    ran = cluster.run(*EVICT).ended(0)
    assert len(cluster.evictions) == len(set(cluster.evictions)) == moves(ran)
    assert remembered(cluster) == moves(ran)


def test_an_answer_that_is_lost_is_looked_up_and_counts(cluster: Stage) -> None:
    """The connection broke after the eviction was done: the pod tells, and it is not evicted twice."""
    cluster.cluster.faults.add(Fault(Act.DROP_AFTER, method="POST", path=EVICTION, count=1))
    ran = cluster.run(*EVICT).ended(0)
    assert len(cluster.evictions) == len(set(cluster.evictions)) == moves(ran)
    assert remembered(cluster) == moves(ran)


def test_a_memory_that_cannot_be_kept_lets_nothing_move(cluster: Stage) -> None:
    """Without cooldowns that survive a restart nobody is evicted: status 4, with the right that is missing."""
    cluster.cluster.api.rights.deny("create", "configmaps")
    ran = cluster.run(*EVICT).ended(4)
    assert "ConfigMap default/rebalancer-state may not be written" in ran.error
    assert "rant get, create and update on configmaps in that namespace." in ran.error
    assert (cluster.evictions, tainted(cluster)) == ([], [])


def test_a_memory_that_is_damaged_is_not_forgotten_silently(cluster: Stage) -> None:
    """Status 3, and what deleting it would mean; nothing moves."""
    world = cluster.cluster.world
    data = {"memory.json": "{broken"}
    world.create("configmaps", {"metadata": {"name": "rebalancer-state", "namespace": "default"}, "data": data})
    ran = cluster.run(*EVICT).ended(3)
    assert "the remembered evictions in ConfigMap default/rebalancer-state cannot be read" in ran.error
    assert "if its cooldowns may be forgotten" in ran.error
    assert cluster.written == []


def test_annotating_without_the_right_to(cluster: Stage) -> None:
    """Status 6, and the rule to add; no pod is marked."""
    cluster.cluster.api.rights.deny("patch", "pods")
    ran = cluster.run("run", "--once", "--mode", "annotate", "-o", "json").ended(6)
    assert 'resources: ["pods"], verbs: ["patch"]' in ran.error
    assert marked(cluster) == {}


@pytest.mark.parametrize("command", [EVICT, ("apply",)])
def test_a_pod_that_is_gone_by_now_is_passed_over(cluster: Stage, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Somebody else deleted it between look and move: it is told, and the others are moved."""
    path = tmp_path / "plan.json"
    cluster.run("plan", "--out", path).ended(0)
    first = msgspec.json.decode(path.read_bytes())["moves"][-1]["pod"]
    gone = refusal(404, f'pods "{first["name"]}" not found')
    cluster.cluster.faults.status(404, method="GET", path=f"/pods/{first['name']}$", body=gone)
    ran = cluster.run(*(("apply", path, "--mode", "evict") if command == ("apply",) else command)).ended(6)
    assert f"{first['namespace']}/{first['name']}" in ran.out + ran.err
    assert "1 of 4 moves" in ran.error
    assert f"{first['namespace']}/{first['name']}" not in cluster.evictions
    assert len(cluster.evictions) == 3


def test_a_soft_taint_that_cannot_be_put_is_told(cluster: Stage) -> None:
    """The log says which node lacks its taint and which right is missing; only moves that hold without it are tried."""
    cluster.cluster.api.rights.deny("patch", "nodes")
    ran = cluster.run(*EVICT)
    assert "soft taint of node node-0004 could not be changed" in ran.err
    assert 'resources: ["nodes"], verbs: ["patch"]' in ran.err
    assert tainted(cluster) == []


def test_an_open_breaker_moves_nothing_and_says_why(cluster: Stage) -> None:
    """Half of the nodes are not Ready: the trouble is another one, and evictions would make it worse."""
    world = cluster.cluster.world
    for node in list(world.objects("nodes"))[:6]:
        conditions = [{**c, "status": "Unknown"} if c["type"] == "Ready" else c for c in node["status"]["conditions"]]
        world.replace("nodes", {**node, "status": {**node["status"], "conditions": conditions}})
    ran = cluster.run(*EVICT)
    assert "Warning: the breaker is open: 6 of 12 nodes" in ran.err
    assert moves(ran) == 0
    assert cluster.evictions == []
    assert "Warning: the breaker is open: 6 of 12 nodes" in cluster.run("plan").err
