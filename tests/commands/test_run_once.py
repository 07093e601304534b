"""`run --once`: one cycle in each mode, what it writes, and that a later process remembers it."""

from __future__ import annotations

import msgspec

from rebalancer.units import parse_time
from tests.support.embedded import Json, Stage

CANDIDATE = "rebalancer.dev/candidate"
OURS = ("rebalancer.dev/hot", "rebalancer.dev/warm")


def tainted(cluster: Stage) -> list[str]:
    nodes = cluster.cluster.world.objects("nodes")
    return sorted(n["metadata"]["name"] for n in nodes if any(t["key"] in OURS for t in n["spec"].get("taints") or ()))


def marked(cluster: Stage) -> dict[str, Json]:
    """``namespace/pod`` -> the mark, of every pod that carries one."""
    found = {}
    for pod in cluster.cluster.world.objects("pods"):
        value = (pod["metadata"].get("annotations") or {}).get(CANDIDATE)
        if value is not None:
            found[f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = msgspec.json.decode(value)
    return found


def cool(cluster: Stage, nodes: list[str]) -> None:
    """Let the pods of these nodes use a third of the CPU that they use."""
    world = cluster.cluster.world
    assert world.load is not None
    there = [pod["metadata"] for pod in world.objects("pods") if pod["spec"].get("nodeName") in nodes]
    world.load.scale([(each["namespace"], each["name"]) for each in there], 1 / 3)


def mark(cluster: Stage, pod: Json) -> str:
    annotations = {**(pod["metadata"].get("annotations") or {}), CANDIDATE: '{"reason": "of old"}'}
    cluster.cluster.world.replace("pods", {**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def test_dry_run_writes_nothing_and_shows_the_plan(cluster: Stage) -> None:
    """The default mode; the log on stderr says which mode is in force and where it came from."""
    ran = cluster.run("run", "--once", "-o", "json", env={"REBALANCER_LOG__FORMAT": "json"}).ended(0)
    start = next(line for line in map(msgspec.json.decode, ran.err.splitlines()) if line["message"] == "start")
    assert (start["mode"], start["mode_from"]) == ("dry-run", "the default")
    assert ran.document["moves"]
    assert cluster.written == []


def test_annotate_marks_the_candidates_and_takes_off_marks_that_no_longer_hold(cluster: Stage) -> None:
    """A mark has a reason, a destination and an end; a mark of an earlier plan on another pod goes."""
    world = cluster.cluster.world
    old = mark(cluster, next(pod for pod in world.objects("pods") if pod["metadata"]["namespace"] == "kube-system"))
    plan = cluster.run("run", "--once", "--mode", "annotate", "-o", "json").ended(0).document
    marks = marked(cluster)
    assert plan["moves"]
    assert set(marks) == {f"{move['pod']['namespace']}/{move['pod']['name']}" for move in plan["moves"]}
    assert old not in marks
    for move in plan["moves"]:
        found = marks[f"{move['pod']['namespace']}/{move['pod']['name']}"]
        assert (found["destination"], found["reason"]) == (move["destination"], move["reason"])
        assert parse_time(found["expires"]) > world.now
    assert all(line.startswith("PATCH ") and "/pods/" in line for line in cluster.written)


def test_evict_puts_soft_taints_first_then_evicts_and_tells(cluster: Stage) -> None:
    """Memory, taints, evictions and Events, in this order; the taints leave when the nodes are cool."""
    plan = cluster.run("run", "--once", "--mode", "evict", "-o", "json").ended(0).document
    assert cluster.evictions == [f"{move['pod']['namespace']}/{move['pod']['name']}" for move in plan["moves"]]
    assert tainted(cluster) == sorted(plan["softTaints"])
    lines = cluster.written
    patches = [number for number, line in enumerate(lines) if line.startswith("PATCH /api/v1/nodes/")]
    evictions = [number for number, line in enumerate(lines) if line.endswith("/eviction")]
    assert max(patches) < min(evictions)
    assert lines[0] == "POST /api/v1/namespaces/default/configmaps"
    assert not [line for line in lines if line.startswith("DELETE")]


def test_each_eviction_is_told_in_events_with_its_reason(cluster: Stage) -> None:
    """On the pod and on its owner, by events.k8s.io/v1, with the numbers."""
    plan = cluster.run("run", "--once", "--mode", "evict", "-o", "json").ended(0).document
    events = list(cluster.cluster.world.objects("events"))
    for move in plan["moves"]:
        own = [event for event in events if event["regarding"].get("name") == move["pod"]["name"]]
        assert [event["reason"] for event in own] == ["Rebalanced"]
        assert move["reason"] in own[0]["note"]
        assert own[0]["reportingController"] == "rebalancer.dev/controller"
        assert own[0]["action"] == "Evict"
    assert {event["apiVersion"] for event in events} == {"events.k8s.io/v1"}


def test_another_process_keeps_the_cooldowns(cluster: Stage) -> None:
    """The memory is in the cluster: a new process plans nothing for what just moved, and says by which gates."""
    first = cluster.run("run", "--once", "--mode", "evict", "-o", "json").ended(0).document
    stored = cluster.cluster.world.get("configmaps", "rebalancer-state", "default")
    assert len(msgspec.json.decode(stored["data"]["memory.json"])["evictions"]) == len(first["moves"])
    cluster.cluster.advance(60.0)
    name = first["moves"][0]["workload"]
    explained = cluster.run("explain", "workload", f"{name['namespace']}/{name['name']}", "-o", "json").ended(0).document
    gates = {verdict.get("gate") for verdict in explained["verdicts"]}
    assert gates & {"cooldown-workload", "in-flight"}
    again = cluster.run("run", "--once", "--mode", "evict", "-o", "json").ended(0).document
    assert again["moves"] == []


def test_annotations_and_taints_are_gone_after_cleanup(cluster: Stage) -> None:
    """Whoever left them there; a second time there is nothing to do."""
    mark(cluster, next(iter(cluster.cluster.world.objects("pods"))))
    cluster.run("run", "--once", "--mode", "evict").ended(0)
    assert tainted(cluster)
    out = cluster.run("cleanup").ended(0).out
    assert "soft taint rebalancer.dev/hot taken off node-" in out
    assert "candidate mark rebalancer.dev/candidate taken off 1 pod" in out
    assert (tainted(cluster), marked(cluster)) == ([], {})
    assert cluster.run("cleanup").ended(0).out == "nothing of ours was there\n"


def test_the_next_cycle_takes_the_taints_off_when_the_nodes_are_cool(cluster: Stage) -> None:
    """Also in a new process, which did not put them there. The nodes are made cool, since waves might keep one warm at this hour."""
    cluster.run("run", "--once", "--mode", "evict").ended(0)
    assert tainted(cluster)
    cool(cluster, tainted(cluster))
    cluster.cluster.advance(900.0)
    cluster.run("run", "--once", "--mode", "evict").ended(0)
    assert tainted(cluster) == []
