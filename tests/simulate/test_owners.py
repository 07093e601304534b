"""Owners, kubelets and time in the embedded cluster."""

from __future__ import annotations

import threading

import pytest

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.kubelet import STARTUP
from rebalancer.simulate.pods import delete_pod, is_terminating, with_condition
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Json, deployment, node, stateful_set, template


def _world(nodes: int = 2) -> World:
    world = bare_world(seed=9)
    for number in range(nodes):
        node(world, f"n{number}")
    return world


def _running(world: World) -> list[str]:
    return sorted(p["metadata"]["name"] for p in world.objects("pods") if p["status"]["phase"] == "Running" and not is_terminating(p))


def test_a_deployment_gets_its_pods_and_says_so() -> None:
    """Pods are created, bound, started; the status counts them up to the Deployment."""
    world = _world()
    deployment(world, "web", 3)
    world.advance(60)
    assert len(_running(world)) == 3
    status = world.get("deployments", "web", "a")["status"]
    assert (status["readyReplicas"], status["updatedReplicas"], status["observedGeneration"]) == (3, 3, 1)


def test_a_replica_set_replaces_a_terminating_pod_at_once() -> None:
    """Old and new overlap, and the new one has another name."""
    world = _world()
    deployment(world, "web", 2)
    world.advance(60)
    victim = next(world.objects("pods"))
    delete_pod(world, victim)
    world.settle()
    assert world.count("pods") == 3
    world.advance(60)
    assert victim["metadata"]["name"] not in _running(world)
    assert len(_running(world)) == 2


def test_scaling_down_removes_what_is_not_ready_first() -> None:
    """The pod whose probe fails goes before the healthy ones."""
    from rebalancer.simulate.kubelet import set_ready

    world = _world()
    deployment(world, "web", 3)
    world.advance(60)
    sick = list(world.objects("pods"))[1]
    set_ready(world, sick, False)
    value = world.get("deployments", "web", "a")
    world.replace("deployments", {**value, "spec": {**value["spec"], "replicas": 2}})
    world.advance(60)
    assert sick["metadata"]["name"] not in _running(world)
    assert len(_running(world)) == 2


def test_an_ordered_set_starts_one_pod_after_the_other() -> None:
    """Ordinal 1 is not created before ordinal 0 is ready; Parallel does not wait."""
    world = _world()
    stateful_set(world, "db", 3)
    stateful_set(world, "free", 3, podManagementPolicy="Parallel")
    world.settle()
    assert sorted(p["metadata"]["name"] for p in world.objects("pods")) == ["db-0", "free-0", "free-1", "free-2"]
    world.advance(120)
    assert len(_running(world)) == 6


def test_a_daemon_set_has_a_pod_on_every_node_that_its_pods_tolerate() -> None:
    """A tainted node is left out; a node that joins later gets its pod."""
    world = _world()
    node(world, "tainted", taints=[{"key": "k", "effect": "NoSchedule"}])
    body = {"selector": {"matchLabels": {"app": "d"}}, "template": template({"app": "d"})}
    world.create("daemonsets", {"metadata": {"name": "d", "namespace": "a"}, "spec": body})
    world.advance(60)
    node(world, "late")
    world.advance(60)
    assert {p["spec"]["nodeName"] for p in world.objects("pods")} == {"n0", "n1", "late"}
    assert world.get("daemonsets", "d", "a")["status"]["numberReady"] == 3


def _job(world: World, **spec: object) -> Json:
    body = {"parallelism": 1, "template": template({"job": "j"}, restartPolicy="Never"), **spec}
    return world.create("jobs", {"metadata": {"name": "j", "namespace": "a"}, "spec": body})


def _evict_job_pod(world: World) -> None:
    (active,) = [p for p in world.objects("pods") if not is_terminating(p)]
    delete_pod(world, world.replace("pods", with_condition(active, "DisruptionTarget", "True", world.now)))


def test_v19_the_seventh_eviction_fails_a_job_with_the_default_limit() -> None:
    """Seven failures are more than six."""
    world = _world()
    _job(world)
    world.advance(30)
    for _ in range(7):
        _evict_job_pod(world)
        world.advance(700)
    job = world.get("jobs", "j", "a")
    assert job["status"]["failed"] == 7
    assert [c["reason"] for c in job["status"]["conditions"]] == ["BackoffLimitExceeded"]
    assert world.count("pods") == 0


def test_v20_ignored_failures_never_fail_the_job_but_lengthen_the_back_off() -> None:
    """With Ignore, the replacement after the fourth eviction waits 80 s."""
    world = _world()
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    _job(world, podFailurePolicy={"rules": [rule]})
    world.advance(30)
    for _ in range(3):
        _evict_job_pod(world)
        world.advance(700)
    _evict_job_pod(world)
    world.advance(79)
    assert world.count("pods") == 0
    world.advance(2)
    assert world.count("pods") == 1
    assert world.get("jobs", "j", "a")["status"]["failed"] == 0


def test_a_slow_starter_is_ready_when_it_says() -> None:
    """The start-up annotation is kept to."""
    world = _world()
    made = template({"app": "slow"})
    made["metadata"]["annotations"] = {STARTUP: "90"}
    body = {"replicas": 1, "selector": {"matchLabels": {"app": "slow"}}, "template": made}
    world.create("replicasets", {"metadata": {"name": "slow", "namespace": "a"}, "spec": body})
    world.advance(89)
    assert _running(world) == []
    world.advance(2)
    assert len(_running(world)) == 1


def test_time_does_not_go_back() -> None:
    """advance refuses a negative length."""
    with pytest.raises(ValueError, match="cannot go back"):
        World().advance(-1)


def test_agents_that_never_rest_are_reported() -> None:
    """A loop between agents ends with an error instead of a hang."""

    class Busy:
        def react(self) -> bool:
            return True

        def next_due(self) -> float:
            return float("inf")

    world = World()
    world.agents.append(Busy())
    with pytest.raises(RuntimeError, match="did not come to rest"):
        world.settle(rounds=5)


def test_a_clock_that_runs_by_itself_lets_pods_start() -> None:
    """With a speed, virtual time passes without anybody calling advance."""
    world = _world()
    deployment(world, "web", 2)
    with EmbeddedCluster(world, speed=600.0):
        for _ in range(200):
            if len(_running(world)) == 2:
                break
            threading.Event().wait(0.05)
    assert len(_running(world)) == 2
