"""Means that one absurd sample has spoiled, and what stands in for them.

Exporters write 4294967295 % now and then. A mean over a window with one such sample is lost, and with it the node for that long;
the middle value of the same window is not. It is asked for only when a mean came out impossible, and stands in for those series alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rebalancer.collect.prometheus_wire import Answer, Labels
from rebalancer.state.arrays import BoolArray


def spoiled(answer: Answer, most: float) -> BoolArray:
    """(series,) whether the newest value is above what is possible."""
    with np.errstate(invalid="ignore"):
        return np.asarray(answer.present[:, -1] & (answer.values[:, -1] > most), dtype=np.bool_)


def mended(answer: Answer, middle: Answer, most: float) -> Answer:
    """``answer`` with the values of ``middle``, by labels, in place of the spoiled ones. What is absurd there too stays as it is."""
    found = {_key(labels): value for labels, value in zip(middle.labels, middle.values[:, -1].tolist(), strict=True)}
    values = answer.values.copy()
    for row in np.flatnonzero(spoiled(answer, most)).tolist():
        values[row, -1] = found.get(_key(answer.labels[row]), values[row, -1])
    return replace(answer, values=values)


def _key(labels: Labels) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())
