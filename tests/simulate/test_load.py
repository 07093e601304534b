"""What pods really use, and that it moves with the work, not with the pod."""

from __future__ import annotations

import numpy as np
import pytest

from rebalancer.simulate.history import History
from rebalancer.simulate.load import LoadModel, Profile
from rebalancer.simulate.pods import delete_pod
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import deployment, node

HOT = Profile(cpu_cores=3.0, memory_bytes=2.0**30, swing=0.0, noise=0.0)
MILD = Profile(cpu_cores=0.5, memory_bytes=2.0**28, swing=0.0, noise=0.0)


def _world(*profiles: Profile, nodes: int = 2) -> tuple[World, LoadModel]:
    world = bare_world(seed=31)
    for number in range(nodes):
        node(world, f"n{number}", cpu="4")
    load = world.load
    assert load is not None
    load.plan(deployment(world, "web", len(profiles)), profiles)
    world.advance(120)
    return world, load


def test_a_replacement_takes_over_the_traffic() -> None:
    """The evicted pod's demand comes back with the pod that replaces it."""
    world, load = _world(HOT, MILD)
    victim = next(p for p in world.objects("pods") if load.profile("a", p["metadata"]["name"]) == HOT)
    delete_pod(world, victim)
    world.advance(120)
    profiles = [load.profile("a", p["metadata"]["name"]) for p in world.objects("pods")]
    assert sorted(p.cpu_cores for p in profiles) == [0.5, 3.0]
    assert victim["metadata"]["name"] not in {p["metadata"]["name"] for p in world.objects("pods")}


def test_a_node_cannot_use_more_cpu_than_it_has() -> None:
    """Two demands of three cores on a node of four are throttled by the same share."""
    world, load = _world(HOT, HOT, nodes=1)
    usage = load.usage(world.now)
    assert usage.node_cpu.tolist() == pytest.approx([4.0])
    assert usage.pod_cpu[0] == pytest.approx(usage.pod_cpu[1])
    assert usage.pod_cpu.sum() < 4.0


def test_load_follows_what_a_test_says() -> None:
    """From now on twice as much; the past stays as it was."""
    world, load = _world(MILD, nodes=1)
    before = load.usage(world.now - 30).pod_cpu[0]
    name = next(world.objects("pods"))["metadata"]["name"]
    load.scale([("a", name)], 2.0)
    assert load.usage(world.now).pod_cpu[0] == pytest.approx(2 * before)
    assert load.usage(world.now - 30).pod_cpu[0] == pytest.approx(before)


def test_counters_of_pods_and_system_add_up_to_the_node() -> None:
    """Over any stretch, also one in which a pod moved."""
    world, load = _world(HOT, MILD, MILD)
    history = History(world, load, interval_s=15.0, back_s=60.0)
    delete_pod(world, next(world.objects("pods")))
    world.advance(300)
    samples = history.samples(world.now - 300, world.now)
    pods = np.zeros(2)
    counted = np.nan_to_num(samples.pod_cpu_seconds())
    np.add.at(pods, samples.tenures.node, counted[:, -1] - counted[:, 0])
    grown = samples.node_cpu_seconds()[:, -1] - samples.node_cpu_seconds()[:, 0]
    length = samples.times[-1] - samples.times[0]
    assert (grown - pods) / length == pytest.approx(np.full(2, 0.15), abs=0.02)


def test_history_is_kept_for_its_retention_and_no_longer() -> None:
    """Old scrapes are dropped."""
    world, load = _world(MILD)
    history = History(world, load, interval_s=15.0, retention_s=120.0, back_s=60.0)
    history.samples(0, world.now)
    world.advance(600)
    assert history.samples(0, world.now).times[0] >= world.now - 135


def test_an_unknown_signal_and_a_world_without_load_say_so() -> None:
    """One sentence each."""
    world, _ = _world(MILD)
    with pytest.raises(ValueError, match="no signal 'disk'"):
        world.node_loads("disk")
    with pytest.raises(RuntimeError, match="no load model"):
        World().node_loads("cpu")
