"""Soft steering leaves nothing behind and is worth what it costs, or evictions stop."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from rebalancer.policy.model import Breaker, Mode, RebalancePolicy, Spec
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.memory import Landing, LandingResult, Memory, OpenMove
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from rebalancer.units import format_time
from tests.support.builder import NOW, cluster, node, pod
from tests.support.embedded import Stage, stage

HOT_KEY = "rebalancer.dev/hot"
ORDERS = Orders(policy=RebalancePolicy(spec=Spec(breaker=Breaker(min_moves=5))), mode=Mode.EVICT, mode_source="a test")


@pytest.fixture
def running(tmp_path: Path):
    with stage(tmp_path) as one:
        yield one


def tainted(running: Stage) -> set[str]:
    nodes = running.cluster.world.objects("nodes")
    return {n["metadata"]["name"] for n in nodes if any(taint["key"] == HOT_KEY for taint in n["spec"].get("taints") or ())}


def taint(running: Stage, name: str) -> None:
    """As a process that crashed in the middle of a plan left it."""
    world = running.cluster.world
    found = world.get("nodes", name)
    spec = {**found["spec"], "taints": [{"key": HOT_KEY, "value": "true", "effect": "PreferNoSchedule"}]}
    world.replace("nodes", {**found, "spec": spec})


def a_cool_node(running: Stage) -> str:
    loads = running.cluster.world.node_loads("cpu")
    return min(loads, key=lambda name: loads[name])


def node_patches(running: Stage) -> list[str]:
    return [line for line in running.written if line.startswith("PATCH /api/v1/nodes/")]


def test_d5_the_taint_comes_before_the_first_eviction_and_a_second_cycle_does_not_write_it_again(running: Stage) -> None:
    """Applied first, on the nodes that the plan names; while they are warm it stays as it is."""
    ran = running.run("run", "--once", "--mode", "evict", "-o", "json").ended(0)
    assert ran.document["moves"]
    kinds = [
        "taint" if line.startswith("PATCH /api/v1/nodes/") else "evict"
        for line in running.written
        if "/nodes/" in line or "eviction" in line
    ]
    assert kinds == sorted(kinds, reverse=True)
    assert kinds.count("taint") == len(tainted(running)) == len(ran.document["softTaints"]) > 0
    written, warm = len(node_patches(running)), tainted(running)
    running.run("run", "--once", "--mode", "evict").ended(0)
    assert tainted(running) <= warm
    assert len(node_patches(running)) - written == len(warm - tainted(running)), "what stays is not written again"


def test_d5_the_next_start_takes_off_what_a_crash_left(running: Stage) -> None:
    """A taint on a cool node, whoever put it there: the first cycle of the next process sees it and removes it."""
    cool = a_cool_node(running)
    taint(running, cool)
    running.run("run", "--once", "--mode", "evict").ended(0)
    assert cool not in tainted(running)


def test_d5_cleanup_takes_every_one_off(running: Stage) -> None:
    """Warm or cool, with one command; a second one finds nothing."""
    running.run("run", "--once", "--mode", "evict").ended(0)
    taint(running, a_cool_node(running))
    assert tainted(running)
    running.run("cleanup").ended(0)
    assert tainted(running) == set()
    patched = len(node_patches(running))
    running.run("cleanup").ended(0)
    assert len(node_patches(running)) == patched


def astray(number: int, *, realised: float) -> Landing:
    """A move that was settled a minute ago on another node than the planned one."""
    eviction = PastEviction(
        at=NOW - 400,
        pod_uid=f"old-{number}",
        namespace="default",
        pod=f"old-{number}",
        workload=WorkloadRef("Deployment", "default", f"w{number}"),
        controller_uid="rs",
        tenant=None,
        source="gone",
        destination="cool",
    )
    move = OpenMove(eviction, (), 0.05, {"cpu": 0.9}, {"cpu": 0.7})
    return Landing(move=move, result=LandingResult.ELSEWHERE, at=NOW - 60, node="elsewhere", seconds=30, realised_share=realised)


def hot_state() -> ClusterState:
    pods = [pod("p", on="hot", cpu=0.5, uses={"cpu": 3.0, "memory": 0.0})]
    return cluster(nodes=[node("hot", load={"cpu": 0.9, "memory": 0.1}), node("cool", load={"cpu": 0.1, "memory": 0.1})], pods=pods)


def test_d6_steering_that_does_not_steer_stops_the_evictions() -> None:
    """Five replacements landed elsewhere and brought nothing of what was predicted: the next pod stays, and the plan says why."""
    memory = Memory(landings=tuple(astray(number, realised=0.05) for number in range(5)))
    plan = consider(hot_state(), memory, ORDERS).decision.plan
    assert plan.moves == ()
    assert [(refused.pod.name, refused.gate) for refused in plan.refused] == [("p", "breaker")]
    assert plan.refused[0].reason == (
        "the breaker is open: the last 5 verified moves realised 5 % of the gain they were predicted, less than 20 % "
        "(policy breaker.minRealisedGain)"
    )


@pytest.mark.parametrize("memory", [Memory(), Memory(landings=tuple(astray(n, realised=0.9) for n in range(5)))], ids=["none", "good"])
def test_d6_another_place_that_is_as_good_is_no_failure(memory: Memory) -> None:
    """What counts is the relief: replacements that landed elsewhere and relieved the node as predicted stop nobody."""
    assert [move.pod.name for move in consider(hot_state(), memory, ORDERS).decision.plan.moves] == ["p"]


def test_d6_old_failures_are_forgotten() -> None:
    """After ``breaker.hold`` the past is no evidence any more."""
    old = tuple(replace(astray(n, realised=0.0), at=NOW - ORDERS.policy.spec.breaker.hold - 1) for n in range(5))
    assert len(consider(hot_state(), Memory(landings=old), ORDERS).decision.plan.moves) == 1


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/St_Johns"])
def test_d12_times_are_written_in_utc_in_every_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed moment gives the same bytes wherever the process runs; ``Z`` never means local time."""
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", zone)
            time.tzset()
            assert format_time(1_750_000_000.0) == "2025-06-15T15:06:40Z"
    finally:
        time.tzset()
