"""Movement for its own sake: a balanced cluster breathes, and nobody is moved for that, however long one looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rebalancer.policy.model import Mode, Pool, RebalancePolicy, Spec, Threshold
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.memory import Memory
from rebalancer.state.cluster import ClusterState
from tests.support.builder import NOW, WINDOWS, cluster, node, pod

DAY_S = 86_400
INTERVAL_S = 120
STEP_S = 60
NODES = 10
CORES = 8
NOISE = 0.03
ABSOLUTE = {"cpu": Threshold(low=40, target=55, high=70)}
DEVIATION = {"cpu": Threshold(low=10, target=5, high=10)}


def day(*, mean: float, pods_a_node: int, seed: int) -> Iterator[ClusterState]:
    """A look at every interval of a day: each window of each node is within three points of ``mean``, and the pods share it evenly."""
    names = [f"n{row}" for row in range(NODES)]
    pods = [
        pod(f"{name}-{k}", on=name, workload=f"{name}-{k}", cpu=0.1, uses={"cpu": 0, "memory": 0})
        for name in names
        for k in range(pods_a_node)
    ]
    still = cluster(nodes=[node(name, load={"cpu": mean, "memory": 0.3}) for name in names], pods=pods)
    minutes = DAY_S // STEP_S + WINDOWS
    loads = mean + np.random.default_rng(seed).uniform(-NOISE, NOISE, (NODES, minutes))
    for minute in range(WINDOWS - 1, minutes, INTERVAL_S // STEP_S):
        yield _at(still, loads[:, minute - WINDOWS + 1 : minute + 1], at=NOW + minute * STEP_S, pods_a_node=pods_a_node)


def _at(still: ClusterState, windows: NDArray[np.float64], *, at: float, pods_a_node: int) -> ClusterState:
    """``still`` with these loads of CPU, (nodes, windows)."""
    usage, history, used = still.nodes.usage.copy(), still.nodes.history.copy(), still.pods.usage.copy()
    usage[:, 0] = windows[:, -1] * CORES
    history[:, 0] = windows
    used[:, 0] = np.repeat(usage[:, 0] / pods_a_node, pods_a_node)
    return replace(
        still, at=at, nodes=replace(still.nodes, usage=usage, history=history), pods=replace(still.pods, usage=used, measured=used)
    )


@pytest.mark.parametrize(
    ("thresholds", "marks", "mean", "pods_a_node"),
    [("absolute", ABSOLUTE, 0.69, 2), ("absolute", ABSOLUTE, 0.69, 30), ("deviation", DEVIATION, 0.5, 30)],
    ids=["just under high", "just under high with many pods", "around the mean"],
)
def test_t4_a_balanced_cluster_that_breathes_is_left_alone_for_a_day(
    thresholds: str, marks: dict[str, Threshold], mean: float, pods_a_node: int
) -> None:
    """Noise of three points, a look every two minutes: no move in 720 cycles, even where single windows are over the mark."""
    policy = RebalancePolicy(spec=Spec(pools=(Pool(name="default", thresholds=thresholds, signals=marks),)))
    orders, memory = Orders(policy=policy, mode=Mode.EVICT, mode_source="a test"), Memory()
    looks, moves, over = 0, 0, 0
    for state in day(mean=mean, pods_a_node=pods_a_node, seed=11):
        verdict = consider(state, memory, orders)
        memory = verdict.memory
        looks += 1
        moves += len(verdict.decision.plan.moves)
        over += int((verdict.findings.load > verdict.findings.high).any())
    assert looks == DAY_S // INTERVAL_S + 1
    assert moves == 0
    assert (over > 0) is (mean == 0.69), "the noise is meant to reach the mark in one of the scenes"
