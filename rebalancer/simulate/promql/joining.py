"""Binary operators between scalars and vectors, with the matching rules of PromQL."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rebalancer.simulate.promql.frames import NAME, Floats, Frame, merged, stack_frames
from rebalancer.simulate.promql.labels import Bools, Codes, Labels, Rows, joint_numbers
from rebalancer.simulate.promql.parser import COMPARISONS, SET_OPERATORS
from rebalancer.simulate.promql.syntax import Matching, PromqlError

_ARITHMETIC: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
}
_COMPARING: dict[str, Callable[[Floats, Floats], Bools]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}
Operand = Frame | Floats
"""A vector, or a scalar at every step."""


def combine(operator: str, left: Operand, right: Operand, matching: Matching, *, as_bool: bool) -> Operand:
    """Raises PromqlError for what PromQL forbids: sets with scalars, many-to-many matches, scalar comparison without bool."""
    if isinstance(left, Frame) and isinstance(right, Frame):
        if operator in SET_OPERATORS:
            return _set(operator, left, right, matching)
        return _join(operator, left, right, matching, as_bool=as_bool)
    if operator in SET_OPERATORS:
        raise PromqlError(f'parse error: set operator "{operator}" not allowed in binary scalar expression')
    if isinstance(left, Frame):
        return _with_scalar(operator, left, right, as_bool=as_bool, swapped=False)  # type: ignore[arg-type]
    if isinstance(right, Frame):
        return _with_scalar(operator, right, left, as_bool=as_bool, swapped=True)
    if operator in COMPARISONS and not as_bool:
        raise PromqlError("parse error: comparisons between scalars must use BOOL modifier")
    return _compute(operator, left, right)


def _compute(operator: str, left: Floats, right: Floats) -> Floats:
    with np.errstate(all="ignore"):
        if operator in _COMPARING:
            return _COMPARING[operator](left, right).astype(float)
        return _ARITHMETIC[operator](left, right)


def _with_scalar(operator: str, frame: Frame, scalar: Floats, *, as_bool: bool, swapped: bool) -> Frame:
    left, right = (scalar, frame.values) if swapped else (frame.values, scalar)
    result = _compute(operator, np.broadcast_to(left, frame.values.shape), np.broadcast_to(right, frame.values.shape))
    if operator in COMPARISONS and not as_bool:
        return Frame(frame.labels, frame.values, frame.present & (result == 1))
    return Frame(frame.labels.without([NAME]), result, frame.present)


def _match_labels(labels: Labels, matching: Matching) -> Labels:
    return labels.only(matching.labels) if matching.on else labels.without((*matching.labels, NAME))


def _set(operator: str, left: Frame, right: Frame, matching: Matching) -> Frame:
    mine, theirs, count = joint_numbers(_match_labels(left.labels, matching), _match_labels(right.labels, matching))
    if operator == "or":
        there = _any_present(left, mine, count)
        extra = Frame(right.labels, right.values, right.present & ~there[theirs])
        return stack_frames([left, extra.alive()], left.values.shape[1])
    there = _any_present(right, theirs, count)[mine]
    return Frame(left.labels, left.values, left.present & (there if operator == "and" else ~there))


def _any_present(frame: Frame, numbers: Codes, count: int) -> Bools:
    there = np.zeros((count, frame.values.shape[1]), dtype=bool)
    np.logical_or.at(there, numbers, frame.present)
    return there


def _check_single(frame: Frame, numbers: Codes, count: int, side: str) -> None:
    if len(np.unique(numbers)) == len(numbers):
        return
    together = np.zeros((count, frame.values.shape[1]), dtype=np.int64)
    np.add.at(together, numbers, frame.present)
    if (together > 1).any():
        raise PromqlError(
            f"found duplicate series for the match group on the {side} hand-side of the operation; "
            "many-to-many matching not allowed: matching labels must be unique on one side",
            execution=True,
        )


def _pairs(mine: Codes, theirs: Codes, count: int) -> tuple[Rows, Rows]:
    """Every pair of rows with equal numbers."""
    order = np.argsort(theirs, kind="stable")
    starts = np.searchsorted(theirs[order], np.arange(count + 1))
    sizes = np.diff(starts)[mine]
    left = np.repeat(np.arange(len(mine)), sizes)
    first = np.repeat(starts[mine], sizes)
    within = np.arange(len(left)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return left, order[first + within]


def _join(operator: str, left: Frame, right: Frame, matching: Matching, *, as_bool: bool) -> Frame:
    left, right = left.alive(), right.alive()
    mine, theirs, count = joint_numbers(_match_labels(left.labels, matching), _match_labels(right.labels, matching))
    if matching.group != "right":
        _check_single(right, theirs, count, "right")
    if matching.group != "left":
        _check_single(left, mine, count, "left")
    rows, others = _pairs(mine, theirs, count)
    a, b = left.take(rows), right.take(others)
    present = a.present & b.present
    result = _compute(operator, a.values, b.values)
    comparing = operator in COMPARISONS and not as_bool
    if comparing:
        present, result = present & (result == 1), a.values
    labels = _result_labels(a.labels, b.labels, matching, keep_name=comparing)
    return merged(Frame(labels, result, present).alive())


def _result_labels(left: Labels, right: Labels, matching: Matching, *, keep_name: bool) -> Labels:
    if matching.group:
        many, one = (left, right) if matching.group == "left" else (right, left)
        labels = many if keep_name else many.without([NAME])
        for name in matching.include:
            labels = labels.with_column(name, one.column(name))
        return labels
    if matching.on:
        return left.only((*matching.labels, NAME) if keep_name else matching.labels)
    return left.without(matching.labels if keep_name else (*matching.labels, NAME))
