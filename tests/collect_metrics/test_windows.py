"""A rate over a part of its window is too low: no node may look cool because it fell silent or has just begun."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.windows import hold_through_silence, too_young

TIMES = np.arange(10) * 60.0 + 1_000_000.0
LINES = st.lists(st.floats(0, 100), min_size=10, max_size=10).map(np.array)


def test_points_in_silence_take_the_last_point_before_it() -> None:
    """The last sample came right after the seventh point; the eighth is within a step of it and stays."""
    held = hold_through_silence(np.arange(10.0), times=TIMES, last_sample_at=TIMES[6] + 5, step_s=60)
    assert held.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 6, 6]


def test_silence_from_the_beginning_is_unknown() -> None:
    """Nothing before it is known that could be held."""
    assert np.isnan(hold_through_silence(np.arange(10.0), times=TIMES, last_sample_at=TIMES[0] - 100, step_s=60)).all()


@given(line=LINES)
def test_an_unknown_time_of_the_last_sample_changes_nothing(line: np.ndarray) -> None:
    """NaN compares with nothing."""
    assert hold_through_silence(line, times=TIMES, last_sample_at=float("nan"), step_s=60).tolist() == line.tolist()


@given(line=LINES, silence=st.floats(0, 2000))
def test_only_points_in_silence_are_changed(line: np.ndarray, silence: float) -> None:
    """Every other window is as it was measured, and no value is invented."""
    last = TIMES[-1] - silence
    held = hold_through_silence(line, times=TIMES, last_sample_at=last, step_s=60)
    kept = last + 60 >= TIMES
    assert held[kept].tolist() == line[kept].tolist()
    assert set(held[~np.isnan(held)].tolist()) <= set(line.tolist())


def test_a_series_is_young_for_a_window_after_it_began() -> None:
    """Began at the fourth point: four points are too young with a window of five steps, the fifth is measured whole."""
    present = np.array([False] * 3 + [True] * 7)
    assert np.flatnonzero(too_young(present, times=TIMES, window_s=300, step_s=60)).tolist() == [3, 4, 5, 6]


def test_a_series_that_began_out_of_sight_is_not_young() -> None:
    """What is present at the first point is taken for old."""
    assert not too_young(np.ones(10, dtype=bool), times=TIMES, window_s=300, step_s=60).any()


def test_a_series_that_begins_again_is_young_again() -> None:
    """After a gap in which there was no rate at all, the rate starts from nothing."""
    present = np.array([True, True, False, False, True, True, True, True, True, True])
    assert np.flatnonzero(too_young(present, times=TIMES, window_s=180, step_s=60)).tolist() == [4, 5]
