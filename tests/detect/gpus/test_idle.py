"""Who holds GPUs and does not use them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.detect.gpus.idle import idle_holders
from rebalancer.policy.gpu_holders import Idle
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import PodClass
from tests.support.builder import PodSpec, cluster, node, pod
from tests.support.gpu_use import Taken, Used, measured, taken, used
from tests.support.gpus import gpu, part, replica, whole

RULES = Idle()


def world(*pods: PodSpec, devices: int = 2) -> ClusterState:
    return cluster(nodes=[node("n1", gpus=[gpu("40Gi")] * devices)], pods=list(pods))


def names(state: ClusterState, rules: Idle = RULES) -> list[str]:
    return [state.pods.names[each.pod] for each in idle_holders(state, rules).holders]


def alone(**more: object) -> PodSpec:
    return pod("serve", on="n1", gpu=whole(), holds={0: 1.0}, **more)  # type: ignore[arg-type]


def shared(name: str, **more: object) -> PodSpec:
    return pod(name, on="n1", gpu=replica(2), holds={0: part(0.5, "4Gi")}, **more)  # type: ignore[arg-type]


def test_a_pod_whose_device_was_idle_for_the_whole_time_is_an_idle_holder() -> None:
    """Its device's highest busy share within the time is under the mark."""
    state = measured(world(alone()), {("n1", 0): used(busy=0.0, busiest=0.02)}, {"serve": taken(busy=0.0, memory="23Gi")})
    (holder,) = idle_holders(state, RULES).holders
    assert (holder.gpus, holder.busiest, holder.idle_s, holder.memory_bytes) == (1.0, 0.02, 1800.0, 23 * 2.0**30)


def test_how_many_gpus_a_sharer_holds_is_not_known_where_its_part_is_not() -> None:
    """It is idle all the same, and is not said to hold a whole one."""
    state = measured(world(pod("s", on="n1", gpu=replica(2), holds={0: part()})), {("n1", 0): used(busy=0.0, busiest=0.02)}, {})
    (holder,) = idle_holders(state, RULES).holders
    assert math.isnan(holder.gpus)


def test_a_pod_that_worked_within_the_time_is_not() -> None:
    """Idle now says nothing about ten minutes ago."""
    state = measured(world(alone()), {("n1", 0): used(busy=0.0, busiest=0.6)}, {"serve": taken(busy=0.0)})
    assert idle_holders(state, RULES).holders == ()
    assert idle_holders(state, RULES).unknown == 0


def test_a_device_that_nobody_measures_leads_to_no_finding() -> None:
    """Unknown is not idle, and is counted."""
    for state in (world(alone()), measured(world(alone()), {})):
        found = idle_holders(state, RULES)
        assert (found.holders, found.unknown) == ((), 1)


def test_g5_a_doubted_device_makes_nobody_an_idle_holder() -> None:
    """Where two signals disagree neither is believed."""
    state = measured(world(alone()), {("n1", 0): used(busiest=0.0, doubt="its two signals disagree")})
    assert idle_holders(state, RULES).holders == ()


def test_a_pod_that_has_just_begun_is_not_idle_yet() -> None:
    """The device may have been idle before it came."""
    state = measured(world(alone(age_s=600.0)), {("n1", 0): used(busiest=0.0)})
    assert names(state) == []


def test_all_devices_of_a_pod_must_be_idle() -> None:
    """A pod with two devices that keeps one of them busy is at work."""
    both = pod("train", on="n1", gpu=whole(2), holds={0: 1.0, 1: 1.0})
    state = measured(world(both), {("n1", 0): used(busiest=0.0), ("n1", 1): used(busiest=0.9)})
    assert names(state) == []


def test_a_device_that_is_idle_clears_all_that_share_it() -> None:
    """Nobody was at work on it, whoever is on it."""
    state = measured(world(shared("a"), shared("b")), {("n1", 0): used(busiest=0.01)})
    assert names(state) == ["a", "b"]


def test_on_a_busy_device_only_its_own_kernels_tell_a_sharer_from_the_others() -> None:
    """The one that ran no kernel for the time is idle; of one without such a measurement nothing is known."""
    state = measured(
        world(shared("a"), shared("b"), shared("c")),
        {("n1", 0): used(busy=0.8, busiest=0.9)},
        {"a": taken(busy=0.0, kernel_idle_s=7200.0), "b": taken(busy=0.8, kernel_idle_s=1.0), "c": taken(busy=0.3, estimated=True)},
    )
    found = idle_holders(state, RULES)
    assert [state.pods.names[each.pod] for each in found.holders] == ["a"]
    assert found.unknown == 1


def test_n7_a_notebook_with_a_busy_terminal_is_not_idle() -> None:
    """Its GPU rests, and somebody works in it."""
    busy = alone(pod_class=PodClass.EXPERIMENT, uses={"cpu": 1.5})
    rests = alone(pod_class=PodClass.EXPERIMENT, uses={"cpu": 0.01})
    blind = alone(pod_class=PodClass.EXPERIMENT)
    idle = {("n1", 0): used(busy=0.0, busiest=0.0)}
    assert names(measured(world(busy), idle)) == []
    assert names(measured(world(rests), idle)) == ["serve"]
    assert names(measured(world(blind), idle)) == []


def test_a_pod_that_may_be_on_any_device_is_unknown() -> None:
    """Somebody is idle there, and nobody knows who."""
    state = measured(world(pod("where", on="n1", gpu=whole())), {("n1", 0): used(busiest=0.0), ("n1", 1): used(busiest=0.0)})
    found = idle_holders(state, RULES)
    assert (found.holders, found.unknown) == ((), 1)


shares = st.one_of(st.just(math.nan), st.floats(0, 1))


@given(
    busiest=st.lists(shares, min_size=3, max_size=3),
    own=st.lists(st.tuples(shares, st.booleans(), st.one_of(st.just(math.nan), st.floats(0, 1e5))), min_size=3, max_size=3),
    doubt=st.sampled_from(["", "doubted"]),
)
def test_every_holder_is_proven_idle(busiest: list[float], own: list[tuple[float, bool, float]], doubt: str) -> None:
    """Whatever is known and not known: a finding rests on a believed device at rest, or on kernels that were not run."""
    pods = [pod(f"p{row}", on="n1", gpu=replica(2), holds={row: part(0.5, "4Gi")}) for row in range(3)]
    devices = {("n1", row): Used(busiest=value, doubt=doubt if row == 0 else "") for row, value in enumerate(busiest)}
    takes = {f"p{row}": Taken(busy=busy, estimated=guess, kernel_idle_s=idle) for row, (busy, guess, idle) in enumerate(own)}
    state = measured(world(*pods, devices=3), devices, takes)
    for holder in idle_holders(state, RULES).holders:
        row = holder.devices[0]
        assert not state.gpus.use.doubts[row]
        assert busiest[row] <= RULES.busy_below / 100 or own[row][2] >= RULES.after
