"""A move of a pod with GPUs says which it leaves, how busy and full they are, and what of that is the pod's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalancer.plan.gpu_moves import moved_devices
from rebalancer.plan.model import Move, MoveSignal, PodRef
from rebalancer.report.writers.move_devices import move_devices, moved_by_gpu
from rebalancer.state.cluster import ClusterState
from tests.support.builder import cluster, node, pod
from tests.support.gpu_use import measured, taken, used
from tests.support.gpus import gpu, memory_of, part, whole

GIB = 2.0**30


def world() -> ClusterState:
    state = cluster(
        nodes=[node("n", gpus=[gpu("24Gi", model="NVIDIA-L4"), gpu("80Gi", model="")])],
        pods=[
            pod("small", on="n", gpu=memory_of("2Gi"), holds={0: part(memory="2Gi")}),
            pod("other", on="n", gpu=memory_of("8Gi"), holds={0: part(memory="8Gi")}),
            pod("alone", on="n", gpu=whole(), holds={1: 1.0}),
            pod("somewhere", on="n", gpu=whole()),
            pod("web", on="n"),
        ],
    )
    devices = {("n", 0): used(busy=0.9, memory="20Gi", total="24Gi"), ("n", 1): used(memory="3Gi", total="80Gi")}
    return measured(state, devices, {"small": taken(busy=0.25, memory="11Gi", estimated=True)})


def words(name: str, state: ClusterState | None = None) -> str:
    state = state or world()
    row = state.pods.names.index(name)
    move = Move(
        pod=PodRef(namespace="default", name=name, uid=name),
        workload=None,
        tenant=None,
        source="n",
        destination="m",
        signals={"gpu": MoveSignal(source_before=0.9, source_after=0.6, destination_before=0.1, destination_after=0.4)},
        gain=0.1,
        reason="gpu load 90 % > high 85 %",
        devices=moved_devices(state, row),
    )
    return move_devices(move)


def test_a_shared_device_is_told_with_the_part_of_the_pod() -> None:
    """Use of the device, of the pod, and what it asked for; an estimate is called one."""
    told = "of GPU 0 (L4, 90 % busy, 20.0 GiB of 24.0 GiB used, 1 other pod) it has about 25 % and about 11.0 GiB, asked for 2.0 GiB"
    assert words("small") == told


def test_a_device_of_its_own_is_told_once_and_unknown_stays_unknown() -> None:
    """Neither the busy share nor the model is known."""
    assert words("alone") == "it has GPU 1 (model unknown, ? busy, 3.0 GiB of 80.0 GiB used) to itself"


@pytest.mark.parametrize("name", ["somewhere", "web"])
def test_nothing_is_said_of_devices_that_nobody_names(name: str) -> None:
    """For a pod without GPUs, and for one on nobody knows which."""
    assert words(name) == ""


def test_without_exporters_what_was_asked_for_is_still_told() -> None:
    """Measured numbers are null."""
    state = world()
    bare = replace(state, gpus=replace(state.gpus, use=type(state.gpus.use)(), held_use=type(state.gpus.held_use)()))
    (one,) = moved_devices(bare, bare.pods.names.index("small"))
    assert (one.busy, one.memory_used_bytes, one.pod_memory_bytes, one.pod_asked_bytes) == (None, None, None, 2 * GIB)


@pytest.mark.parametrize(("reason", "by_gpu"), [("gpu load 90 %", True), ("gpu_memory load 99 %", True), ("cpu load 80 %", False)])
def test_devices_are_told_where_a_signal_of_gpus_is_the_reason(reason: str, by_gpu: bool) -> None:
    """Elsewhere only in the wide table."""
    move = Move(
        pod=PodRef(namespace="default", name="p", uid="p"),
        workload=None,
        tenant=None,
        source="n",
        destination="m",
        signals={},
        gain=0.1,
        reason=reason,
    )
    assert moved_by_gpu(move) is by_gpu
