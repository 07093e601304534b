"""Our own score: swings, pods just bound, GPUs, and what is unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rebalancer.steer.own_score import Marks, bound_load, own_scores, reach, worth

MARKS = Marks(target=np.array([0.5, 0.6, 0.5, 0.5]), high=np.array([0.7, 0.8, 0.9, 0.9]), deviations=2.0)
PLAIN = np.array([True, True, False, False])
GPU = np.array([True, True, True, True])
NOTHING = np.full(4, np.nan)


def reached(load: list[list[float]], *, deviation: float = math.nan, ask: np.ndarray = NOTHING, capacity: float = math.nan) -> np.ndarray:
    loads = np.array(load, dtype=np.float64)
    other = {"deviation": np.full(loads.shape, deviation), "bound": np.zeros(loads.shape), "capacity": np.full(loads.shape, capacity)}
    return reach(load=loads, ask=ask, deviations=MARKS.deviations, **other)


def scores(loads: np.ndarray, *, judged: np.ndarray = PLAIN) -> list[int]:
    return own_scores(worth(loads, MARKS, judged=judged)).tolist()


def test_worth_falls_to_half_at_the_target_and_to_nothing_at_high() -> None:
    """Straight lines in between."""
    loads = reached([[0, 0, 0, 0], [0.25, 0, 0, 0], [0.5, 0, 0, 0], [0.6, 0, 0, 0], [0.7, 0, 0, 0], [3, 0, 0, 0]])
    assert scores(loads) == [10, 8, 5, 3, 0, 0]


def test_the_worst_signal_decides() -> None:
    """A node without memory is no good place, however idle its CPU."""
    assert scores(reached([[0.0, 0.9, 0, 0], [0.4, 0.4, 0, 0]])) == [0, 6]


def test_a_node_that_swings_scores_lower_and_an_unknown_swing_adds_nothing() -> None:
    """Two deviations of 0.1 are 0.2 of the node."""
    assert scores(reached([[0.42, 0, 0, 0]], deviation=0.1)) == [2]
    assert scores(reached([[0.42, 0, 0, 0]], deviation=math.nan)) == [6]


def test_what_the_pod_asks_for_weighs_more_on_a_small_node() -> None:
    """4 of 8 cores; where the capacity is unknown, nothing is added."""
    ask = np.array([4.0, math.nan, math.nan, math.nan])
    assert reached([[0.1] * 4], ask=ask, capacity=8.0)[0].tolist() == [0.6, 0.1, 0.1, 0.1]
    assert reached([[0.1] * 4], ask=ask)[0, 0] == 0.1


def test_gpus_count_only_for_pods_that_ask_for_one() -> None:
    """Nor does it matter then that nobody knows their load."""
    loads = reached([[0.0, 0.0, 0.95, 0.1], [0.0, 0.0, math.nan, math.nan], [0.0, 0.0, 0.0, 0.0]])
    assert scores(loads) == [10, 10, 10]
    assert scores(loads, judged=GPU) == [0, 5, 10]


def test_an_unknown_node_scores_as_the_median_of_the_others() -> None:
    """Neither sought nor avoided; half, where nobody knows anything."""
    assert own_scores(np.array([0.1, 0.2, 0.9, math.nan])).tolist() == [1, 2, 9, 2]
    assert own_scores(np.array([math.nan, math.nan])).tolist() == [5, 5]
    assert own_scores(np.array([])).tolist() == []


def bound(*, bound_at: float, use: float = 2.0, capacity: float = 8.0) -> float:
    found = bound_load(
        node=np.array([1, -1]),
        bound_at=np.array([bound_at, 0.0]),
        use=np.array([[use], [5.0]]),
        capacity=np.array([[8.0], [capacity]]),
        measured_at=np.array([1000.0, 1000.0]),
        window_s=300.0,
    )
    assert found[0, 0] == 0.0
    return float(found[1, 0])


@pytest.mark.parametrize(("bound_at", "share"), [(1100.0, 0.25), (1000.0, 0.25), (850.0, 0.125), (700.0, 0.0), (10.0, 0.0)])
def test_a_pod_just_bound_is_anticipated_as_far_as_the_mean_lacks_it(bound_at: float, share: float) -> None:
    """All of it when bound after the window, half of it when in the middle, nothing when before."""
    assert bound(bound_at=bound_at) == pytest.approx(share)


def test_a_pod_of_unknown_use_makes_its_node_unknown_until_it_is_measured() -> None:
    """Unknown is not zero."""
    assert math.isnan(bound(bound_at=1100.0, use=math.nan))
    assert bound(bound_at=10.0, use=math.nan) == 0.0
    assert math.isnan(bound(bound_at=1100.0, capacity=0.0))


ANY = st.floats(allow_nan=True, allow_infinity=True)


@given(
    arrays(np.float64, (5, 4), elements=ANY), arrays(np.float64, 4, elements=ANY), arrays(np.float64, 4, elements=ANY), st.integers(1, 100)
)
def test_scores_are_in_range_for_every_input(loads: np.ndarray, target: np.ndarray, high: np.ndarray, maximum: int) -> None:
    """0 to the maximum, whatever is measured and whatever the marks are."""
    found = own_scores(worth(loads, Marks(target=target, high=high), judged=GPU), maximum=maximum)
    assert ((found >= 0) & (found <= maximum)).all()


@given(st.floats(0, 2), st.floats(0, 2))
def test_a_more_loaded_node_never_scores_higher(one: float, other: float) -> None:
    """Monotone."""
    low, high = scores(reached([[min(one, other), 0, 0, 0], [max(one, other), 0, 0, 0]]))
    assert low >= high
