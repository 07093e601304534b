"""The JSON of Prometheus' query API, decoded once, straight into columns.

Values travel as strings (``"NaN"`` and ``"+Inf"`` too). They become float64 here and nothing is judged: what a NaN or an infinity means is
for `sanity` to say. A value that is no number at all becomes NaN and is counted, so that it can never be read as 0.

Series of pods come by the hundred thousand, with the same labels in each cycle. Their labels stay bytes, by which `pod_book` knows them;
they are decoded here only if somebody wants to show them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, overload

import msgspec
import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from rebalancer.collect.pod_book import PodSeries

Labels = Mapping[str, str]
WireValue = tuple[float, str | float | None]
PARTIAL = "the answer is partial, a part of the storage was not reached"


class ResultType(Enum):
    VECTOR = "vector"
    MATRIX = "matrix"


class WireSeries(msgspec.Struct):
    metric: dict[str, str]
    value: WireValue | None = None
    values: list[WireValue] = []


class RawSeries(msgspec.Struct, gc=False):
    """A series whose labels stay bytes."""

    metric: msgspec.Raw
    value: WireValue | None = None
    values: tuple[WireValue, ...] = ()


class NumberSeries(msgspec.Struct, gc=False):
    """The same of an instant query of which every value is a number, which the decoder reads by itself."""

    metric: msgspec.Raw
    value: tuple[float, float]


class _Labelled(msgspec.Struct):
    metric: dict[str, str]


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
_RAW_SERIES = msgspec.json.Decoder(list[RawSeries])
_NUMBER_SERIES = msgspec.json.Decoder(list[NumberSeries], strict=False)  # a number in a text
_LABELLED = msgspec.json.Decoder(list[_Labelled])

Series = Sequence[WireSeries] | Sequence[RawSeries] | Sequence[NumberSeries]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The series of an answer. ``pods``: whose they are, where their labels stay bytes."""

    series: Series = ()
    pods: PodSeries | None = None


Decode = Callable[[Envelope], Decoded]


def decode_envelope(body: bytes) -> Envelope:
    """Raises msgspec.DecodeError when the body is no answer of the query API."""
    return _ENVELOPE.decode(body)


def decode_series(envelope: Envelope) -> Decoded:
    """The series of a vector or a matrix, none for anything else. Raises msgspec.DecodeError."""
    if envelope.data is None or envelope.data.result_type not in ("vector", "matrix"):
        return Decoded()
    return Decoded(_SERIES.decode(envelope.data.result))


def decode_raw_series(envelope: Envelope) -> Sequence[NumberSeries] | Sequence[RawSeries]:
    """The same with labels that stay bytes, whatever they are. Raises msgspec.DecodeError."""
    if envelope.data is None or envelope.data.result_type not in ("vector", "matrix"):
        return []
    try:
        return _NUMBER_SERIES.decode(envelope.data.result)
    except msgspec.ValidationError:
        return _RAW_SERIES.decode(envelope.data.result)


class LabelsOnDemand(Sequence[Labels]):
    """All labels of the series of a result, decoded when somebody first looks."""

    def __init__(self, result: msgspec.Raw, count: int) -> None:
        self._result, self._count = result, count
        self._labels: tuple[Labels, ...] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, row: int) -> Labels: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Labels]: ...
    def __getitem__(self, row: int | slice) -> Labels | Sequence[Labels]:
        if self._labels is None:
            try:
                self._labels = tuple(one.metric for one in _LABELLED.decode(self._result))
            except msgspec.DecodeError:  # a label that nobody reads is no text
                self._labels = ({},) * self._count
        return self._labels[row]


@dataclass(frozen=True, slots=True)
class Answer:
    """The series of one query on one grid of times. ``points`` is 1 for an instant query."""

    name: str
    """Name of the query, for people."""
    labels: Sequence[Labels]
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
    pods: PodSeries | None = None
    """Which pod each series is of, where that is all that was wanted."""

    def __len__(self) -> int:
        return len(self.labels)


def answer_on_grid(
    *, name: str, series: Series, times: FloatArray, step_s: float, envelope: Envelope, pods: PodSeries | None = None
) -> Answer:
    """Put every value on the point of ``times`` that it was computed for; with one point, a value belongs there whatever its time is."""
    labels = _labels(series, envelope)
    if len(times) == 1 and series and isinstance(series[0], NumberSeries):
        pairs = [one.value for one in series if isinstance(one, NumberSeries)]
        flat = np.fromiter(chain.from_iterable(pairs), dtype=np.float64, count=2 * len(pairs)).reshape(-1, 2)
        return Answer(
            name=name,
            labels=labels,
            times=times,
            stamps=flat[:, 0],
            values=flat[:, 1:],
            present=np.ones((len(series), 1), dtype=np.bool_),
            warnings=tuple(envelope.warnings or ()),
            infos=tuple(envelope.infos or ()),
            pods=pods,
        )
    samples = [_samples(one) for one in series]
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
        labels=labels,
        times=times,
        stamps=stamps,
        values=values,
        present=present,
        unparsable=unparsable + int((~there).sum()),  # a native histogram: there is something, and it is no number
        off_grid=int((~inside).sum()),
        warnings=(*(envelope.warnings or ()), *((PARTIAL,) if envelope.is_partial else ())),
        infos=tuple(envelope.infos or ()),
        pods=pods,
    )


def _labels(series: Series, envelope: Envelope) -> Sequence[Labels]:
    if series and not isinstance(series[0], WireSeries) and envelope.data is not None:
        return LabelsOnDemand(envelope.data.result, len(series))
    return tuple(one.metric for one in series if isinstance(one, WireSeries))


def _samples(one: WireSeries | RawSeries | NumberSeries) -> Sequence[WireValue]:
    if isinstance(one, NumberSeries):
        return (one.value,)
    return one.values if one.value is None else (one.value,)


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
