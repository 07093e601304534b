"""Two controllers that share a cluster by pool, each with a Lease and a memory of its own: neither touches what is the other's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rebalancer.runtime.memory import Memory
from rebalancer.runtime.records import load_memory
from rebalancer.runtime.store import KEY
from rebalancer.simulate.world import updated
from tests.leadership.replicas import Replica, replica
from tests.support.embedded import SMALL, Stage, eventually, stage

HOT = "rebalancer.dev/hot"
CANDIDATE = "rebalancer.dev/candidate"
GREEN = {"REBALANCER_LEADER_ELECTION__LEASE_NAME": "green"}
BLUE = {"REBALANCER_LEADER_ELECTION__LEASE_NAME": "blue", "REBALANCER_STATE_NAME": "blue-memory"}
POLICY = """\
  interval: 30s
  pools:
  - name: {pool}
    nodeSelector: {{matchLabels: {{team: {pool}}}}}
    signals:
      cpu: {{low: 40, target: 55, high: 70}}
      memory: {{low: 50, target: 70, high: 85}}
"""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    """Sixteen nodes of which four are hot, two in the pool green and two in the pool blue."""
    with stage(tmp_path, scenario=replace(SMALL, nodes=16, pods=260, hot_nodes=4)) as own:
        plan = own.run("plan", "-o", "json").ended(0).document
        hot = [node["name"] for node in plan["nodes"] if node["class"] == "hot"]
        others = [node["name"] for node in plan["nodes"] if node["class"] != "hot"]
        assert len(hot) == 4
        for number, name in enumerate([*hot, *others]):
            node = own.cluster.world.get("nodes", name)
            labels = {**node["metadata"]["labels"], "team": "green" if number % 2 else "blue"}
            own.cluster.world.replace("nodes", updated(node, "metadata", {"labels": labels}))
        own.forget()
        for lease in ("green", "blue"):
            spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0}
            own.cluster.world.create("leases", {"metadata": {"name": lease, "namespace": "default"}, "spec": spec})
        with own.ticking():
            yield own


def policy(scene: Stage, pool: str) -> Path:
    return scene.policy(POLICY.format(pool=pool), name=f"{pool}.yaml")


def nodes_of(scene: Stage, pool: str) -> set[str]:
    nodes = scene.cluster.world.objects("nodes")
    return {node["metadata"]["name"] for node in nodes if node["metadata"]["labels"]["team"] == pool}


def tainted(scene: Stage) -> set[str]:
    nodes = scene.cluster.world.objects("nodes")
    return {node["metadata"]["name"] for node in nodes if any(taint["key"] == HOT for taint in node["spec"].get("taints") or [])}


def places(scene: Stage) -> dict[str, str]:
    """namespace/pod -> node, as it is now."""
    pods = scene.cluster.world.objects("pods")
    return {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["spec"].get("nodeName", "") for pod in pods}


def memory(scene: Stage, name: str) -> Memory:
    text = scene.cluster.world.get("configmaps", name, "default")["data"][KEY]
    return load_memory(text.encode(), origin=name)


def holder(scene: Stage, lease: str) -> str:
    return scene.cluster.world.get("leases", lease, "default")["spec"]["holderIdentity"]


def run_a_cycle(made: Replica) -> Replica:
    made.start()
    eventually(lambda: made.leads)
    made.did_cycles()
    return made


def test_each_evicts_from_its_own_nodes_and_keeps_its_own_taints_memory_and_lease(scene: Stage) -> None:
    """Both lead at once, and each sees the other's hot nodes without doing anything about them."""
    before = places(scene)
    with (
        replica(scene, settings=GREEN, policy=policy(scene, "green")) as green,
        replica(scene, settings=BLUE, policy=policy(scene, "blue")) as blue,
    ):
        run_a_cycle(green)
        by_green = set(scene.evictions)
        assert by_green
        assert {before[pod] for pod in by_green} <= nodes_of(scene, "green")
        green_taints = tainted(scene)
        assert green_taints
        assert green_taints <= nodes_of(scene, "green")
        run_a_cycle(blue)
        by_blue = set(scene.evictions) - by_green
        assert by_blue
        assert {before[pod] for pod in by_blue} <= nodes_of(scene, "blue")
        assert green_taints <= tainted(scene)
        blue_taints = tainted(scene) - green_taints
        assert blue_taints
        assert blue_taints <= nodes_of(scene, "blue")
        assert (holder(scene, "green"), holder(scene, "blue")) == (green.leadership.identity, blue.leadership.identity)
        assert green.leads
        assert blue.leads
        for state, pool in (("green-state", "green"), ("blue-memory", "blue")):
            sources = {move.eviction.source for move in memory(scene, state).open_moves}
            assert sources
            assert sources <= nodes_of(scene, pool)
        assert scene.cluster.world.find("configmaps", "rebalancer-state", "default") is None
        patched = {request.path.rsplit("/", 1)[1] for request in scene.writes if request.method == "PATCH" and "/nodes/" in request.path}
        assert patched == green_taints | blue_taints
        blue.terminate()
        assert tainted(scene) == green_taints
        assert holder(scene, "green") == green.leadership.identity
        green.terminate()
        assert tainted(scene) == set()


def test_a_node_that_leaves_its_pool_gives_the_taint_back_and_is_the_others_from_then_on(scene: Stage) -> None:
    """The process that put the taint knows that it did."""
    with replica(scene, settings=GREEN, policy=policy(scene, "green")) as green:
        run_a_cycle(green)
        moved = sorted(tainted(scene))[0]
        with scene.cluster.world.lock:
            node = scene.cluster.world.get("nodes", moved)
            labels = {**node["metadata"]["labels"], "team": "blue"}
            scene.cluster.world.replace("nodes", updated(node, "metadata", {"labels": labels}))
        green.service._run_in(0.0)
        eventually(lambda: moved not in tainted(scene), seconds=60)


def test_marks_of_the_other_controller_stay(scene: Stage) -> None:
    """In annotate mode each takes off its own marks alone, and so does cleanup with its policy."""

    def marked() -> dict[str, str]:
        pods = scene.cluster.world.objects("pods")
        notes = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["metadata"].get("annotations") or {} for pod in pods}
        return {pod: json.loads(note[CANDIDATE])["source"] for pod, note in notes.items() if CANDIDATE in note}

    with scene.cluster.world.lock:
        theirs = next(pod for pod in scene.cluster.world.objects("pods") if pod["spec"].get("nodeName") in nodes_of(scene, "blue"))
        mark = {"reason": "r", "gain": 0.1, "source": theirs["spec"]["nodeName"], "destination": "x", "expires": "2099-01-01T00:00:00Z"}
        notes = {**(theirs["metadata"].get("annotations") or {}), CANDIDATE: json.dumps(mark)}
        scene.cluster.world.replace("pods", updated(theirs, "metadata", {"annotations": notes}))
    for _ in range(2):
        scene.run("run", "--once", "--mode", "annotate", "--policy", policy(scene, "green"), "-o", "json", env=GREEN).ended(0)
    both = marked()
    assert {node for node in both.values() if node in nodes_of(scene, "green")}
    assert [node for node in both.values() if node in nodes_of(scene, "blue")] == [theirs["spec"]["nodeName"]]
    scene.run("cleanup", "--policy", policy(scene, "green")).ended(0)
    assert marked() == {pod: node for pod, node in both.items() if node in nodes_of(scene, "blue")}
    scene.run("cleanup", "--policy", policy(scene, "green"), "--all").ended(0)
    assert marked() == {}
