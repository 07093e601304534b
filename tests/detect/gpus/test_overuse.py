"""Who uses more of a shared GPU than was asked for."""

from __future__ import annotations

from rebalancer.detect.gpus.overuse import OverUser, over_users
from rebalancer.policy.gpu_holders import Overuse
from rebalancer.state.cluster import ClusterState
from tests.support.builder import PodSpec, cluster, node, pod
from tests.support.gpu_use import measured, taken, used
from tests.support.gpus import gpu, memory_of, part, whole

GIB = 2.0**30
RULES = Overuse()


def sharer(name: str, asked: str = "2Gi") -> PodSpec:
    return pod(name, on="n1", gpu=memory_of(asked), holds={0: part(memory=asked)})


def world(*pods: PodSpec) -> ClusterState:
    return cluster(nodes=[node("n1", gpus=[gpu("16Gi"), gpu("16Gi")])], pods=list(pods))


def found(state: ClusterState) -> tuple[OverUser, ...]:
    return over_users(state, RULES)


def test_g14_a_pod_that_uses_11_gib_of_2_is_an_over_user() -> None:
    """Its excess is 9 GiB, and the neighbour on its device is counted."""
    state = measured(
        world(sharer("big"), sharer("small", "4Gi")),
        {("n1", 0): used(memory="14Gi", total="15Gi")},
        {"big": taken(memory="11Gi"), "small": taken(memory="3Gi")},
    )
    (over,) = found(state)
    assert (state.pods.names[over.pod], over.excess_bytes, over.neighbours) == ("big", 9 * GIB, 1)
    assert (over.device_used_bytes, over.device_bytes) == (14 * GIB, 15 * GIB)


def test_an_estimated_share_accuses_nobody() -> None:
    """It is a part of the device's value, and may be another's."""
    state = measured(world(sharer("big")), {("n1", 0): used(memory="14Gi")}, {"big": taken(memory="11Gi", estimated=True)})
    assert found(state) == ()


def test_a_pod_alone_on_its_device_takes_nothing_from_anybody() -> None:
    """All of it is its own."""
    state = measured(
        world(pod("one", on="n1", gpu=whole(), holds={0: part(1.0, "8Gi")})), {("n1", 0): used()}, {"one": taken(memory="15Gi")}
    )
    assert found(state) == ()


def test_what_is_not_known_is_no_excess() -> None:
    """Neither an unknown ask nor an unknown use, nor anything on a doubted device."""
    assert found(world(sharer("a"))) == ()
    assert found(measured(world(sharer("a")), {("n1", 0): used(memory="14Gi")})) == ()
    assert found(measured(world(sharer("a")), {("n1", 0): used(doubt="odd")}, {"a": taken(memory="9Gi")})) == ()


def test_a_little_more_is_within_the_margin() -> None:
    """Contexts and fragmentation take some beside what a program allocates."""
    state = measured(world(sharer("a", "10Gi")), {("n1", 0): used(memory="11Gi")}, {"a": taken(memory="10.5Gi")})
    assert found(state) == ()
