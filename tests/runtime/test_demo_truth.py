"""What a demonstration looks at: the world itself, also where no exporter could tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalancer.policy.model import RebalancePolicy
from rebalancer.runtime.demo import demo_policy
from rebalancer.runtime.demo_truth import Truth
from rebalancer.simulate.scenario import build_world, gpu_scenario
from rebalancer.simulate.world import World


@pytest.fixture
def world() -> World:
    return build_world(replace(gpu_scenario(7), nodes=4, pods=60, hot_nodes=0))


@pytest.fixture
def policy() -> RebalancePolicy:
    return demo_policy(soft_taints=True, gpu=True)


def test_devices_that_are_over_full_from_the_start_are_nobodys_fault(world: World, policy: RebalancePolicy) -> None:
    """They count as over-full, not as overfilled."""
    truth = Truth(world, policy)
    world.advance(60)
    truth.look()
    assert truth.state().overfull_devices == 2
    assert truth.overfilled == set()


def test_a_device_that_becomes_over_full_is_remembered(world: World, policy: RebalancePolicy) -> None:
    """Also when it is well again at the end."""
    truth = Truth(world, policy)
    load, name = world.load, next(p["metadata"]["name"] for p in world.objects("pods", "serving") if p["spec"]["nodeName"] == "gpu-l4-05")
    assert load is not None
    before = load.profile("serving", name)
    load.set_profile("serving", name, replace(before, gpu_memory_bytes=40 * 2.0**30))
    truth.look()
    load.set_profile("serving", name, before)
    truth.look()
    assert truth.overfilled == {("gpu-l4-05", 0)}
    assert truth.state().overfull_devices == 2


@pytest.mark.parametrize("lost", [1, 3])
def test_a_gang_that_lost_members_is_broken_for_good(world: World, policy: RebalancePolicy, lost: int) -> None:
    """One member is enough, and a gang of which nothing is left is not forgotten."""
    truth = Truth(world, policy)
    assert truth.state().gangs_broken == 0
    for number in range(lost):
        world.remove("pods", f"pretrain-worker-{number}", "training")
    truth.look()
    assert truth.state().gangs_broken == 1
    assert truth.broken == {"training/pretrain"}


def test_memory_that_no_exporter_sees_is_counted(world: World, policy: RebalancePolicy) -> None:
    """A device is wanted for more than it has."""
    assert Truth(world, policy).state().worst_device_memory > 1.0
