"""Which samples may be believed, and by which name those that may not are counted.

A sample that cannot be believed becomes NaN, never a number near it: unknown is not zero, and clipping would be a guess.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

import numpy as np

from rebalancer.collect.prometheus_wire import Answer
from rebalancer.state.arrays import FloatArray


class DropReason(Enum):
    """The closed set behind ``samples_dropped_total{reason}``."""

    NAN = "nan"
    INFINITE = "infinite"
    NEGATIVE = "negative"
    ABSURD = "absurd"
    STALE = "stale"
    AMBIGUOUS = "ambiguous"
    FOREIGN = "foreign"
    UNPARSABLE = "unparsable"


Dropped = Counter[DropReason]


def believed(answer: Answer, *, maximum: float | None) -> tuple[FloatArray, Dropped]:
    """(series, points) with every sample that is no possible amount as NaN, and how many there were of each kind.

    Zero is a possible amount, so is more than the capacity of a node; a negative one, one that is not finite, or one above ``maximum``
    is not.
    """
    values = answer.values
    with np.errstate(invalid="ignore"):
        negative = answer.present & (values < 0) & np.isfinite(values)
        absurd = answer.present & np.isfinite(values) & (values > maximum) if maximum is not None else np.zeros_like(answer.present)
    infinite = answer.present & np.isinf(values)
    nan = answer.present & np.isnan(values)
    dropped: Dropped = Counter()
    for reason, count in (
        (DropReason.NEGATIVE, negative.sum()),
        (DropReason.ABSURD, absurd.sum()),
        (DropReason.INFINITE, infinite.sum()),
        (DropReason.NAN, nan.sum()),
    ):
        if count:
            dropped[reason] = int(count)
    # What is no number at all arrived as NaN: it is named for what it was.
    unparsable = min(answer.unparsable, dropped[DropReason.NAN])
    if unparsable:
        dropped[DropReason.NAN] -= unparsable
    if answer.unparsable:
        dropped[DropReason.UNPARSABLE] = answer.unparsable
    return np.where(negative | absurd | infinite, np.nan, values), +dropped
