"""Two ways to judge nodes by a view of them, behind one small interface: the Dynamic-Scheduler's and our own.

A judge refuses and scores; it does not know of HTTP. It judges every node of the view, column by column, and then picks those that were
asked about: of thousands of nodes, taking rows of each column costs more than judging them, and a question is about most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.steer.crane_policy import DEFAULT, CranePolicy
from rebalancer.steer.dynamic import (
    MAX_SCORE,
    HotReading,
    Missing,
    binding_counts,
    dynamic_scores,
    hot_in_force,
    hot_values,
    over_limit,
    refusal,
    usage_in_force,
)
from rebalancer.steer.lineage import Lineage
from rebalancer.steer.load_annotations import signal_of
from rebalancer.steer.node_view import NodeView
from rebalancer.steer.own_annotation import SIGNALS
from rebalancer.steer.own_score import EXTENDER_MAXIMUM, Marks, over_high, own_scores, reach, worth
from rebalancer.units import format_percent


@dataclass(frozen=True, slots=True)
class PodAsk:
    """What matters about the pod. ``amounts``: signal -> what it asks for, in the signal's unit; an absent one is unknown.
    ``gpu``: it asks for a GPU or for memory of one."""

    amounts: Mapping[str, float] = field(default_factory=dict)
    gpu: bool = False
    exempt: bool = False
    """Of a DaemonSet: its node is given."""
    lineage: Lineage | None = None
    """Whose it is; None for a pod without a controller, which is nobody's replacement."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``refused`` and ``known`` (nodes asked about,); ``why(places)`` are the sentences of refused ones, thousands at a time."""

    refused: BoolArray
    known: BoolArray
    why: Callable[[IntArray], list[str]]


class Judge(Protocol):
    def verdict(self, view: NodeView, rows: IntArray, pod: PodAsk, *, now: float) -> Verdict:
        """``rows``: from `NodeView.rows_of`. Unknown nodes and unknown loads are never refused."""

    def scores(self, view: NodeView, rows: IntArray, pod: PodAsk, *, now: float) -> IntArray:
        """(rows,) int64 in 0..10."""


def _among(flags: BoolArray, rows: IntArray) -> BoolArray:
    """The flags of those asked about; False for nodes that the view does not have."""
    return np.append(flags, False)[rows]  # UNKNOWN_NODE is the last place


def _of(values: FloatArray, rows: IntArray, *, unknown: float) -> FloatArray:
    """The values of those asked about; ``unknown`` for nodes that the view does not have."""
    return np.append(values, unknown)[rows]


@dataclass(frozen=True, slots=True)
class DynamicJudge:
    """Filter, score and hot value of the Dynamic-Scheduler, from crane-compatible annotations.

    ``hot``: how the bindings of the view make a node hot; None: the hot value is what stands on the node, up to a minute old.
    """

    policy: CranePolicy = DEFAULT
    missing: Missing = Missing.LOW
    hot: HotReading | None = None

    def verdict(self, view: NodeView, rows: IntArray, pod: PodAsk, *, now: float) -> Verdict:
        usage = self._usage(view, now=now)
        over = over_limit(self.policy, usage, view.crane.names)
        rules = self.policy.spec.predicate

        def why(places: IntArray) -> list[str]:
            at = rows[places]
            series = [rules[column].name for column in over[at].argmax(axis=1).tolist()]
            return list(map(refusal, series, view.names_at(at)))

        return Verdict(_among(_any(over), rows), _among(_any(~np.isnan(usage)), rows), why)

    def scores(self, view: NodeView, rows: IntArray, pod: PodAsk, *, now: float) -> IntArray:
        names = view.crane.names
        points = dynamic_scores(self.policy, self._usage(view, now=now), names, hot=self._hot(view, now=now), missing=self.missing)
        nothing = dynamic_scores(self.policy, np.full((1, len(names)), np.nan), names, hot=np.zeros(1), missing=self.missing)
        return np.asarray(np.append(points, nothing)[rows] * EXTENDER_MAXIMUM // MAX_SCORE, dtype=np.int64)

    def _usage(self, view: NodeView, *, now: float) -> FloatArray:
        """(nodes of the view, names)"""
        usage = usage_in_force(self.policy, view.crane, now=now)
        for column, signal in enumerate(map(signal_of, view.crane.names)):
            if view.room is not None and signal is not None:
                view.room.added_to(usage[:, column], signal)
        return usage

    def _hot(self, view: NodeView, *, now: float) -> FloatArray:
        """(nodes of the view,)"""
        if self.hot is None:
            return hot_in_force(view.crane, now=now)
        rules, bindings = self.policy.spec.hot_value, view.bindings
        counts = binding_counts(rules, node=bindings.node, bound_at=bindings.at, nodes=len(view.names), now=now)
        return hot_values(rules, counts, reading=self.hot).astype(np.float64)


@dataclass(frozen=True, slots=True)
class OwnJudge:
    """Our own score, and the high marks as filter, from the annotation of this project."""

    marks: Marks
    """(signals,), or (nodes, signals) row by row of the view that it judges by."""

    def verdict(self, view: NodeView, rows: IntArray, pod: PodAsk, *, now: float) -> Verdict:
        """A node is refused for what it has, not for what the pod would add: whether a pod fits is the scheduler's to say."""
        judged = _judged(pod)
        reached = self._reach(view, PodAsk(), judged=judged, now=now)
        over = over_high(reached, self.marks, judged=judged)
        high = np.broadcast_to(self.marks.high, reached.shape)

        def why(places: IntArray) -> list[str]:
            at = rows[places]
            columns = over[at].argmax(axis=1)
            loads, highs = _percents(reached[at, columns]), _percents(high[at, columns])
            return [
                f"{SIGNALS[column]} load {load} of node {node} is over {mark}"
                for column, load, node, mark in zip(columns.tolist(), loads, view.names_at(at), highs, strict=True)
            ]

        return Verdict(_among(_any(over), rows), _among(_any(~np.isnan(reached)), rows), why)

    def scores(self, view: NodeView, rows: IntArray, pod: PodAsk, *, now: float) -> IntArray:
        judged = _judged(pod)
        worths = worth(self._reach(view, pod, judged=judged, now=now), self.marks, judged=judged)
        return own_scores(_of(worths, rows, unknown=np.nan))

    def _reach(self, view: NodeView, pod: PodAsk, *, judged: BoolArray, now: float) -> FloatArray:
        """(nodes of the view, signals), NaN where nobody judges by it."""
        own = view.own
        with np.errstate(invalid="ignore"):
            stale = ~(own.expires_at > now)
        found = np.full((len(SIGNALS), len(view.names)), np.nan)
        for column in np.flatnonzero(judged).tolist():
            found[column] = reach(
                load=own.load[:, column],
                deviation=own.deviation[:, column],
                bound=view.bound_by(SIGNALS[column]),
                ask=np.array(pod.amounts.get(SIGNALS[column], np.nan), dtype=np.float64),
                capacity=view.capacity[:, column],
                deviations=self.marks.deviations,
            )
        found[:, stale] = np.nan
        return found.T


def _judged(pod: PodAsk) -> BoolArray:
    """(signals,): a pod without a GPU does not care how busy GPUs are, nor whether anybody knows."""
    return np.array([pod.gpu or not name.startswith("gpu") for name in SIGNALS], dtype=np.bool_)


def _any(each: BoolArray) -> BoolArray:
    return np.asarray(each.any(axis=1), dtype=np.bool_)


def _percents(shares: FloatArray) -> list[str]:
    """In whole per cent; each value is put into words once, for there are few of them among thousands of nodes."""
    different, at = np.unique(np.rint(shares * 100), return_inverse=True)
    words = [format_percent(value / 100) for value in different.tolist()]
    return [words[place] for place in at.tolist()]
