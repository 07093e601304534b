"""Evaluates a tree at a set of steps over a source of samples. One walk gives the answer for every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rebalancer.simulate.promql import functions
from rebalancer.simulate.promql.aggregation import aggregate
from rebalancer.simulate.promql.frames import LOOKBACK_S, Block, Floats, Frame, Source, merged, stack_frames
from rebalancer.simulate.promql.joining import Operand, combine
from rebalancer.simulate.promql.labels import Labels
from rebalancer.simulate.promql.over_time import WINDOWS, Window, newest, over_range, quantile_over_time
from rebalancer.simulate.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Negation,
    Number,
    PromqlError,
    Selector,
    Subquery,
    Text,
)

_DEFAULT_SUBQUERY_STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``steps``: (steps,) unix seconds at which the expression is evaluated."""

    source: Source
    steps: Floats

    def value(self, tree: Expression) -> Operand:
        """A `Frame`, or (steps,) for a scalar. Raises PromqlError."""
        if isinstance(tree, Number):
            return np.full(len(self.steps), tree.value)
        if isinstance(tree, Selector):
            return self._vector(tree)
        if isinstance(tree, Binary):
            return combine(tree.operator, self.value(tree.left), self.value(tree.right), tree.matching, as_bool=tree.as_bool)
        if isinstance(tree, Negation):
            inner = self.value(tree.inner)
            return Frame(inner.nameless().labels, -inner.values, inner.present) if isinstance(inner, Frame) else -inner
        if isinstance(tree, Aggregation):
            parameter = None if tree.parameter is None else self.scalar(tree.parameter)
            return aggregate(tree.operator, self.frame(tree.inner), labels=tree.labels, without=tree.without, parameter=parameter)
        if isinstance(tree, Call):
            return self._call(tree)
        if isinstance(tree, Text):
            raise PromqlError("string results are not simulated")
        raise PromqlError("a range vector is not a result; put a function such as rate() or avg_over_time() around it")

    def frame(self, tree: Expression) -> Frame:
        value = self.value(tree)
        if not isinstance(value, Frame):
            raise PromqlError("parse error: expected type instant vector, got scalar")
        return value

    def scalar(self, tree: Expression) -> Floats:
        value = self.value(tree)
        if isinstance(value, Frame):
            raise PromqlError("parse error: expected type scalar, got instant vector")
        return value

    # ---- selectors ----------------------------------------------------------------------------------------------------

    def _vector(self, tree: Selector, *, stamps: bool = False) -> Frame:
        if tree.range_s is not None:
            raise PromqlError("a range vector is not a result; put a function such as rate() or avg_over_time() around it")
        steps = self.steps - tree.offset_s
        blocks = self.source.select(tree.name, tree.matchers, float(steps[0]) - LOOKBACK_S, float(steps[-1]))
        return stack_frames([newest(block, steps, stamps=stamps).alive() for block in blocks], len(steps))

    def _ranged(self, tree: Expression, window: Window) -> Frame:
        if isinstance(tree, Selector) and tree.range_s is not None:
            steps = self.steps - tree.offset_s
            blocks = self.source.select(tree.name, tree.matchers, float(steps[0]) - tree.range_s, float(steps[-1]))
            frames = [over_range(block, steps, tree.range_s, window).alive() for block in blocks]
            return stack_frames(frames, len(steps))
        if isinstance(tree, Subquery):
            steps = self.steps - tree.offset_s
            return over_range(self._subquery(tree, steps), steps, tree.range_s, window)
        raise PromqlError("parse error: expected type range vector")

    def _subquery(self, tree: Subquery, steps: Floats) -> Block:
        length = tree.step_s or _DEFAULT_SUBQUERY_STEP_S
        first = np.ceil((steps[0] - tree.range_s) / length - 1e-9) * length
        inner = Evaluation(self.source, np.arange(first, steps[-1] + 1e-6, length))
        if len(inner.steps) == 0:
            return Block(Labels(0, {}), inner.steps, np.zeros((0, 0)), np.zeros((0, 0), dtype=bool), np.zeros(0, dtype=bool))
        frame = inner.frame(tree.inner)
        return Block(frame.labels, inner.steps, frame.values, frame.present, np.zeros(frame.labels.size, dtype=bool))

    # ---- functions ----------------------------------------------------------------------------------------------------

    def _call(self, tree: Call) -> Operand:
        name, arguments = tree.function, tree.arguments
        if name in WINDOWS:
            self._expect(tree, 1)
            frame = self._ranged(arguments[0], WINDOWS[name])
            return frame if name == "last_over_time" else merged(frame.nameless().alive())
        if name == "quantile_over_time":
            self._expect(tree, 2)
            fraction = float(self.scalar(arguments[0])[0])
            return merged(self._ranged(arguments[1], quantile_over_time(fraction)).nameless().alive())
        if name in functions.ELEMENTWISE:
            self._expect(tree, 1)
            return functions.elementwise(name, self.frame(arguments[0]))
        special: dict[str, Callable[[Call], Operand]] = {
            "time": lambda call: self.steps.astype(float),
            "timestamp": self._timestamp,
            "scalar": self._scalar,
            "vector": self._as_vector,
            "absent": self._absent,
            "round": self._round,
            "clamp": lambda call: functions.clamp(self.frame(call.arguments[0]), *map(self.scalar, call.arguments[1:3])),
            "clamp_min": lambda call: functions.clamp(
                self.frame(call.arguments[0]), self.scalar(call.arguments[1]), np.full(len(self.steps), np.inf)
            ),
            "clamp_max": lambda call: functions.clamp(
                self.frame(call.arguments[0]), np.full(len(self.steps), -np.inf), self.scalar(call.arguments[1])
            ),
            "label_replace": self._label_replace,
            "label_join": self._label_join,
            "sort": lambda call: self._sorted(call, descending=False),
            "sort_desc": lambda call: self._sorted(call, descending=True),
        }
        if name not in special:
            raise PromqlError(f'parse error: unknown function with name "{name}"')
        counts = {"time": 0, "clamp": 3, "clamp_min": 2, "clamp_max": 2, "label_replace": 5}
        if name not in ("round", "label_join"):
            self._expect(tree, counts.get(name, 1))
        return special[name](tree)

    @staticmethod
    def _expect(tree: Call, count: int) -> None:
        if len(tree.arguments) != count:
            raise PromqlError(f'parse error: expected {count} argument(s) in call to "{tree.function}", got {len(tree.arguments)}')

    @staticmethod
    def _text(tree: Expression) -> str:
        if not isinstance(tree, Text):
            raise PromqlError("parse error: expected type string")
        return tree.value

    def _timestamp(self, tree: Call) -> Operand:
        inner = tree.arguments[0]
        if isinstance(inner, Selector):
            return self._vector(inner, stamps=True).nameless()
        frame = self.frame(inner).nameless()
        return Frame(frame.labels, np.broadcast_to(self.steps, frame.values.shape).astype(float), frame.present)

    def _scalar(self, tree: Call) -> Operand:
        frame = self.frame(tree.arguments[0])
        only = frame.present.sum(axis=0) == 1
        return np.where(only, np.where(frame.present, frame.values, 0.0).sum(axis=0), np.nan)

    def _as_vector(self, tree: Call) -> Operand:
        values = self.scalar(tree.arguments[0])[None, :]
        return Frame(Labels(1, {}), values, np.ones(values.shape, dtype=bool))

    def _absent(self, tree: Call) -> Operand:
        inner = tree.arguments[0]
        missing = self.frame(inner).present.sum(axis=0) == 0
        known = {m.name: m.value for m in inner.matchers if m.operator == "="} if isinstance(inner, Selector) else {}
        return Frame(Labels.from_dicts([known]), np.ones((1, len(self.steps))), np.atleast_2d(missing))

    def _round(self, tree: Call) -> Operand:
        to = self.scalar(tree.arguments[1]) if len(tree.arguments) == 2 else np.ones(len(self.steps))
        return functions.rounded(self.frame(tree.arguments[0]), to)

    def _label_replace(self, tree: Call) -> Operand:
        return functions.label_replace(self.frame(tree.arguments[0]), *(self._text(argument) for argument in tree.arguments[1:]))

    def _label_join(self, tree: Call) -> Operand:
        target, separator, *sources = (self._text(argument) for argument in tree.arguments[1:])
        return functions.label_join(self.frame(tree.arguments[0]), target, separator, sources)

    def _sorted(self, tree: Call, *, descending: bool) -> Operand:
        frame = self.frame(tree.arguments[0])
        key = np.where(frame.present[:, -1], frame.values[:, -1], np.nan)
        return frame.take(np.argsort(-key if descending else key, kind="stable"))


def evaluate(tree: Expression, source: Source, steps: Floats) -> Operand:
    """The value of ``tree`` at ``steps``; equal label sets in a result are refused, as Prometheus does. Raises PromqlError."""
    value = Evaluation(source, steps).value(tree)
    return merged(value.alive()) if isinstance(value, Frame) else value
