"""A snapshot decides as the cluster did, under its own names or under others."""

from __future__ import annotations

from rebalancer.plan.model import Plan
from rebalancer.state.cluster import ClusterState
from rebalancer.state.scheduling import Constraints, SpreadConstraint
from rebalancer.state.snapshot import anonymize, dump_snapshot, load_snapshot
from tests.plan.deciding import planned
from tests.state.states import WEB
from tests.support.builder import cluster, node, pod


def _hot_cluster() -> ClusterState:
    """Two hot nodes, several equal destinations in two zones, pods that must be spread over them."""
    spread = Constraints(spread=(SpreadConstraint("topology.kubernetes.io/zone", 2, True, WEB),))
    hot = [node(f"secret-hot-{row}", cpu=8, zone=f"secret-zone-{row}") for row in range(2)]
    cool = [node(f"secret-cool-{row}", cpu=8, load={"cpu": 0.2, "memory": 0.2}, zone=f"secret-zone-{row % 2}") for row in range(6)]
    pods = [
        pod(
            f"secret-web-{row}-{number}",
            on=f"secret-hot-{row}",
            namespace="secret-ns",
            workload=f"secret-web-{number % 3}",
            labels={"app": "secret-web"},
            cpu=0.5,
            uses={"cpu": 1.2, "memory": 1e9},
            constraints=spread,
        )
        for row in range(2)
        for number in range(6)
    ]
    return cluster(nodes=[*hot, *cool], pods=pods)


def _shape(state: ClusterState, plan: Plan) -> list[tuple[int, int, int, float]]:
    """The moves by row numbers, which no renaming changes."""
    return [
        (
            state.pod_index[move.pod.uid],
            state.node_index[move.source],
            state.node_index[move.destination or ""],
            move.gain,
        )
        for move in plan.moves
    ]


def test_a_loaded_snapshot_gives_the_same_plan() -> None:
    """To the letter."""
    state = _hot_cluster()
    plan = planned(state)
    assert plan.moves
    assert planned(load_snapshot(dump_snapshot(state))) == plan


def test_an_anonymous_snapshot_gives_the_same_plan_under_other_names() -> None:
    """The same pods from the same nodes to the same nodes for the same gain."""
    state = _hot_cluster()
    hidden = load_snapshot(dump_snapshot(anonymize(state, salt="s")))
    assert _shape(hidden, planned(hidden)) == _shape(state, planned(state))
