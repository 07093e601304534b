"""Hot, cold, normal, unknown: by load, by confirmation windows, and never by a number that is not there."""

from __future__ import annotations

import numpy as np
import pytest

from rebalancer.detect.classify import detect
from rebalancer.detect.findings import NodeClass, Quadrant
from rebalancer.errors import PolicyError
from rebalancer.policy.model import Pool, Spec, Threshold
from rebalancer.policy.quantities import LabelSelector
from tests.support.builder import cluster, node, pod

SPEC = Spec()


def class_of(findings, row: int) -> str:
    return NodeClass(int(findings.node_class[row])).word


def test_a_node_over_high_in_enough_windows_is_hot_and_says_by_how_much() -> None:
    """Load 91 % over high 70 % in all ten windows makes a node hot."""
    findings = detect(cluster(nodes=[node("a", load={"cpu": 0.91})]), SPEC)
    assert class_of(findings, 0) == "hot"
    assert findings.reasons[0] == "cpu load 91 % > high 70 % in 10 of 10 windows"


def test_m7_a_spike_that_falls_back_at_once_makes_no_node_hot() -> None:
    """Over high now, but in too few windows: not hot, and the sentence says how many are needed."""
    history = [0.4] * 8 + [0.95, 0.95]
    findings = detect(cluster(nodes=[node("a", load={"cpu": 0.95}, history={"cpu": history})]), SPEC)
    assert class_of(findings, 0) == "normal"
    assert findings.reasons[0] == "cpu load 95 % > high 70 %, but only in 2 of 10 windows; 8 are needed"


def test_t2_alternating_windows_are_not_hot_whatever_the_step() -> None:
    """Over, fine, over, fine: five of ten windows do not reach eight, at any step."""
    history = [0.95, 0.4] * 4 + [0.4, 0.95]
    for step_s in (10.0, 61.0, 300.0):
        state = cluster(nodes=[node("a", load={"cpu": 0.95}, history={"cpu": history})], step_s=step_s)
        assert class_of(detect(state, SPEC), 0) == "normal"


def test_an_unknown_window_does_not_count_as_over() -> None:
    """Seven known windows over high and three unknown ones are seven, not ten."""
    history = [np.nan] * 3 + [0.95] * 7
    findings = detect(cluster(nodes=[node("a", load={"cpu": 0.95}, history={"cpu": history})]), SPEC)
    assert int(findings.over[0, 0]) == 7
    assert class_of(findings, 0) == "normal"


def test_m2_the_ledger_cools_a_node_whose_mean_still_lags_after_an_eviction() -> None:
    """Measured 85 %, of which 20 % belong to a pod that has left: the load is 65 %, and the node is not hot."""
    findings = detect(cluster(nodes=[node("a", cpu=10, load={"cpu": 0.85}, departed={"cpu": 2.0}, history={"cpu": [0.85] * 10})]), SPEC)
    assert findings.load[0, 0] == pytest.approx(0.65)
    assert class_of(findings, 0) == "normal"


def test_m13_hot_is_any_signal_and_cold_is_all_of_them() -> None:
    """Low CPU with high memory is hot; low CPU with normal memory is not cold."""
    state = cluster(nodes=[node("a", load={"cpu": 0.1, "memory": 0.95}), node("b", load={"cpu": 0.1, "memory": 0.6}), node("c")])
    findings = detect(state, SPEC)
    assert [class_of(findings, row) for row in range(3)] == ["hot", "normal", "cold"]


@pytest.mark.parametrize("thresholds", ["absolute", "deviation"])
def test_m8_a_nan_node_changes_nothing_for_the_others(thresholds: str) -> None:
    """With one node unknown, class, mean and marks of the others equal those of a cluster without it."""
    marks = {"cpu": Threshold(low=10, target=10, high=20)} if thresholds == "deviation" else {"cpu": Threshold(low=40, target=55, high=70)}
    spec = Spec(pools=(Pool(name="default", thresholds=thresholds, signals=marks),))
    loads = [0.9, 0.2, 0.3, 0.4, 0.5, 0.35, 0.25, 0.45, 0.3]
    known = [node(f"n{i}", load={"cpu": load}) for i, load in enumerate(loads)]
    without = detect(cluster(nodes=known), spec)
    with_nan = detect(cluster(nodes=[*known, node("blind", unknown={"cpu": "no sample"})]), spec)
    assert class_of(with_nan, 9) == "unknown"
    np.testing.assert_array_equal(with_nan.node_class[:9], without.node_class)
    np.testing.assert_array_equal(with_nan.high[:9], without.high)
    np.testing.assert_array_equal(with_nan.pool_mean, without.pool_mean)


def test_m1_a_stale_node_is_unknown_and_named_with_the_reason() -> None:
    """The reason that the metrics source gave is the sentence of the node."""
    findings = detect(cluster(nodes=[node("a", unknown={"cpu": "last sample is 4m10s old, limit 3m"})]), SPEC)
    assert class_of(findings, 0) == "unknown"
    assert findings.reasons[0] == "cpu load unknown: last sample is 4m10s old, limit 3m"


def test_a_node_that_is_not_ready_is_unknown_whatever_its_last_numbers_were() -> None:
    """The kubelet does not report, so nothing is known."""
    findings = detect(cluster(nodes=[node("a", ready=False, load={"cpu": 0.95})]), SPEC)
    assert class_of(findings, 0) == "unknown"
    assert findings.reasons[0] == "the node is not Ready"


def test_m15_load_is_on_allocatable_and_the_mean_is_of_loads() -> None:
    """Usage 6 of allocatable 8 is 75 %; the pool's mean is the mean of such loads."""
    findings = detect(cluster(nodes=[node("a", cpu=8, usage={"cpu": 6}), node("b", cpu=16, usage={"cpu": 4})]), SPEC)
    assert findings.load[:, 0].tolist() == [0.75, 0.25]
    assert findings.pool_mean[0, 0] == pytest.approx(0.5)


def test_deviation_marks_stand_around_the_mean() -> None:
    """Mean 50 %, high +20 points: a node at 75 % is hot, one at 65 % is not."""
    spec = Spec(pools=(Pool(name="default", thresholds="deviation", signals={"cpu": Threshold(low=10, target=5, high=20)}),))
    findings = detect(cluster(nodes=[node("a", load={"cpu": 0.75}), node("b", load={"cpu": 0.65}), node("c", load={"cpu": 0.1})]), spec)
    assert findings.pool_mean[0, 0] == pytest.approx(0.5)
    assert [class_of(findings, row) for row in range(3)] == ["hot", "normal", "cold"]


def test_m14_packing_and_load_stand_side_by_side_and_make_the_quadrant() -> None:
    """Requests 33 %, usage 94 %: low-packing/high-load, the dangerous quadrant."""
    state = cluster(
        nodes=[node("a", cpu=9, load={"cpu": 0.94}), node("b", cpu=9)],
        pods=[pod("p", on="a", cpu=3, uses={"cpu": 8}), pod("q", on="b", cpu=8, uses={"cpu": 1})],
    )
    findings = detect(state, SPEC)
    assert findings.packing[0, 0] == pytest.approx(1 / 3)
    assert findings.quadrant == (Quadrant.LOW_PACKING_HIGH_LOAD, Quadrant.HIGH_PACKING_LOW_LOAD)


def test_two_pools_that_claim_one_node_are_an_error_that_names_all_three() -> None:
    """A node is in one pool."""
    marks = {"cpu": Threshold(low=40, target=55, high=70)}
    spec = Spec(
        pools=(
            Pool(name="big", node_selector=LabelSelector(match_labels={"size": "big"}), signals=marks),
            Pool(name="fast", node_selector=LabelSelector(match_labels={"disk": "fast"}), signals=marks),
        )
    )
    with pytest.raises(PolicyError, match="pools big and fast both claim node a"):
        detect(cluster(nodes=[node("a", labels={"size": "big", "disk": "fast"})]), spec)


def test_a_node_that_no_pool_claims_is_unknown_and_says_so() -> None:
    """Without a default pool, other nodes are nobody's."""
    marks = {"cpu": Threshold(low=40, target=55, high=70)}
    spec = Spec(pools=(Pool(name="big", node_selector=LabelSelector(match_labels={"size": "big"}), signals=marks),))
    findings = detect(cluster(nodes=[node("a", load={"cpu": 0.9})]), spec)
    assert class_of(findings, 0) == "unknown"
    assert findings.reasons[0] == "no pool of the policy claims it"
