"""Node load as annotations, byte for byte as crane-scheduler writes and reads them.

``<number>,<time>`` under the bare name of the series. The number is a fraction of the node with exactly five decimals. The time ends in a
``Z`` that does not mean UTC: it is the local time of a zone that writer and reader must agree on, Asia/Shanghai unless someone changed it.
Whoever writes UTC for a reader of the default zone writes values that are always eight hours old, and steers nothing.

An unknown load is not written. The stock annotator writes 0, which makes the node look empty.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import Enum
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from rebalancer.errors import SettingsError
from rebalancer.state.arrays import FloatArray, by_column
from rebalancer.units import format_duration

SERIES = (
    "cpu_usage_avg_5m",
    "cpu_usage_max_avg_1h",
    "cpu_usage_max_avg_1d",
    "mem_usage_avg_5m",
    "mem_usage_max_avg_1h",
    "mem_usage_max_avg_1d",
)
HOT_VALUE = "node_hot_value"
DEFAULT_ZONE = "Asia/Shanghai"
HOT_FRESH_S = 300.0
"""A hot value counts for so long after its timestamp; an older one counts as 0."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_LONGEST = 100
_CLOCK_OFF_S = 600.0
_HALF_HOUR_S = 1800.0


class Oddity(Enum):
    """Why an annotation does not count."""

    NOT_TWO_PARTS = "is not <number>,<time>"
    NO_NUMBER = "does not begin with a number"
    NEGATIVE = "is negative"
    NO_TIME = "does not end in a time such as 2026-01-02T11:04:05Z"


@dataclass(frozen=True, slots=True)
class AnnotationValue:
    """``written_at`` is in Unix seconds, by the reader's zone."""

    value: float
    written_at: float


def signal_of(series: str) -> str | None:
    """The signal that a series is about, as its name begins; None for one of somebody's own."""
    return next((signal for beginning, signal in (("cpu_", "cpu"), ("mem_", "memory")) if series.startswith(beginning)), None)


def zone_named(name: str) -> tzinfo:
    """The zone that readers take the ``Z`` for. Raises SettingsError for a name that is not known."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise SettingsError(
            f"{name!r} is not a time zone", remedy=f"write a name such as {DEFAULT_ZONE} or Etc/UTC, the TZ of the scheduler that reads"
        ) from None


def format_time_in(at: float, zone: tzinfo) -> str:
    """Unix seconds as the local time of the zone with a literal ``Z``."""
    return _local(math.floor(at), zone)


@lru_cache(maxsize=256)
def _local(seconds: int, zone: tzinfo) -> str:
    """What is measured together has one time: thousands of values, a few texts."""
    return datetime.fromtimestamp(seconds, tz=zone).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_load(value: float, *, at: float, zone: tzinfo) -> str | None:
    """``0.02710,2026-01-02T11:04:05Z``; None for a load that is unknown (NaN, infinite or negative), which must not be written."""
    if not math.isfinite(value) or value < 0:
        return None
    return f"{value + 0.0:.5f},{format_time_in(at, zone)}"


def format_hot_value(value: int, *, at: float, zone: tzinfo) -> str:
    return f"{value:d},{format_time_in(at, zone)}"


def node_annotations(loads: Mapping[str, float], *, hot: int | None, at: float, zone: tzinfo) -> dict[str, str | None]:
    """The annotations of one node as a merge patch holds them. ``loads``: series -> fraction of the node.

    A series that is unknown is None, which deletes what stands there: it would go on steering until it is stale.
    """
    found: dict[str, str | None] = {name: format_load(value, at=at, zone=zone) for name, value in loads.items()}
    if hot is not None:
        found[HOT_VALUE] = format_hot_value(hot, at=at, zone=zone)
    return found


def parse_value(text: str, *, zone: tzinfo) -> AnnotationValue | Oddity:
    """What a reader makes of the value of an annotation. Not a finite number >= 0 and a time: the reason why it does not count."""
    return _parse(text, _clock(zone))


def _parse(text: str, clock: Callable[[str], float | None]) -> AnnotationValue | Oddity:
    number, comma, time = text.partition(",")
    if not comma or "," in time or len(text) > _LONGEST:
        return Oddity.NOT_TWO_PARTS
    value = float(number) if _NUMBER.fullmatch(number) else math.nan
    if not math.isfinite(value):
        return Oddity.NO_NUMBER
    if value < 0:
        return Oddity.NEGATIVE
    written_at = clock(time)
    return Oddity.NO_TIME if written_at is None else AnnotationValue(value, written_at)


@lru_cache(maxsize=8)
def _clock(zone: tzinfo) -> Callable[[str], float | None]:
    """Reader of times; nodes that were written in the same second share the work."""

    @lru_cache(maxsize=16384)
    def read(text: str) -> float | None:
        if _TIME.fullmatch(text) is None:
            return None
        try:
            return datetime.fromisoformat(text[:-1]).replace(tzinfo=zone).timestamp()
        except (ValueError, OverflowError):
            return None

    return read


@dataclass(frozen=True, slots=True)
class LoadColumns:
    """What the annotations of all nodes say, whatever their age: each reader has its own idea of fresh.

    ``usage`` and ``written_at`` (nodes, names), ``hot`` and ``hot_written_at`` (nodes,) float64; NaN where there is no annotation, or none
    that counts. Times in Unix seconds.
    """

    names: tuple[str, ...]
    usage: FloatArray
    written_at: FloatArray
    hot: FloatArray
    hot_written_at: FloatArray
    odd: Mapping[tuple[str, Oddity], int]
    """(series, why) -> nodes whose annotation does not count."""


def read_nodes(nodes: Sequence[Mapping[str, str]], *, zone: tzinfo, names: Sequence[str] = SERIES) -> LoadColumns:
    """The annotations of each node as columns."""
    clock = _clock(zone)
    keys = (*names, HOT_VALUE)
    usage, written_at = by_column((len(nodes), len(keys))), by_column((len(nodes), len(keys)))
    odd: Counter[tuple[str, Oddity]] = Counter()
    for column, key in enumerate(keys):
        for row, written in enumerate(nodes):
            text = written.get(key)
            if text is None:
                continue
            found = _parse(text, clock)
            if isinstance(found, Oddity):
                odd[key, found] += 1
            else:
                usage[row, column], written_at[row, column] = found.value, found.written_at
    return LoadColumns(
        names=tuple(names),
        usage=usage[:, :-1],
        written_at=written_at[:, :-1],
        hot=usage[:, -1],
        hot_written_at=written_at[:, -1],
        odd=odd,
    )


def oddities(loads: LoadColumns, *, now: float) -> tuple[str, ...]:
    """What is odd about all of it, a sentence each, with no name of a node: for saying once, whatever nodes come and go."""
    sentences = [
        f"the node annotation {name} {why.value} and does not count; another writer may use the same key"
        for (name, why) in sorted(loads.odd, key=lambda each: (each[0], each[1].value))
    ]
    clock = clock_off(loads.written_at, now=now)
    return (*sentences, clock) if clock else tuple(sentences)


def clock_off(written_at: FloatArray, *, now: float) -> str:
    """What to say of times that are ahead, or behind by whole half hours on all nodes: a clock or a zone, not a writer that stopped."""
    times = written_at[np.isfinite(written_at)]
    if not len(times):
        return ""
    newest = float(times.max()) - now
    advice = "; check that writer and reader mean the same time zone, and the clocks of both"
    if newest > _CLOCK_OFF_S:
        return f"node load annotations are from {format_duration(round(newest / 60) * 60)} ahead{advice}"
    behind = -newest
    off = abs(behind - round(behind / _HALF_HOUR_S) * _HALF_HOUR_S)
    if behind > _HALF_HOUR_S and off < _CLOCK_OFF_S:
        age = format_duration(round(behind / _HALF_HOUR_S) * _HALF_HOUR_S)
        return f"node load annotations are about {age} old and none is fresher{advice}"
    return ""
