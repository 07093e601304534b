"""What must hold on any cluster: agreement with the plain rules, scores in range, bookings that only take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.filter import all_filters
from rebalancer.plan.ledger import Placements
from rebalancer.plan.stock_scores import StockScores, sample_size
from rebalancer.state.cluster import ClusterState
from tests.plan_scheduling import reference, reference_scores
from tests.plan_scheduling.random_clusters import clusters
from tests.support.builder import cluster, node, pod


def _examples(number: int) -> settings:
    """No limits on time: a busy machine is no failure."""
    return settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _book_some(data: st.DataObject, state: ClusterState, placements: Placements) -> list[tuple[int, int]]:
    pods = data.draw(st.lists(st.integers(0, len(state.pods.names) - 1), unique=True, max_size=3))
    booked = [(row, data.draw(st.integers(0, len(state.nodes.names) - 1))) for row in pods]
    for row, destination in booked:
        placements.book(row, destination)
    return booked


@_examples(80)
@given(state=clusters(), data=st.data())
def test_allowed_agrees_with_the_plain_rules_under_any_bookings(state: ClusterState, data: st.DataObject) -> None:
    """Asked before and after bookings, for a leaving pod and for one that stays, on every node."""
    placements = Placements(state)
    feasibility = Feasibility(state, placements)
    pod_row = data.draw(st.integers(0, len(state.pods.names) - 1))
    leaving = data.draw(st.booleans())
    booked: list[tuple[int, int]] = []
    for _ in range(2):
        seen = reference.seen_pods(state, leaving=pod_row if leaving else None, booked=booked)
        expected = [reference.allowed(state, pod_row, row, seen) for row in range(len(state.nodes.names))]
        assert feasibility.allowed(pod_row, leaving=leaving).tolist() == expected
        if not booked:
            booked = _book_some(data, state, placements)


@_examples(40)
@given(state=clusters(), data=st.data())
def test_every_rejected_node_has_a_reason_and_is_tallied_once(state: ClusterState, data: st.DataObject) -> None:
    """`why_not` speaks exactly where `allowed` is false, and the tally sums up to the rejected nodes."""
    placements = Placements(state)
    _book_some(data, state, placements)
    feasibility = Feasibility(state, placements)
    for row in range(len(state.pods.names)):
        mask = feasibility.allowed(row)
        assert [not feasibility.why_not(row, column) for column in range(len(mask))] == mask.tolist()
        assert sum(feasibility.tally(row).values()) == int((~mask).sum())


@_examples(50)
@given(state=clusters(), data=st.data())
def test_d7_scores_of_every_plugin_stay_between_0_and_100(state: ClusterState, data: st.DataObject) -> None:
    """For every pod, any feasible set, any bookings; the total is finite where feasible and -inf elsewhere."""
    placements = Placements(state)
    _book_some(data, state, placements)
    width = len(state.nodes.names)
    tainted = np.array(data.draw(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=width, max_size=width)))
    feasible = np.array(data.draw(st.lists(st.booleans(), min_size=width, max_size=width)))
    stock = StockScores(state, placements, own_taints=tainted)
    for row in range(len(state.pods.names)):
        for score in stock.by_plugin(row, feasible).values():
            assert score.shape == (int(feasible.sum()),)
            assert bool(((score >= 0) & (score <= 100)).all())
        total = stock.total(row, feasible)
        assert np.isfinite(total).tolist() == feasible.tolist()
        best = stock.best(row, feasible)
        assert bool(feasible[best].all())
        assert (best.size > 0) == bool(feasible.any())


@_examples(60)
@given(state=clusters(), data=st.data())
def test_scores_that_count_pods_agree_with_the_plain_rules(state: ClusterState, data: st.DataObject) -> None:
    """Topology spread and inter-pod affinity, for a leaving pod, over any feasible set, under any bookings."""
    placements = Placements(state)
    pod_row = data.draw(st.integers(0, len(state.pods.names) - 1))
    booked = _book_some(data, state, placements)
    width = len(state.nodes.names)
    feasible = np.array(data.draw(st.lists(st.booleans(), min_size=width, max_size=width)))
    rows, seen = np.flatnonzero(feasible).tolist(), reference.seen_pods(state, leaving=pod_row, booked=booked)
    found = StockScores(state, placements).by_plugin(pod_row, feasible)
    assert found["InterPodAffinity"].tolist() == reference_scores.inter_pod_affinity(state, pod_row, rows, seen)
    assert found["PodTopologySpread"].tolist() == reference_scores.topology_spread(state, pod_row, rows, seen)


@_examples(40)
@given(state=clusters(), data=st.data())
def test_booking_never_gives_anything_back(state: ClusterState, data: st.DataObject) -> None:
    """Free amounts only fall, on the destination alone, and by what the replacement asks for."""
    placements = Placements(state)
    before, counts = placements.free.copy(), placements.pod_count.copy()
    booked = _book_some(data, state, placements)
    assert bool((placements.free <= before).all())
    taken = np.zeros_like(before)
    for row, destination in booked:
        taken[destination] += state.pods.incoming_request[row]
        counts[destination] += 1
    assert placements.free == pytest.approx(before - taken)
    assert placements.pod_count.tolist() == counts.tolist()


@_examples(30)
@given(state=clusters(), data=st.data())
def test_asking_changes_nothing(state: ClusterState, data: st.DataObject) -> None:
    """The order of questions and bookings does not matter: caches that caught up equal fresh ones."""
    warm, cold = Placements(state), Placements(state)
    asked, scores = Feasibility(state, warm), StockScores(state, warm)
    every = np.ones(len(state.nodes.names), dtype=np.bool_)
    for row in range(len(state.pods.names)):
        asked.allowed(row)
        scores.total(row, every)
    for row, destination in _book_some(data, state, warm):
        cold.book(row, destination)
    fresh, fresh_scores = Feasibility(state, cold), StockScores(state, cold)
    for row in range(len(state.pods.names)):
        assert asked.allowed(row).tolist() == fresh.allowed(row).tolist()
        assert scores.total(row, every).tolist() == fresh_scores.total(row, every).tolist()


@given(nodes=st.integers(0, 20_000))
def test_the_sample_is_never_larger_than_the_cluster(nodes: int) -> None:
    """And never below 100 nodes where there are 100."""
    assert min(nodes, 100) <= sample_size(nodes) <= nodes


def test_d2_each_booking_reduces_the_slot() -> None:
    """Ten candidates of 8 cores and 16 GiB, one free slot: after the first booking nobody fits."""
    state = cluster(
        nodes=[node("full", cpu=80, memory="160Gi"), node("slot", cpu=8, memory="16Gi")],
        pods=[pod(f"p{i}", on="full", cpu=8, memory="16Gi") for i in range(10)],
    )
    placements = Placements(state)
    feasibility = Feasibility(state, placements)
    assert feasibility.allowed(0).tolist() == [False, True]
    placements.book(0, 1)
    assert not any(feasibility.allowed(row).any() for row in range(1, 10))
    assert feasibility.why_not(1, 1) == "Insufficient cpu: needs 8.00, 0.00 free of 8.00"


def test_a_pod_is_booked_once_and_on_a_node() -> None:
    """A second booking, or one on a row that is no node, is a programming error."""
    state = cluster(nodes=[node("n1")], pods=[pod("p"), pod("q")])
    placements = Placements(state)
    placements.book(0, 0)
    with pytest.raises(ValueError, match="default/p is booked already"):
        placements.book(0, 0)
    with pytest.raises(ValueError, match="no such row"):
        placements.book(1, 7)


def test_the_state_and_the_free_amounts_cannot_be_changed_from_outside() -> None:
    """`free` is a live view that refuses writes."""
    placements = Placements(cluster(nodes=[node("n1")], pods=[pod("p")]))
    with pytest.raises(ValueError, match="read-only"):
        placements.free[0, 0] = 99.0


def test_filters_have_names_orders_and_sentences_of_their_own() -> None:
    """The list is closed and each says what it refuses."""
    filters = all_filters()
    assert len({each.name for each in filters}) == len({each.order for each in filters}) == len(filters)
    assert all(each.describe.endswith(".") for each in filters)
