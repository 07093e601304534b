"""The worlds that scenarios make: as hot as asked, awkward in all the known ways, and the same for the same seed."""

from __future__ import annotations

import pytest

from rebalancer.simulate.pods import controller_of, effective_request
from rebalancer.simulate.scenario import Scenario, build_world
from rebalancer.simulate.world import World
from rebalancer.units import parse_time

SMALL = Scenario(nodes=16, pods=260, hot_nodes=3)


@pytest.fixture(scope="module")
def world() -> World:
    return build_world(SMALL)


def _bytes(world: World) -> list[bytes]:
    return [entry.encoded() for plural in ("nodes", "pods", "replicasets", "poddisruptionbudgets") for entry in world.entries(plural)]


def test_equal_seeds_give_equal_worlds() -> None:
    """Objects and loads, to the byte; another seed gives another one."""
    one, two, other = build_world(SMALL), build_world(SMALL), build_world(Scenario(nodes=16, pods=260, hot_nodes=3, seed=8))
    assert _bytes(one) == _bytes(two)
    assert one.node_loads("cpu") == two.node_loads("cpu")
    assert _bytes(one) != _bytes(other)


def test_equal_worlds_stay_equal_as_time_passes() -> None:
    """The same calls lead to the same future."""
    worlds = [build_world(SMALL) for _ in range(2)]
    for one in worlds:
        name = one.hot_nodes("cpu", 0.7)[0]
        victim = next(
            p for p in one.objects("pods") if p["spec"]["nodeName"] == name and (controller_of(p) or {}).get("kind") == "ReplicaSet"
        )
        one.remove("pods", victim["metadata"]["name"], victim["metadata"]["namespace"])
        one.advance(300)
    assert _bytes(worlds[0]) == _bytes(worlds[1])


def test_as_many_nodes_are_hot_as_asked_and_the_rest_are_not(world: World) -> None:
    """Hot within the asked range, the others well below."""
    loads = sorted(world.node_loads("cpu").values(), reverse=True)
    assert len(world.hot_nodes("cpu", 0.7)) == 3
    assert 0.7 < loads[2] <= loads[0] < 0.97
    assert loads[3] < 0.6


def test_hot_nodes_are_not_the_packed_ones(world: World) -> None:
    """Low packing, high load: requests say nothing about it."""
    packed: dict[str, float] = {}
    for pod in world.objects("pods"):
        packed[pod["spec"]["nodeName"]] = packed.get(pod["spec"]["nodeName"], 0.0) + effective_request(pod).get("cpu", 0.0)
    mean = sum(packed.values()) / len(packed)
    assert all(packed[name] <= mean for name in world.hot_nodes("cpu", 0.7))


def test_everything_is_settled_and_old_enough_to_be_moved(world: World) -> None:
    """All pods run, started more than ten minutes ago, and all statuses are up to date."""
    pods = list(world.objects("pods"))
    assert abs(len(pods) - 260) < 15
    assert {p["status"]["phase"] for p in pods} == {"Running"}
    assert max(parse_time(p["status"]["startTime"]) for p in pods) < world.now - 600
    for plural in ("deployments", "statefulsets"):
        assert all(o["status"]["readyReplicas"] == o["spec"]["replicas"] for o in world.objects(plural))
    assert all(b["status"]["observedGeneration"] == b["metadata"]["generation"] for b in world.objects("poddisruptionbudgets"))


def test_the_awkward_cases_are_all_there(world: World) -> None:
    """Opt-outs, full budgets, double budgets, single replicas, every kind of owner, a bare pod, local storage and claims."""
    pods = list(world.objects("pods"))
    owners = {(controller_of(p) or {"kind": "none"})["kind"] for p in pods}
    assert owners == {"ReplicaSet", "StatefulSet", "DaemonSet", "Job", "none"}
    annotations = {key for p in pods for key in p["metadata"].get("annotations") or {}}
    assert {"rebalancer.dev/evict", "cluster-autoscaler.kubernetes.io/safe-to-evict"} <= annotations
    allowed = [b["status"]["disruptionsAllowed"] for b in world.objects("poddisruptionbudgets")]
    assert 0 in allowed
    assert max(allowed) > 0
    volumes = {key for p in pods for volume in p["spec"].get("volumes") or () for key in volume if key != "name"}
    assert {"emptyDir", "hostPath", "persistentVolumeClaim"} <= volumes
    assert any(o["spec"]["replicas"] == 1 for o in world.objects("deployments"))


def test_a_plain_world_has_none_of_that() -> None:
    """awkward and budgets switched off."""
    plain = build_world(Scenario(nodes=8, pods=120, hot_nodes=1, awkward=False, budgets=False))
    assert {b["metadata"]["namespace"] for b in plain.objects("poddisruptionbudgets")} <= {"kube-system"}
    assert plain.count("statefulsets") == plain.count("jobs") == 0


def test_a_large_world_is_written_down_by_turns() -> None:
    """Without the scheduler: the same kinds, all running, hot where asked."""
    large = build_world(Scenario(nodes=40, pods=1200, hot_nodes=4, scheduled=False))
    assert abs(large.count("pods") - 1200) < 20
    assert {p["status"]["phase"] for p in large.objects("pods")} == {"Running"}
    assert len(large.hot_nodes("cpu", 0.7)) == 4
    assert all(o["status"]["readyReplicas"] == o["spec"]["replicas"] for o in large.objects("deployments"))
