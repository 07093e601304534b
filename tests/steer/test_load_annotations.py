"""crane-scheduler's annotations, byte for byte, and our own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import SettingsError
from rebalancer.steer.crane_policy import DEFAULT
from rebalancer.steer.dynamic import hot_in_force, usage_in_force
from rebalancer.steer.load_annotations import (
    HOT_VALUE,
    SERIES,
    AnnotationValue,
    Oddity,
    format_hot_value,
    format_load,
    node_annotations,
    oddities,
    parse_value,
    read_nodes,
    zone_named,
)
from rebalancer.steer.own_annotation import LOAD, NodeLoad, SignalLoad, format_node_load, parse_node_load, read_node_loads
from tests.steer.kit import NOW, SHANGHAI, crane

UTC_ZONE = zone_named("Etc/UTC")


def test_a_load_is_written_byte_for_byte_in_the_readers_zone() -> None:
    """The contract's example, at 03:04:05 UTC."""
    assert format_load(0.0271, at=NOW, zone=SHANGHAI) == "0.02710,2026-01-02T11:04:05Z"
    assert format_hot_value(0, at=NOW, zone=SHANGHAI) == "0,2026-01-02T11:04:05Z"
    assert format_load(0.0271, at=NOW, zone=UTC_ZONE) == "0.02710,2026-01-02T03:04:05Z"


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1])
def test_an_unknown_load_is_not_written_and_what_stands_there_is_deleted(value: float) -> None:
    """0 would make the node look empty."""
    assert format_load(value, at=NOW, zone=SHANGHAI) is None
    assert node_annotations({SERIES[0]: value}, hot=2, at=NOW, zone=SHANGHAI) == {
        SERIES[0]: None,
        HOT_VALUE: "2,2026-01-02T11:04:05Z",
    }


def test_minus_zero_is_zero() -> None:
    """No sign that a reader might stumble over."""
    assert format_load(-0.0, at=NOW, zone=SHANGHAI) == "0.00000,2026-01-02T11:04:05Z"


@given(st.floats(0, 1000), st.integers(0, 4_000_000_000), st.sampled_from(["Asia/Shanghai", "Etc/UTC", "Asia/Kolkata"]))
def test_what_is_written_is_read_again(value: float, at: int, zone: str) -> None:
    """Five decimals and whole seconds survive, in zones without a clock change."""
    text = format_load(value, at=at, zone=zone_named(zone))
    assert text is not None
    found = parse_value(text, zone=zone_named(zone))
    assert isinstance(found, AnnotationValue)
    assert found.value == pytest.approx(value, abs=5.1e-6)
    if at >= 1_000_000_000:  # zones had odd offsets long ago
        assert found.written_at == at


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.5", Oddity.NOT_TWO_PARTS),
        ("", Oddity.NOT_TWO_PARTS),
        ("0.5,2026-01-02T11:04:05Z,1", Oddity.NOT_TWO_PARTS),
        ("-0.10000,2026-01-02T11:04:05Z", Oddity.NEGATIVE),
        ("0.50000, 2026-01-02T11:04:05Z", Oddity.NO_TIME),
        ("0.50000,2026-02-30T11:04:05Z", Oddity.NO_TIME),
        ("0.50000,2026-01-02T11:04:05+08:00", Oddity.NO_TIME),
        ("0.50000,1767323045", Oddity.NO_TIME),
        ("NaN,2026-01-02T11:04:05Z", Oddity.NO_NUMBER),
        ("1e999,2026-01-02T11:04:05Z", Oddity.NO_NUMBER),
        (" 0.5,2026-01-02T11:04:05Z", Oddity.NO_NUMBER),
        ("1_0,2026-01-02T11:04:05Z", Oddity.NO_NUMBER),
        ("1767323045:3m:0.5:0.65:0.2", Oddity.NOT_TWO_PARTS),
    ],
)
def test_what_somebody_else_wrote_does_not_count(text: str, why: Oddity) -> None:
    """Each with its reason."""
    assert parse_value(text, zone=SHANGHAI) is why


@given(st.text(max_size=60))
def test_no_text_is_too_odd_to_read(text: str) -> None:
    """A value that counts is finite and not negative."""
    found = parse_value(text, zone=SHANGHAI)
    assert isinstance(found, Oddity) or (math.isfinite(found.value) and found.value >= 0)


@pytest.mark.parametrize(("column", "lasts"), [(0, 480), (1, 1200), (2, 11100)])
def test_a_value_is_fresh_until_period_and_five_minutes_are_over(column: int, lasts: int) -> None:
    """Strictly before."""
    loads = read_nodes([crane(*[0.5] * 6)], zone=SHANGHAI)
    assert usage_in_force(DEFAULT, loads, now=NOW + lasts - 1)[0, column] == 0.5
    assert np.isnan(usage_in_force(DEFAULT, loads, now=NOW + lasts)[0, column])


def test_a_hot_value_counts_for_five_minutes() -> None:
    """Then it counts as 0, and so does one that is not there."""
    loads = read_nodes([crane(*[0.5] * 6, hot=3), {}], zone=SHANGHAI)
    assert hot_in_force(loads, now=NOW + 299).tolist() == [3, 0]
    assert hot_in_force(loads, now=NOW + 300).tolist() == [0, 0]


def test_the_time_zone_trap_makes_values_stale_and_is_said_once() -> None:
    """A writer in UTC for a reader in Shanghai is eight hours old, whatever it writes."""
    written = {SERIES[0]: str(format_load(0.9, at=NOW, zone=UTC_ZONE))}
    loads = read_nodes([written, written], zone=SHANGHAI)
    assert np.isnan(usage_in_force(DEFAULT, loads, now=NOW)).all()
    assert oddities(loads, now=NOW) == (
        "node load annotations are about 8h old and none is fresher; "
        "check that writer and reader mean the same time zone, and the clocks of both",
    )


def test_times_ahead_are_fresh_as_in_the_original_and_are_said() -> None:
    """The other half of the trap."""
    loads = read_nodes([crane(*[0.5] * 6)], zone=UTC_ZONE)
    assert usage_in_force(DEFAULT, loads, now=NOW)[0, 0] == 0.5
    assert "8h ahead" in oddities(loads, now=NOW)[0]


def test_other_writers_are_said_by_series_and_reason_and_never_by_node() -> None:
    """A thousand nodes are one sentence."""
    loads = read_nodes([{SERIES[0]: "x"}] * 1000 + [crane(*[0.5] * 6)], zone=SHANGHAI)
    assert oddities(loads, now=NOW) == (
        f"the node annotation {SERIES[0]} is not <number>,<time> and does not count; another writer may use the same key",
    )


def test_an_unknown_zone_is_an_error_with_a_remedy() -> None:
    """The stock reader crashes on it."""
    for name in ("Asia/Shangai", "", "../etc/passwd", "Asia"):
        with pytest.raises(SettingsError, match="is not a time zone"):
            zone_named(name)


def test_our_own_annotation_is_one_json_value_with_null_for_unknown() -> None:
    """UTC, five decimals, its own expiry."""
    signals = {"cpu": SignalLoad(0.0271, 0.31, math.nan, 0.04), "gpu_memory": SignalLoad(1.25), "gpu": SignalLoad()}
    text = format_node_load(NodeLoad(NOW, NOW + 480, signals))
    assert text == (
        '{"time":"2026-01-02T03:04:05Z","expires":"2026-01-02T03:12:05Z",'
        '"cpu":{"avg5m":0.0271,"maxAvg1h":0.31,"maxAvg1d":null,"deviation":0.04},"memory":null,"gpu":null,'
        '"gpuMemory":{"avg5m":1.25,"maxAvg1h":null,"maxAvg1d":null,"deviation":null}}'
    )
    found = parse_node_load(text)
    assert found is not None
    assert found.written_at == NOW
    assert found.signals["cpu"].max_avg_1h == 0.31
    assert math.isnan(found.signals["memory"].avg_5m)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"time":"x","expires":"y"}', '{"time":"2026-01-02T03:04:05Z"', "[" * 4000])
def test_another_value_of_our_annotation_is_unknown(text: str) -> None:
    """And counted."""
    assert parse_node_load(text) is None
    found = read_node_loads([{LOAD: text}, {}])
    assert found.odd == 1
    assert np.isnan(found.load).all()
