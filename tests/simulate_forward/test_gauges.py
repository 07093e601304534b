"""What the gauges remember: means over windows, late, unknown where a sample is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.simulate.forward.gauges import Gauges, Lens, Timing

NONE = np.empty(0, dtype=np.int64)


def filled(values: list[float], *, delay_s: float = 0.0, lens: Lens | None = None, pods: int = 0) -> Gauges:
    """One node and one signal, a sample every 10 s from 0 on."""
    gauges = Gauges(start=0.0, timing=Timing(10.0, delay_s), lens=lens or Lens(30.0, "mean", 2, 10.0), nodes=1, signals=1, pods=pods)
    for value in values:
        gauges.record(np.array([[value]]), rows=NONE, pods=np.empty((0, 1)), ran=np.empty(0, dtype=bool))
    return gauges


def test_a_window_is_the_mean_of_its_samples() -> None:
    """Three samples of ten seconds in thirty; the second newest window lies one step back."""
    assert filled([1, 2, 3, 4]).node_windows(40.0)[0, 0].tolist() == [2.0, 3.0]


def test_samples_that_have_not_arrived_are_not_seen() -> None:
    """With a delay of 15 s, what was sampled at 40 s is seen at 55 s and not before."""
    gauges = filled([1, 2, 3, 4, 5, 6], delay_s=15.0)
    assert gauges.node_windows(54.9)[0, 0, -1] == 2.0
    assert gauges.node_windows(55.0)[0, 0, -1] == 3.0
    assert gauges.node_age_s(55.0)[0] == 15.0


def test_a_window_that_is_not_whole_is_unknown() -> None:
    """Two samples say nothing about a window of three, and a missing one spoils three windows."""
    assert np.isnan(filled([1, 2]).node_windows(20.0)[0, 0, -1])
    gauges = filled([1, 2, math.nan, 4, 5], lens=Lens(30.0, "mean", 3, 10.0))
    assert np.isnan(gauges.node_windows(50.0)[0, 0]).all()
    gauges = filled([1, 2, math.nan, 4, 5, 6], lens=Lens(30.0, "mean", 3, 10.0))
    assert np.isnan(gauges.node_windows(60.0)[0, 0]).tolist() == [True, True, False]


@pytest.mark.parametrize(("statistic", "expected"), [("mean", 2.0), ("max", 3.0), ("p95", 2.9)])
def test_the_statistic_is_the_one_that_was_asked_for(statistic: str, expected: float) -> None:
    """As the policy's metrics.statistic says."""
    assert filled([9, 1, 2, 3], lens=Lens(30.0, statistic, 1, 10.0)).node_windows(40.0)[0, 0, -1] == pytest.approx(expected)


def test_the_deviation_of_a_pod_is_that_of_the_windows_in_the_time_asked_for() -> None:
    """Windows of 20 s every 20 s over the last minute: 1, 3, 5, 7 deviate by the root of 5; one window says nothing."""
    gauges = filled([], pods=2, lens=Lens(20.0, "mean", 1, 10.0, 60.0, 20.0))
    for number, value in enumerate([9.0, 9.0, 1.0, 1.0, 3.0, 3.0, 5.0, 5.0, 7.0, 7.0]):
        rows = np.array([0, 1]) if number >= 8 else np.array([0])
        gauges.record(np.array([[0.0]]), rows=rows, pods=np.full((len(rows), 1), value), ran=np.ones(len(rows), dtype=bool))
    assert gauges.pod_deviation()[0, 0] == pytest.approx(5**0.5)
    assert np.isnan(gauges.pod_deviation()[1, 0])
    assert gauges.warm_up_ticks >= 6
    gauges.forget(np.array([0]))
    assert np.isnan(gauges.pod_deviation()).all()


def test_a_young_pod_rises_slowly_and_one_that_left_falls_slowly() -> None:
    """A third of the window at 6 is 2, as a rate has it; before its first sample a pod has none."""
    gauges = filled([], pods=1)
    seen = []
    for uses in (None, None, None, 6.0, 6.0, 6.0, None, None, None):
        ran = uses is not None
        rows = np.array([0]) if ran else NONE
        gauges.record(np.array([[0.0]]), rows=rows, pods=np.full((len(rows), 1), uses or 0.0), ran=np.full(len(rows), ran))
        seen.append(gauges.pod_window(gauges.ticks * 10.0)[0, 0])
    np.testing.assert_allclose(seen, [np.nan, np.nan, np.nan, 2.0, 4.0, 6.0, 4.0, 2.0, np.nan])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=8, max_size=60), st.integers(1, 6), st.integers(1, 5), st.integers(1, 3))
def test_the_ring_agrees_with_remembering_everything(values: list[float], window: int, windows: int, step: int) -> None:
    """Whatever the sizes, the ring forgets nothing that a window still reaches."""
    gauges = filled(values, lens=Lens(window * 10.0, "mean", windows, step * 10.0))
    found = gauges.node_windows(len(values) * 10.0)[0, 0]
    for back in range(windows):
        end = len(values) - back * step
        expected = np.mean(values[end - window : end]) if end >= window else np.nan
        np.testing.assert_allclose(found[-1 - back], expected)


def test_yesterday_is_remembered_on_its_own_steps() -> None:
    """Windows of 20 s, one every 30 s of a day: around this time of the day, from the oldest window that today has to what is ahead."""
    lens = Lens(20.0, "mean", 3, 10.0, ahead_s=60.0, day_step_s=30.0)
    gauges = filled([float(number) for number in range(1, 8647)], lens=lens)
    found = gauges.yesterday(86460.0)
    assert found is not None
    ahead_s, usage = found
    assert ahead_s.tolist() == [-30.0, 0.0, 30.0, 60.0]
    assert usage[0, 0].tolist() == [2.5, 5.5, 8.5, 11.5]
    assert filled([1.0]).yesterday(10.0) is None


def test_yesterday_is_unknown_where_nothing_was_recorded() -> None:
    """Before the first sample, and later than what has arrived."""
    gauges = filled([1.0] * 10, lens=Lens(20.0, "mean", 1, 10.0, ahead_s=60.0, day_step_s=30.0))
    found = gauges.yesterday(86400.0 + 90.0)
    assert found is not None
    assert np.isnan(found[1][0, 0]).tolist() == [False, True, True]
