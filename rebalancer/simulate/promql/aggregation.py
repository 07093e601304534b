"""Aggregation operators: one row a group of label sets, each step by itself."""

from __future__ import annotations

import numpy as np

from rebalancer.simulate.promql.frames import NAME, Floats, Frame
from rebalancer.simulate.promql.labels import Bools, Codes, first_rows, group_numbers
from rebalancer.simulate.promql.over_time import quantile_of
from rebalancer.simulate.promql.syntax import PromqlError


def aggregate(operator: str, frame: Frame, *, labels: tuple[str, ...], without: bool, parameter: Floats | None) -> Frame:
    """``parameter``: (steps,) for quantile, topk and bottomk. Raises PromqlError for an unknown operator."""
    frame = frame.alive()
    kept = frame.labels.without((*labels, NAME)) if without else frame.labels.only(labels)
    numbers, count = group_numbers(kept)
    if operator in ("topk", "bottomk"):
        return _pick(frame, numbers, count, parameter, largest=operator == "topk")
    return Frame(kept.take(first_rows(numbers, count)), *_reduce(operator, frame, numbers, count, parameter))


def _reduce(operator: str, frame: Frame, numbers: Codes, count: int, parameter: Floats | None) -> tuple[Floats, Bools]:
    steps = frame.values.shape[1]
    if count == 0:
        return np.zeros((0, steps)), np.zeros((0, steps), dtype=bool)
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(count))
    values, present = frame.values[order], frame.present[order]
    sizes = np.add.reduceat(present.astype(np.int64), starts, axis=0).astype(float)
    found = sizes > 0
    if operator in ("sum", "avg", "stddev", "stdvar"):
        total = np.add.reduceat(np.where(present, values, 0.0), starts, axis=0)
        if operator == "sum":
            return total, found
        mean = total / np.maximum(sizes, 1)
        if operator == "avg":
            return mean, found
        off = np.where(present, values - np.repeat(mean, np.diff(np.append(starts, len(order))), axis=0), 0.0)
        variance = np.add.reduceat(off**2, starts, axis=0) / np.maximum(sizes, 1)
        return (np.sqrt(variance) if operator == "stddev" else variance), found
    if operator in ("min", "max"):
        pick = np.fmin if operator == "min" else np.fmax
        return pick.reduceat(np.where(present, values, np.nan), starts, axis=0), found
    if operator == "count":
        return sizes, found
    if operator == "group":
        return np.where(found, 1.0, np.nan), found
    if operator == "quantile" and parameter is not None:
        result = np.full((count, steps), np.nan)
        for group, (begin, end) in enumerate(zip(starts, [*starts[1:], len(order)], strict=True)):
            for step in range(steps):
                column, there = values[begin:end, step][None, :], present[begin:end, step][None, :]
                if there.any():
                    result[group, step] = quantile_of(column, there, float(parameter[step]))[0]
        return result, found
    raise PromqlError(f"the aggregation {operator} is not simulated")


def _pick(frame: Frame, numbers: Codes, count: int, parameter: Floats | None, *, largest: bool) -> Frame:
    present = np.zeros_like(frame.present)
    limits = np.zeros(frame.values.shape[1]) if parameter is None else parameter
    sign = -1.0 if largest else 1.0
    for step in range(frame.values.shape[1]):
        rows = np.flatnonzero(frame.present[:, step])
        ordered = rows[np.lexsort((sign * frame.values[rows, step], numbers[rows]))]
        group = numbers[ordered]
        rank = np.arange(len(ordered)) - np.searchsorted(group, group)
        present[ordered[rank < limits[step]], step] = True
    return Frame(frame.labels, frame.values, present)
