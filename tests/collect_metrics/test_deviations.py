"""Standard deviations of pods: asked for only when the policy keeps room for swings, and believed only of pods that were there."""

from __future__ import annotations

import numpy as np

from rebalancer.collect.deviations import deviation_columns, with_typical
from rebalancer.collect.samples import SignalSamples
from rebalancer.collect.signal_plan import describe_queries
from rebalancer.policy.hotness import Risk
from rebalancer.policy.model import Spec
from rebalancer.state.tables import Signal

CPU = Signal("cpu", "cores", "cpu")


def known(**deviation: float) -> SignalSamples:
    """``pod__node=value``."""
    found = {("shop", key.partition("__")[0], key.partition("__")[2]): value for key, value in deviation.items()}
    return SignalSamples(signal=CPU, node_usage={}, node_age_s={}, node_unknown={}, pod_usage={}, pod_deviation=found)


def test_nothing_is_asked_without_room_for_swings() -> None:
    """The default policy's queries are those it always had."""
    assert not [query for query in describe_queries(Spec()) if "stddev" in query.text]


def test_each_way_to_measure_pods_is_asked_for_its_deviation() -> None:
    """Over the lookback, from usages over the window."""
    texts = [query.text for query in describe_queries(Spec(risk=Risk(deviations=1.0))) if "deviation of cpu of pods" in query.name]
    assert len(texts) == 2
    assert all(text.startswith("stddev_over_time((") and text.endswith(")[3600s:300s])") and "[300s]" in text for text in texts)


def test_a_deviation_belongs_to_the_pod_on_the_node_where_it_was_measured() -> None:
    """What a pod did on the node that it left is not what it does here; where no node is said, the name is enough."""
    rows, node = {("shop", "a"): 0, ("shop", "b"): 1, ("shop", "c"): 2}, np.array([0, 1, 1])
    found = deviation_columns(rows, node, nodes={"x": 0, "y": 1}, signals=[known(a__x=0.1, b__x=0.2, c__=0.3, gone__y=0.4)])
    np.testing.assert_array_equal(found[:, 0], [0.1, np.nan, 0.3])


def test_pods_that_are_not_known_long_enough_swing_like_their_workload_else_like_the_median() -> None:
    """In proportion to what they use: 10 % and 30 % of its siblings' usage are 20 %; the median of all is 30 %."""
    usage = np.array([[1.0], [2.0], [4.0], [1.0], [2.0], [np.nan]])
    deviation = np.array([[0.1], [0.6], [0.01], [0.9], [np.nan], [np.nan]])
    workload = np.array([0, 0, 0, 1, -1, 0])
    long_enough = np.array([True, True, False, True, True, True])
    filled = with_typical(deviation, usage=usage, workload=workload, long_enough=long_enough)
    np.testing.assert_allclose(filled[:, 0], [0.1, 0.6, 0.8, 0.9, 0.6, np.nan])


def test_where_no_pod_is_known_nothing_is_made_up() -> None:
    """Unknown is not zero, and not a guess without a ground either."""
    usage, workload = np.ones((2, 1)), np.zeros(2, dtype=np.int64)
    for deviation, long_enough in ((np.nan, True), (0.2, False)):
        given = np.full((2, 1), deviation)
        assert np.isnan(with_typical(given, usage=usage, workload=workload, long_enough=np.full(2, long_enough))).all()
