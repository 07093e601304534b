"""Functions of instant vectors that need nothing but their values and labels."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from rebalancer.simulate.promql.frames import Floats, Frame
from rebalancer.simulate.promql.labels import Column
from rebalancer.simulate.promql.syntax import PromqlError

ELEMENTWISE: dict[str, Callable[[Floats], Floats]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "exp": np.exp,
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "sgn": np.sign,
}


def elementwise(name: str, frame: Frame) -> Frame:
    with np.errstate(all="ignore"):
        return Frame(frame.nameless().labels, ELEMENTWISE[name](frame.values), frame.present)


def clamp(frame: Frame, low: Floats, high: Floats) -> Frame:
    """``low`` and ``high``: (steps,); nothing is present where low is above high."""
    values = np.maximum(low, np.minimum(high, frame.values))
    return Frame(frame.nameless().labels, values, frame.present & (low <= high))


def rounded(frame: Frame, to: Floats) -> Frame:
    inverse = 1.0 / to
    return Frame(frame.nameless().labels, np.floor(frame.values * inverse + 0.5) / inverse, frame.present)


def label_replace(frame: Frame, target: str, replacement: str, source: str, pattern: str) -> Frame:
    """``$1`` and ``${name}`` in the replacement; series that the anchored pattern does not match stay as they are."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise PromqlError(f"invalid regular expression in label_replace(): {pattern}", execution=True) from error
    template = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda m: f"\\g<{m.group(1) or m.group(2)}>", replacement.replace("\\", r"\\"))
    column, old = frame.labels.column(source), frame.labels.column(target)
    made: list[str | None] = []
    for word in column.words:
        match = compiled.fullmatch(word)
        made.append(None if match is None else match.expand(template))
    if not any(word is not None for word in made):
        return frame
    pairs = [made[code] if made[code] is not None else old.words[was] for code, was in zip(column.codes, old.codes, strict=True)]
    return Frame(frame.labels.with_column(target, Column.of([word or "" for word in pairs])), frame.values, frame.present)


def label_join(frame: Frame, target: str, separator: str, sources: list[str]) -> Frame:
    columns = [frame.labels.column(name) for name in sources]
    words = [separator.join(column.value(row) for column in columns) for row in range(frame.labels.size)]
    return Frame(frame.labels.with_column(target, Column.of(words)), frame.values, frame.present)
