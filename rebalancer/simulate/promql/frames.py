"""The values that expressions have: raw samples by scrape (`Block`), vectors by step (`Frame`); and where samples come from.

Shapes: ``series`` x ``samples`` for blocks, ``series`` x ``steps`` for frames. A NaN in a present cell is a NaN that was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.promql.labels import Bools, Labels, Rows, first_rows, group_numbers, stacked
from rebalancer.simulate.promql.syntax import Matcher, PromqlError

Floats = NDArray[np.float64]
LOOKBACK_S = 300.0
NAME = "__name__"


@dataclass(frozen=True, slots=True)
class Block:
    """Raw samples of series that are scraped at the same times (ascending)."""

    labels: Labels
    times: Floats
    """(samples,) unix seconds."""
    values: Floats
    """(series, samples)"""
    present: Bools
    """(series, samples)"""
    silent: Bools
    """(series,): the series ended without a staleness marker, so its last sample is found for `LOOKBACK_S`."""

    def take(self, rows: Rows) -> Block:
        return Block(self.labels.take(rows), self.times, self.values[rows], self.present[rows], self.silent[rows])


class Source(Protocol):
    def select(self, name: str, matchers: Sequence[Matcher], start: float, end: float) -> list[Block]:
        """The raw samples of a metric between two moments, both included."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An instant vector at every step."""

    labels: Labels
    values: Floats
    """(series, steps)"""
    present: Bools
    """(series, steps)"""

    def take(self, rows: Rows) -> Frame:
        return Frame(self.labels.take(rows), self.values[rows], self.present[rows])

    def nameless(self) -> Frame:
        return Frame(self.labels.without([NAME]), self.values, self.present)

    def alive(self) -> Frame:
        """Without the series that are present at no step."""
        kept = np.flatnonzero(self.present.any(axis=1))
        return self if len(kept) == self.labels.size else self.take(kept)


def empty_frame(steps: int) -> Frame:
    return Frame(Labels(0, {}), np.zeros((0, steps)), np.zeros((0, steps), dtype=bool))


def stack_frames(frames: Sequence[Frame], steps: int) -> Frame:
    if not frames:
        return empty_frame(steps)
    if len(frames) == 1:
        return frames[0]
    return Frame(
        stacked([frame.labels for frame in frames]),
        np.concatenate([frame.values for frame in frames]),
        np.concatenate([frame.present for frame in frames]),
    )


def merged(frame: Frame) -> Frame:
    """Series of equal labels become one; raises PromqlError when two of them are present at the same step."""
    numbers, count = group_numbers(frame.labels)
    if count == frame.labels.size:
        return frame
    values, present = np.full((count, frame.values.shape[1]), np.nan), np.zeros((count, frame.values.shape[1]), dtype=bool)
    together = np.zeros(present.shape, dtype=np.int64)
    np.add.at(together, numbers, frame.present)
    if (together > 1).any():
        raise PromqlError("vector cannot contain metrics with the same labelset", execution=True)
    rows, steps = np.nonzero(frame.present)
    values[numbers[rows], steps] = frame.values[rows, steps]
    present[numbers[rows], steps] = True
    return Frame(frame.labels.take(first_rows(numbers, count)), values, present)
