"""Room for swings: a node is judged by its load and by how far its pods swing around it, and pods take their swings along."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.detect.findings import NodeClass
from rebalancer.plan.heat import LoadBook
from rebalancer.policy.hotness import Risk
from rebalancer.policy.model import Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_deviation
from tests.plan.deciding import moved, planned, why
from tests.support.builder import PodSpec, cluster, node, pod

GIB = 2.0**30
CAREFUL = Spec(risk=Risk(deviations=1.0))


def swinging(name: str, *, on: str, cpu: float, by: float) -> PodSpec:
    """A pod of a 10-core node that uses ``cpu`` cores, give or take ``by``."""
    return pod(name, on=on, workload=name, cpu=0.5, uses={"cpu": cpu, "memory": GIB}, deviation={"cpu": by, "memory": 0.0})


def two_nodes(*pods: PodSpec, near: float = 0.66, cool: float = 0.2) -> ClusterState:
    return cluster(
        nodes=[node("near", cpu=10, load={"cpu": near, "memory": 0.2}), node("cool", cpu=10, load={"cpu": cool, "memory": 0.2})],
        pods=pods,
    )


def test_a_node_that_may_swing_over_high_is_hot() -> None:
    """66 %, and pods that swing by 3 and by 4 % of the node: 5 % together, so 71 % is over 70 %."""
    state = two_nodes(swinging("a", on="near", cpu=1.5, by=0.3), swinging("b", on="near", cpu=1.6, by=0.4))
    np.testing.assert_allclose(node_deviation(state)[:, 0], [0.5, 0.0])
    assert detect(state, Spec()).node_class[0] == NodeClass.NORMAL
    found = detect(state, CAREFUL)
    assert found.node_class[0] == NodeClass.HOT
    assert found.reasons[0] == "cpu load 66 % and 5 % for swings > high 70 % in 10 of 10 windows"
    assert found.load[0, 0] == pytest.approx(0.66)


def test_the_calm_node_beside_it_is_not_hot() -> None:
    """The same load of pods that do not swing, and of pods of which nothing is known."""
    calm = two_nodes(swinging("a", on="near", cpu=1.5, by=0.0), swinging("b", on="near", cpu=1.6, by=0.0))
    unknown = two_nodes(pod("a", on="near", uses={"cpu": 1.5, "memory": GIB}))
    for state in (calm, unknown):
        assert detect(state, CAREFUL).node_class[0] == NodeClass.NORMAL


def test_the_windows_before_are_judged_with_the_same_room() -> None:
    """67 % in seven of ten windows with 5 % for swings is over 70 % in seven, and eight are needed."""
    pods = [swinging("a", on="near", cpu=1.5, by=0.5)]
    nodes = [node("near", cpu=10, load={"cpu": 0.67, "memory": 0.2}, history={"cpu": [0.6] * 3 + [0.67] * 7}), node("cool", cpu=10)]
    found = detect(cluster(nodes=nodes, pods=pods), CAREFUL)
    assert int(found.over[0, 0]) == 7
    assert found.node_class[0] == NodeClass.NORMAL


def test_of_two_pods_alike_the_one_that_swings_cures_the_node() -> None:
    """Both use 12 % of the node; without the calm one its swings alone would still be too much."""
    state = two_nodes(swinging("calm", on="near", cpu=1.2, by=0.0), swinging("wild", on="near", cpu=1.2, by=0.9))
    plan = planned(state, CAREFUL)
    assert moved(plan) == ["wild"]
    assert "66 % and 9 % for swings > high 70 %" in plan.moves[0].reason
    assert plan.summary.hot_nodes_after == 0


def test_a_pod_brings_its_swings_to_the_destination() -> None:
    """50 % + 6 % and 10 % for swings is more than the 62.5 % that a destination may reach; calm it would be welcome."""
    plan = planned(two_nodes(swinging("wild", on="near", cpu=0.6, by=1.0), near=0.66, cool=0.5), CAREFUL)
    assert moved(plan) == []
    assert "cpu load with room for swings 50 % -> 66 %" in why(plan, "wild")
    calm = planned(two_nodes(swinging("calm", on="near", cpu=0.6, by=0.0), near=0.72, cool=0.5), CAREFUL)
    assert moved(calm) == ["calm"]


@given(
    uses=st.lists(st.floats(min_value=0.0, max_value=2.0), min_size=1, max_size=6),
    by=st.lists(st.floats(min_value=0.0, max_value=1.0), min_size=6, max_size=6),
    deviations=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
def test_a_move_and_the_move_back_leave_the_book_as_it_was(uses: list[float], by: list[float], deviations: float) -> None:
    """And in between the destination carries exactly what the source lost."""
    pods = [swinging(f"p{i}", on="near", cpu=cpu, by=by[i]) for i, cpu in enumerate(uses)]
    state = two_nodes(*pods, near=0.99)
    book = LoadBook(state, detect(state, Spec(risk=Risk(deviations=deviations))))
    before = book.reach().copy()
    whole = book.usage.sum(axis=0)
    for row in range(len(pods)):
        expected = book.reach_without(0, np.array([row]))[0], book.reach_with(np.array([1]), row)[0]
        book.book(source=0, destination=1, pod=row)
        np.testing.assert_allclose(book.reach()[0], expected[0], atol=1e-7)
        np.testing.assert_allclose(book.reach()[1], expected[1], atol=1e-7)
        np.testing.assert_allclose(book.usage.sum(axis=0), whole)
    for row in range(len(pods)):
        book.book(source=1, destination=0, pod=row)
    np.testing.assert_allclose(book.reach(), before, atol=1e-7)


@given(by=st.floats(min_value=0.0, max_value=3.0), near=st.floats(min_value=0.5, max_value=0.99))
def test_room_for_swings_never_makes_a_node_cooler(by: float, near: float) -> None:
    """Whatever is hot without it is hot with it."""
    state = two_nodes(swinging("a", on="near", cpu=1.0, by=by), near=near)
    plain, careful = detect(state, Spec()), detect(state, CAREFUL)
    assert (careful.reach >= plain.load - 1e-12).all()
    assert not ((plain.node_class == NodeClass.HOT) & (careful.node_class != NodeClass.HOT)).any()
