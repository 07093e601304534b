"""Real load from files: what pods asked for somewhere, and what they used over a day.

CSV, plain or gzipped, never copied into this project; the directory is named on the command line. A series is a column under its name,
``seconds`` the first one; an empty cell means that there is no sample, which is unknown and never 0. A column without any sample is left
out. Everything else that is no number, a row of another length, or a clock that does not go forward is a `ScenarioError` with its line.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rebalancer.errors import ScenarioError
from rebalancer.simulate.forward.scenario import Trace
from rebalancer.state.arrays import FloatArray

MOST_ROWS = 200_000
MOST_COLUMNS = 20_000
_REMEDY = "correct the file, or name another one"
_MOST = {"planetlab-cpu": 100.0, "genai-memory": 1.0}
"""What 100 % is in each kind."""


@dataclass(frozen=True, slots=True)
class Series:
    """``times`` (samples,) seconds, ascending from 0; ``values`` (samples, series) ratios, NaN where there is no sample."""

    times: FloatArray
    values: FloatArray

    @property
    def carried(self) -> FloatArray:
        """(samples, series): holes filled with the last value before them, and with the first one at the beginning."""
        known = np.isfinite(self.values)
        last = np.maximum.accumulate(np.where(known, np.arange(len(self.times))[:, None], -1), axis=0)
        first = np.argmax(known, axis=0)[None, :]
        return np.asarray(np.take_along_axis(self.values, np.where(last < 0, first, last), axis=0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests of pods: (pods,) cores and bytes."""

    cores: FloatArray
    memory: FloatArray


def read_series(trace: Trace, directory: Path | None) -> Series:
    """Load over time. Raises ScenarioError."""
    path = _find(trace, directory)
    rows = _rows(path)
    header = next(rows, None)
    if header is None or header[1][:1] != ["seconds"] or len(header[1]) < 2:
        raise ScenarioError(f"trace {path} has no columns seconds, series, series...", remedy=_REMEDY)
    width = len(header[1])
    times: list[float] = []
    table: list[FloatArray] = []
    for line, cells in rows:
        if len(cells) != width:
            raise ScenarioError(f"trace {path}, line {line}: {len(cells)} cells where the header has {width}", remedy=_REMEDY)
        values = _numbers(cells, path=path, line=line, header=header[1])
        if not math.isfinite(values[0]) or (times and values[0] <= times[-1]):
            raise ScenarioError(f"trace {path}, line {line}: its time {cells[0] or 'is empty and'} does not go forward", remedy=_REMEDY)
        times.append(values[0])
        table.append(values[1:])
    if not table:
        raise ScenarioError(f"trace {path} has no samples", remedy=_REMEDY)
    found = np.stack(table) / _MOST[trace.kind]
    filled = np.isfinite(found).mean(axis=0)
    alive = (filled > 0) & (filled * 100 >= trace.least_samples)
    if not alive.any():
        fullest = f"{filled.max() * 100:.0f} % of its cells" if filled.max() > 0 else "no cell"
        raise ScenarioError(f"trace {path}: the fullest series has a sample in {fullest}", remedy="lower leastSamples, or name another")
    _within(found, path)
    return Series(np.array(times) - times[0], found[:, alive])


def read_requests(trace: Trace, directory: Path | None) -> Asked:
    """What pods asked for (columns ``cpu_milli`` and ``memory_mib``). Raises ScenarioError."""
    path = _find(trace, directory)
    rows = _rows(path)
    header = next(rows, (1, []))[1]
    missing = [name for name in ("cpu_milli", "memory_mib") if name not in header]
    if missing:
        raise ScenarioError(f"trace {path} has no column {missing[0]}", remedy=_REMEDY)
    columns = [header.index("cpu_milli"), header.index("memory_mib")]
    found: list[FloatArray] = []
    for line, cells in rows:
        if len(cells) != len(header):
            raise ScenarioError(f"trace {path}, line {line}: {len(cells)} cells where the header has {len(header)}", remedy=_REMEDY)
        found.append(_numbers([cells[c] for c in columns], path=path, line=line, header=[header[c] for c in columns]))
    table = np.array(found).reshape(-1, 2)
    usable = table[np.isfinite(table).all(axis=1) & (table > 0).all(axis=1)]
    if not len(usable):
        raise ScenarioError(f"trace {path} holds no pod with requests", remedy=_REMEDY)
    return Asked(usable[:, 0] / 1000, usable[:, 1] * 2.0**20)


class TraceLibrary:
    """Each trace is read once. ``directory``: where they are; None when nobody said."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._series: dict[Trace, Series] = {}
        self._requests: dict[Trace, Asked] = {}

    def series(self, trace: Trace) -> Series:
        if trace not in self._series:
            self._series[trace] = read_series(trace, self._directory)
        return self._series[trace]

    def requests(self, trace: Trace) -> Asked:
        if trace not in self._requests:
            self._requests[trace] = read_requests(trace, self._directory)
        return self._requests[trace]


def _find(trace: Trace, directory: Path | None) -> Path:
    if directory is None:
        raise ScenarioError(f"the scenario replays trace {trace.path}", remedy="name the directory that holds it with --traces")
    root = directory.resolve()
    path = (root / trace.path).resolve()
    if not path.is_relative_to(root):
        raise ScenarioError(f"trace {trace.path} is not under {directory}", remedy="name a file under the directory of --traces")
    if not path.is_file():
        raise ScenarioError(f"there is no trace {path}", remedy="name the directory that holds it with --traces")
    return path


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, cells), the header first; what keeps the file from being read is a ScenarioError."""
    opened = gzip.open if path.name.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as stream:
            for line, cells in enumerate(csv.reader(stream), start=1):
                if line > MOST_ROWS or len(cells) > MOST_COLUMNS:
                    raise ScenarioError(f"trace {path} has more than {MOST_ROWS:,} rows or {MOST_COLUMNS:,} columns", remedy=_REMEDY)
                if cells:
                    yield line, cells
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ScenarioError(f"trace {path} cannot be read ({reason})", remedy="check that it is CSV, whole, and readable") from None


def _numbers(cells: Sequence[str], *, path: Path, line: int, header: Sequence[str]) -> FloatArray:
    values = np.full(len(cells), np.nan)
    for column, cell in enumerate(cells):
        text = cell.strip()
        if not text:
            continue
        try:
            values[column] = float(text)
        except ValueError:
            name = header[column][:40] or f"number {column + 1}"
            raise ScenarioError(f"trace {path}, line {line}, column {name}: {text[:40]!r} is no number", remedy=_REMEDY) from None
        if not math.isfinite(values[column]):
            values[column] = np.nan  # written as NaN: no sample
    return values


def _within(values: FloatArray, path: Path) -> None:
    """A share far above all of it, or below nothing, is another kind of trace."""
    with np.errstate(invalid="ignore"):
        odd = np.argwhere((values < 0) | (values > 1.5))
    if len(odd):
        row, column = odd[0].tolist()
        raise ScenarioError(
            f"trace {path}: sample {row + 1} of series {column + 1} is {values[row, column]:.3g} times the whole",
            remedy="give the trace the kind that it has",
        )
