"""The JSON of Prometheus' query API, decoded once, straight into columns.

Values travel as strings (``"NaN"`` and ``"+Inf"`` too). They become float64 here and nothing is judged: what a NaN or an infinity means is
for `sanity` to say. A value that is no number at all becomes NaN and is counted, so that it can never be read as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec
import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray

Labels = Mapping[str, str]
PARTIAL = "the answer is partial, a part of the storage was not reached"


class ResultType(Enum):
    VECTOR = "vector"
    MATRIX = "matrix"


class WireSeries(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str | float | None] | None = None
    values: list[tuple[float, str | float | None]] = []


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class Envelope(msgspec.Struct, rename="camel"):
    """What every answer of the API is wrapped in; ``data`` is there when ``status`` is ``success``."""

    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None
    infos: list[str] | None = None
    is_partial: bool = False
    """What a cluster of VictoriaMetrics says instead of a warning."""


_ENVELOPE = msgspec.json.Decoder(Envelope)
_SERIES = msgspec.json.Decoder(list[WireSeries])


def decode_envelope(body: bytes) -> Envelope:
    """Raises msgspec.DecodeError when the body is no answer of the query API."""
    return _ENVELOPE.decode(body)


def decode_series(envelope: Envelope) -> list[WireSeries]:
    """The series of a vector or a matrix, none for anything else. Raises msgspec.DecodeError."""
    if envelope.data is None or envelope.data.result_type not in ("vector", "matrix"):
        return []
    return _SERIES.decode(envelope.data.result)


@dataclass(frozen=True, slots=True)
class Answer:
    """The series of one query on one grid of times. ``points`` is 1 for an instant query."""

    name: str
    """Name of the query, for people."""
    labels: tuple[Labels, ...]
    times: FloatArray
    """(points,) unix seconds, for which values were asked."""
    stamps: FloatArray
    """(series,) unix seconds that the newest value of each series carries; NaN where a series has no value."""
    values: FloatArray
    """(series, points); NaN where there is no value, or one that is no number."""
    present: BoolArray
    """(series, points): the server sent something here, a NaN included."""
    unparsable: int = 0
    """Values that are no numbers at all."""
    off_grid: int = 0
    """Values of a range that carry a time which was not asked for; they are in no column."""
    warnings: tuple[str, ...] = ()
    """Not empty: the answer is partial."""
    infos: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)


def answer_on_grid(*, name: str, series: Sequence[WireSeries], times: FloatArray, step_s: float, envelope: Envelope) -> Answer:
    """Put every value on the point of ``times`` that it was computed for; with one point, a value belongs there whatever its time is."""
    samples = [one.values if one.value is None else (one.value,) for one in series]
    lengths = np.fromiter(map(len, samples), dtype=np.int64, count=len(samples))
    numbers, unparsable = _numbers([text for each in samples for _, text in each])
    sent_at = np.array([stamp for each in samples for stamp, _ in each], dtype=np.float64)
    row = np.repeat(np.arange(len(samples)), lengths)
    if len(times) == 1:
        point, inside = np.zeros(len(row), dtype=np.int64), np.ones(len(row), dtype=np.bool_)
    else:
        point = np.rint((sent_at - times[0]) / step_s).astype(np.int64)
        inside = (point >= 0) & (point < len(times))
    shape = (len(samples), len(times))
    values, present = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
    values[row[inside], point[inside]] = numbers[inside]
    present[row[inside], point[inside]] = True
    stamps = np.full(len(samples), np.nan)
    there = lengths > 0
    stamps[there] = sent_at[np.cumsum(lengths)[there] - 1]
    return Answer(
        name=name,
        labels=tuple(one.metric for one in series),
        times=times,
        stamps=stamps,
        values=values,
        present=present,
        unparsable=unparsable + int((~there).sum()),  # a native histogram: there is something, and it is no number
        off_grid=int((~inside).sum()),
        warnings=(*(envelope.warnings or ()), *((PARTIAL,) if envelope.is_partial else ())),
        infos=tuple(envelope.infos or ()),
    )


def _numbers(texts: Sequence[str | float | None]) -> tuple[FloatArray, int]:
    """(texts,) NaN where a text is no number, and how many are none."""
    try:
        return np.array(list(map(float, texts)), dtype=np.float64), 0  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = [_number(text) for text in texts]
        return np.array([np.nan if number is None else number for number in found], dtype=np.float64), found.count(None)


def _number(text: str | float | None) -> float | None:
    if text is None or text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return None
