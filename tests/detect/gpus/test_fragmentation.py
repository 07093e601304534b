"""What of the free GPUs the pods of the cluster could not use."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.detect.gpus.fragmentation import Free, TypicalPod, Want, fragmentation, fragmentation_of, free_of, typical_pods
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gpu import GpuAsk, ModelConstraint
from rebalancer.state.tables import Phase
from tests.support.builder import PodSpec, cluster, node, pod
from tests.support.gpus import DeviceSpec, Holds, fraction, gpu, memory_of, part, unknown_ask, whole

HALF = TypicalPod(Want(cpu_cores=2, devices=1, compute=0.5), 0.6)
ONE = TypicalPod(Want(cpu_cores=4, devices=1, compute=1.0), 0.4)


def free(shares: Sequence[float], cpu: float, typical: Sequence[TypicalPod]) -> float:
    """The fragmentation of one node with so much free."""
    state = cluster(nodes=[node("n1", gpus=[gpu()] * len(shares))], pods=[])
    found = fragmentation_of(state, Free(np.array(shares, dtype=np.float64), np.array([float(cpu)])), typical)
    return float(found.nodes[0])


def world(*pods: PodSpec, cpu: float = 64, devices: Sequence[DeviceSpec] = (gpu(), gpu())) -> ClusterState:
    return cluster(nodes=[node("n1", cpu=cpu, gpus=devices)], pods=list(pods))


def asks(name: str, ask: GpuAsk, *, on: str | None = None, cpu: float = 1.0, holds: Holds | None = None) -> PodSpec:
    return pod(name, on=on, cpu=cpu, gpu=ask, holds=holds or {}, phase=Phase.RUNNING if on else Phase.PENDING)


@pytest.mark.parametrize(("cpu", "expected"), [(10.0, 0.4), (3.0, 0.8)])
def test_the_worked_check_of_the_measure(cpu: float, expected: float) -> None:
    """One free device and a sliver of 0.4: with CPU for both typical pods the sliver is lost, without it for the second all of its part."""
    assert free([1.0, 0.4], cpu, [HALF, ONE]) == pytest.approx(expected)


def test_all_that_is_free_is_lost_to_a_pod_of_another_model() -> None:
    """No device of the node will do."""
    other = TypicalPod(Want(cpu_cores=1, devices=1, compute=0.1, model=ModelConstraint(models=("H100",))), 1.0)
    assert free([1.0, 0.4], 10, [other]) == pytest.approx(1.4)


def test_devices_that_are_too_few_are_lost() -> None:
    """Two whole devices are asked for, and there are one and a half."""
    assert free([1.0, 0.5], 10, [TypicalPod(Want(cpu_cores=1, devices=2, compute=1.0), 1.0)]) == pytest.approx(1.5)


def test_a_device_of_which_nothing_is_known_is_not_counted_and_is_told() -> None:
    """Unknown is neither free nor lost."""
    state = world(asks("a", whole()), devices=[gpu(), gpu(trusted=False)])
    found = fragmentation(state)
    assert (found.total_free, found.total, found.unknown_devices) == (1.0, 0.0, 1)


def test_a_node_of_which_nothing_is_known_has_no_value() -> None:
    """Its one device is held by a pod of which it is not known what it takes."""
    state = world(asks("a", whole()), asks("b", unknown_ask(), on="n1"))
    found = fragmentation(state)
    assert math.isnan(found.nodes[0])
    assert math.isnan(found.total)
    assert (found.unknown_devices, found.unknown_pods) == (2, 1)


def test_whole_devices_of_like_ones_are_counted_off_although_nobody_knows_which() -> None:
    """A device plugin without an exporter tells no places, and it does not matter here."""
    assert free_of(world(asks("a", whole(), on="n1"))).share.sum() == 1.0


def test_the_larger_of_compute_and_memory_is_taken() -> None:
    """A pod with a tenth of the compute and half of the memory leaves half of the device."""
    state = world(asks("a", fraction(0.5), on="n1", holds={0: part(0.1, "20Gi")}), devices=[gpu("40Gi")])
    assert free_of(state).share.tolist() == [0.5]


def test_what_is_not_known_of_one_holder_is_not_made_up_by_another() -> None:
    """One told its compute, the other its memory: together they may hold more than the larger of the two."""
    a = asks("a", fraction(0.5), on="n1", holds={0: part(compute=0.5)})
    b = asks("b", memory_of("24Gi"), on="n1", holds={0: part(memory="24Gi")})
    assert np.isnan(free_of(world(a, b, devices=[gpu("40Gi")])).share).tolist() == [True]
    assert free_of(world(a, devices=[gpu("40Gi")])).share.tolist() == [0.5]
    assert free_of(world(b, devices=[gpu("40Gi")])).share.tolist() == pytest.approx([0.4])


def test_memory_in_bytes_is_a_share_of_each_device() -> None:
    """10 GiB fit into a quarter of 40 GiB, and not into a quarter of 16."""
    state = world(asks("w", memory_of("10Gi")), devices=[gpu("40Gi"), gpu("16Gi")])
    (typical,), _ = typical_pods(state)
    found = fragmentation_of(state, Free(np.array([0.25, 0.25]), np.array([9.0])), [typical])
    assert found.nodes.tolist() == [0.25]


def test_rare_asks_are_left_out() -> None:
    """Of 20 pods one asks for eight devices: 95 % are covered without it."""
    state = world(*(asks(f"a{i}", whole()) for i in range(19)), asks("z", whole(8)))
    typical, _ = typical_pods(state)
    assert [(each.want.devices, each.popularity) for each in typical] == [(1, 1.0)]


def test_pods_that_are_done_are_not_typical() -> None:
    """A finished job asks for nothing any more."""
    state = world(asks("a", whole()), pod("done", on="n1", gpu=whole(8), phase=Phase.SUCCEEDED))
    assert [each.want.devices for each in typical_pods(state)[0]] == [1]


def test_without_pods_that_ask_there_is_no_measure() -> None:
    """Nothing is lost to nobody, and nothing is said to be of use."""
    assert math.isnan(fragmentation(world()).total)


WANTS = st.builds(
    lambda cpu, devices, share: Want(cpu_cores=cpu, devices=devices, compute=1.0 if devices > 1 else share),
    st.sampled_from([1.0, 4.0, 16.0]),
    st.sampled_from([1.0, 1.0, 2.0, 4.0]),
    st.sampled_from([0.1, 0.25, 0.5, 1.0]),
)
MIXES = st.lists(WANTS, min_size=1, max_size=5, unique=True).map(lambda wants: [TypicalPod(each, 1 / len(wants)) for each in wants])
SHARES = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]), min_size=1, max_size=8)


@given(SHARES, st.floats(0, 64), MIXES)
def test_never_less_than_nothing_and_never_more_than_what_is_free_is_lost(shares: list[float], cpu: float, mix: list[TypicalPod]) -> None:
    """Whatever is free, and whoever asks."""
    assert 0 <= free(shares, cpu, mix) <= sum(shares) + 1e-9


@given(st.permutations([1.0, 0.9, 0.5, 0.3, 0.1, 0.0]), st.floats(0, 64), MIXES)
def test_neither_the_order_of_devices_nor_that_of_pods_matters(shares: list[float], cpu: float, mix: list[TypicalPod]) -> None:
    """It is a sum."""
    again = mix[::-1]
    assert free(shares, cpu, mix) == pytest.approx(free(sorted(shares), cpu, again))


@given(SHARES, MIXES)
def test_a_free_device_more_adds_nothing_where_all_ask_for_whole_ones_and_fit(shares: list[float], mix: list[TypicalPod]) -> None:
    """Whoever finds place already can use that one as well."""
    ones = [TypicalPod(Want(cpu_cores=each.want.cpu_cores + row, devices=1, compute=1.0), each.popularity) for row, each in enumerate(mix)]
    before = free([*shares, 1.0], 64, ones)
    assert free([*shares, 1.0, 1.0], 64, ones) == pytest.approx(before)
