"""The cluster once pods have left and others have come, as plans that make room ask about it."""

from __future__ import annotations

import math

from rebalancer.plan.room import without
from rebalancer.state.cluster import ClusterState
from tests.support.builder import cluster, node, pod
from tests.support.gpu_use import Used, measured, taken, used
from tests.support.gpus import gpu, part, replica

GIB = 2.0**30


def shared(use: Used) -> ClusterState:
    """Two pods on one device of 40 GiB, each measured to hold ten."""
    pods = [pod(name, on="n1", gpu=replica(2), holds={0: part(0.5, "10Gi")}) for name in ("a", "b")]
    state = cluster(nodes=[node("n1", gpus=[gpu("40Gi")])], pods=pods)
    return measured(state, {("n1", 0): use}, {"a": taken(memory="10Gi"), "b": taken(memory="10Gi")})


def memory_without(state: ClusterState, *pods: int) -> float:
    return float(without(state, pods).gpus.use.memory_bytes[0])


def test_a_pod_takes_along_what_it_was_measured_to_hold() -> None:
    """And the last one leaves nothing behind."""
    state = shared(used(memory="21Gi"))
    assert memory_without(state, 0) == 11 * GIB
    assert memory_without(state, 0, 1) == 0.0


def test_what_is_not_known_of_a_device_is_not_known_when_all_have_left() -> None:
    """Nobody on it is no measurement of it."""
    state = shared(used())
    assert math.isnan(memory_without(state, 0))
    assert math.isnan(memory_without(state, 0, 1))
