"""Moves that are tried and taken back leave no trace in any book."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.guard.gate import Candidate, book
from rebalancer.plan.booking import mark, rewind
from rebalancer.plan.method import Bench
from rebalancer.plan.planner import lay_bench
from rebalancer.plan.stock_scores import StockScores
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED
from tests.plan_scheduling.random_clusters import clusters

PROFILE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def laid(state: ClusterState) -> Bench:
    policy = RebalancePolicy()
    return lay_bench(state=state, findings=detect(state, policy.spec), policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT)


def seen(bench: Bench, pods: list[int]) -> list[object]:
    """What each pod would meet now; asking lets every count catch up with the bookings."""
    scores = StockScores(bench.scene.state, bench.placements)
    found: list[object] = [
        bench.loads.usage.tolist(),
        bench.loads.variance.tolist(),
        bench.placements.pod_count.tolist(),
        bench.scene.booked,
    ]
    for pod in pods:
        allowed = bench.feasibility.allowed(pod)
        found.append((allowed.tolist(), scores.total(pod, allowed).tolist() if allowed.any() else None))
    return found


def taken(bench: Bench, moves: list[tuple[int, int]]) -> None:
    for pod, destination in moves:
        source = int(bench.scene.state.pods.node[pod])
        bench.loads.book(source=source, destination=destination, pod=pod)
        bench.placements.book(pod, destination)
        book(Candidate(pod, source), bench.scene)


@PROFILE
@given(clusters(), st.data())
def test_books_that_were_rewound_are_as_if_nothing_had_been_tried(state: ClusterState, data: st.DataObject) -> None:
    """Room, neighbours, scores, loads and budgets: all as on fresh books with the moves that stay, and after the next move too."""
    pods = np.flatnonzero(state.pods.node >= 0).tolist()
    places = st.integers(0, len(state.nodes.names) - 1)
    moves = [(pod, data.draw(places)) for pod in data.draw(st.permutations(pods))[:6]]
    kept, tried = moves[:2], moves[2:5]
    bench, fresh = laid(state), laid(state)
    taken(bench, kept)
    seen(bench, pods)
    before = mark(bench)
    taken(bench, tried)
    seen(bench, pods)
    rewind(bench, before)
    taken(fresh, kept)
    np.testing.assert_equal(seen(bench, pods), seen(fresh, pods))
    taken(bench, moves[5:])
    taken(fresh, moves[5:])
    np.testing.assert_equal(seen(bench, pods), seen(fresh, pods))
