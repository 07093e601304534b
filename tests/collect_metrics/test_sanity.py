"""Which samples are believed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.prometheus_wire import Envelope, WireSeries, answer_on_grid
from rebalancer.collect.sanity import believed

TEXTS = st.one_of(st.sampled_from(["NaN", "+Inf", "-Inf", "", "zero", "-0.5", "0", "1e300"]), st.floats(0, 100).map(repr))


@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_every_sample_is_a_possible_amount_or_nan_and_counted_once(texts: list[str]) -> None:
    """Nothing is clipped, nothing is 0 that was not sent as 0, and each sample that was not believed has one reason."""
    series = [WireSeries(metric={"i": str(i)}, value=(1.0, text)) for i, text in enumerate(texts)]
    answer = answer_on_grid(name="q", series=series, times=np.array([1.0]), step_s=1.0, envelope=Envelope(status="success"))
    values, dropped = believed(answer, maximum=1000.0)
    for text, value in zip(texts, values[:, 0].tolist(), strict=True):
        assert np.isnan(value) or (value == float(text) and 0 <= value <= 1000)
    assert sum(dropped.values()) == int(np.isnan(values).sum())


def test_negative_zero_and_loads_above_capacity_are_amounts() -> None:
    """Without a maximum any finite amount is possible."""
    series = [WireSeries(metric={}, value=(1.0, text)) for text in ("-0", "1e300")]
    answer = answer_on_grid(name="q", series=series, times=np.array([1.0]), step_s=1.0, envelope=Envelope(status="success"))
    values, dropped = believed(answer, maximum=None)
    assert values[:, 0].tolist() == [0.0, 1e300]
    assert not dropped


def test_a_native_histogram_is_no_number() -> None:
    """A series without a value is counted as unparsable and has no sample."""
    answer = answer_on_grid(
        name="q", series=[WireSeries(metric={})], times=np.array([1.0]), step_s=1.0, envelope=Envelope(status="success")
    )
    values, dropped = believed(answer, maximum=None)
    assert np.isnan(values).all()
    assert [reason.value for reason in dropped] == ["unparsable"]
