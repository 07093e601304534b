"""Quantities, durations, percentages and times: what people write and what they read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.units import (
    format_bytes,
    format_cores,
    format_duration,
    format_percent,
    format_quantity,
    format_time,
    parse_duration,
    parse_quantity,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("100m", 0.1),
        ("250m", 0.25),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1),
        ("4Gi", 4 * 2**30),
        ("1Ki", 1024),
        ("1k", 1000),
        ("1M", 1e6),
        ("1E", 1e18),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1.5e-3", 0.0015),
        ("100u", 1e-4),
        ("5n", 5e-9),
        ("-1", -1),
        ("+1", 1),
        ("0", 0),
        (" 7 ", 7),
    ],
)
def test_kubernetes_quantities_are_read_in_base_units(text: str, value: float) -> None:
    """The grammar of apimachinery: decimal and binary suffixes, exponents."""
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "Gi", "1gi", "1 Gi", "1KiB", "0x1", "1e", "one", "1mm", "--1", "1K"])
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    """The sentence repeats what was written."""
    with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
        parse_quantity(text)


@given(st.integers(min_value=0, max_value=10**6))
def test_millicores_are_exact_thousandths(millicores: int) -> None:
    """100m is 0.1 and not its neighbour."""
    assert parse_quantity(f"{millicores}m") == millicores / 1000


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("1d1h1m1s", 90061), ("0.5s", 0.5), (45, 45), (0, 0)]
)
def test_durations_are_read_as_seconds(text: str | float, seconds: float) -> None:
    """Days to seconds in descending order, or a plain number."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "5x", "m5", "30m1h", "-5s", "1.5h", "nan", True, -1, math.nan, math.inf, None])
def test_what_is_no_duration_is_refused(text: str | float) -> None:
    """Neither wrong words nor numbers that are no time."""
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.5, "0.5s"), (59, "59s"), (90, "1m30s"), (3600, "1h"), (90061, "1d1h"), (math.nan, "unknown")]
)
def test_durations_are_shown_in_at_most_two_units(seconds: float, text: str) -> None:
    """Nobody needs the seconds of a day."""
    assert format_duration(seconds) == text


@given(st.integers(min_value=0, max_value=86399))
def test_a_shown_duration_under_a_day_is_off_by_less_than_a_minute(seconds: int) -> None:
    """What is shown reads back as the same time, up to the unit that was left out."""
    assert 0 <= seconds - parse_duration(format_duration(seconds)) < 60


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf])
def test_the_unknown_is_shown_as_unknown_and_never_as_zero(unknown: float | None) -> None:
    """Every format has a mark for it."""
    shown = {format_percent(unknown), format_bytes(unknown), format_cores(unknown), format_quantity(unknown, "cores")}
    assert shown | {format_quantity(unknown, "bytes"), format_quantity(unknown, "req/s")} == {"?"}


@pytest.mark.parametrize(("ratio", "digits", "text"), [(0.914, 0, "91 %"), (0.914, 1, "91.4 %"), (1.2, 0, "120 %"), (0, 0, "0 %")])
def test_ratios_are_shown_as_percent(ratio: float, digits: int, text: str) -> None:
    """A load above the whole is shown as it is."""
    assert format_percent(ratio, digits=digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (2 * 2**30, "2.0 GiB"), (-(2**20), "-1.0 MiB"), (2**52, "4096.0 TiB")],
)
def test_bytes_are_shown_with_binary_prefixes(value: float, text: str) -> None:
    """From bytes to tebibytes, with the sign in front."""
    assert format_bytes(value) == text


def test_quantities_are_shown_in_the_unit_of_their_signal() -> None:
    """Cores, bytes, or the operator's own word."""
    shown = (format_quantity(2.5, "cores"), format_quantity(2**30, "bytes"), format_quantity(1234.5, "req/s"), format_quantity(3, ""))
    assert shown == ("2.50 cores", "1.0 GiB", "1.23e+03 req/s", "3")


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_times_are_written_as_kubernetes_writes_them_and_read_back(unix_s: int) -> None:
    """RFC 3339 in UTC, whole seconds."""
    text = format_time(unix_s)
    assert text.endswith("Z")
    assert parse_time(text) == unix_s


@pytest.mark.parametrize("text", ["", "2025-01-01", "2025-01-01T00:00:00", "yesterday"])
def test_a_time_without_a_zone_is_refused(text: str) -> None:
    """A time of nowhere cannot be compared."""
    with pytest.raises(ValueError):
        parse_time(text)


def test_a_time_with_an_offset_is_read_as_the_same_instant() -> None:
    """The zone is part of the time."""
    assert parse_time("2025-01-01T08:00:00+08:00") == parse_time("2025-01-01T00:00:00Z")
