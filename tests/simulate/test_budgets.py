"""How many disruptions a budget allows: the table of worked examples V1 to V12, as the disruption controller computes them."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.simulate.budgets import BudgetController
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import budget, deployment, owner_of, pod, stateful_set, status_of


def _world() -> World:
    return World(seed=1)


def _pods(world: World, owner: dict[str, Any] | None, count: int, *, ready: int, start: int = 0, app: str = "x") -> None:
    for number in range(start, start + count):
        ref = None if owner is None else owner_of(owner)
        pod(world, f"{app}-{number}", on="n1", ready=number - start < ready, labels={"app": app}, owner=ref)


def _allowed(world: World) -> int:
    BudgetController(world).react()
    return int(status_of(world, "b")["disruptionsAllowed"])


@pytest.mark.parametrize(("healthy", "allowed"), [(10, 3), (8, 1)])
def test_v1_v2_a_percentage_of_unavailable_pods_rounds_up(healthy: int, allowed: int) -> None:
    """25 % of ten is three, and two of them are used up when two pods are not Ready."""
    world = _world()
    _pods(world, deployment(world, "x", 10), 10, ready=healthy)
    budget(world, "b", maxUnavailable="25%")
    assert _allowed(world) == allowed


def test_v3_half_of_seven_is_four() -> None:
    """A minimum of 50 % of seven pods rounds up to four."""
    world = _world()
    _pods(world, stateful_set(world, "x", 7), 7, ready=7)
    budget(world, "b", minAvailable="50%")
    assert _allowed(world) == 3


@pytest.mark.parametrize("spec", [{"minAvailable": 3}, {"maxUnavailable": 0}])
def test_v4_a_budget_without_room_allows_nothing(spec: dict[str, Any]) -> None:
    """Three of three, or nothing unavailable: none may go."""
    world = _world()
    _pods(world, deployment(world, "x", 3), 3, ready=3)
    budget(world, "b", **spec)
    assert _allowed(world) == 0


def test_v5_one_percent_of_one_pod_is_one_pod() -> None:
    """Rounding up lets the only replica go."""
    world = _world()
    _pods(world, deployment(world, "x", 1), 1, ready=1)
    budget(world, "b", maxUnavailable="1%")
    assert _allowed(world) == 1


def test_v6_the_scales_of_all_owners_add_up() -> None:
    """Five and three pods of two Deployments under one budget expect eight."""
    world = _world()
    _pods(world, deployment(world, "x", 5), 5, ready=5)
    _pods(world, deployment(world, "y", 3), 3, ready=3, app="y")
    budget(world, "b", maxUnavailable=1)
    assert _allowed(world) == 1
    assert status_of(world, "b")["expectedPods"] == 8


@pytest.mark.parametrize(("spec", "allowed"), [({"maxUnavailable": 1}, 0), ({"minAvailable": 2}, 1)])
def test_v7_v8_bare_pods_count_only_for_a_whole_minimum(spec: dict[str, Any], allowed: int) -> None:
    """Bare pods have no scale, so only an integer minimum knows how many to expect."""
    world = _world()
    _pods(world, None, 3, ready=3)
    budget(world, "b", **spec)
    assert _allowed(world) == allowed


def test_v9_bare_pods_overstate_what_is_allowed() -> None:
    """Healthy bare pods are counted, but not expected."""
    world = _world()
    _pods(world, deployment(world, "x", 4), 4, ready=4)
    _pods(world, None, 2, ready=2, start=10)
    budget(world, "b", maxUnavailable=1)
    assert _allowed(world) == 3


def test_v10_surge_pods_are_healthy_but_not_expected() -> None:
    """The Deployment's replicas are the scale, not the sum over its ReplicaSets."""
    world = _world()
    _pods(world, deployment(world, "x", 4), 5, ready=5)
    budget(world, "b", maxUnavailable=1)
    assert _allowed(world) == 2


def test_v11_an_owner_without_a_scale_fails_the_whole_budget() -> None:
    """A DaemonSet has no scale: nothing is allowed, and the condition says why."""
    world = _world()
    spec = {"selector": {}, "template": {}}
    _pods(world, world.create("daemonsets", {"metadata": {"name": "d", "namespace": "a"}, "spec": spec}), 2, ready=2)
    budget(world, "b", maxUnavailable=1)
    assert _allowed(world) == 0
    assert status_of(world, "b")["conditions"][0]["reason"] == "SyncFailed"


def test_v12_all_may_be_unavailable_and_still_nothing_is_left_to_allow() -> None:
    """With none healthy, healthy minus desired is nothing."""
    world = _world()
    _pods(world, deployment(world, "x", 3), 3, ready=0)
    budget(world, "b", maxUnavailable="100%")
    assert _allowed(world) == 0
