"""Why every node has its class: one sentence a node with the numbers, since every node is shown in the report.

Nearly all nodes of a large cluster have the same kind of sentence, so their numbers are written column by column; only hot and unknown
nodes, which are few, are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rebalancer.detect.findings import NodeClass
from rebalancer.detect.thresholds import Marks
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_percent

UNKNOWN, HOT, COLD = int(NodeClass.UNKNOWN), int(NodeClass.HOT), int(NodeClass.COLD)


def reach_words(load: float, reach: float) -> str:
    """A load in a sentence, with the room for its swings where there is any."""
    return _with_swings(format_percent(load), load, reach)


def leading_signal(load: FloatArray, marks: Marks) -> IntArray:
    """(nodes,): the judged signal whose load is highest against its ``high`` mark; -1 when none is known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        strain = np.where(marks.judged, load / np.maximum(marks.high, 1e-9), np.nan)
    known = ~np.isnan(strain).all(axis=1)
    leading = np.full(load.shape[0], -1, dtype=np.int64)
    leading[known] = np.nanargmax(strain[known], axis=1)
    return leading


def reasons(
    state: ClusterState,
    spec: Spec,
    *,
    pool: IntArray,
    load: FloatArray,
    reach: FloatArray,
    marks: Marks,
    over: IntArray,
    node_class: IntArray,
    confirmed: BoolArray,
    passing: Mapping[int, str],
) -> tuple[str, ...]:
    """(nodes,) sentences. ``passing``: see `Foreseen`."""
    sentences = _of_known(state, spec, load=load, reach=reach, marks=marks, over=over, node_class=node_class)
    for node in np.flatnonzero((node_class == UNKNOWN) | (pool < 0)).tolist():
        unclaimed = pool[node] < 0
        sentences[node] = "no pool of the policy claims it" if unclaimed else _why_unknown(state, node, marks.judged[node], load[node])
    windows = state.nodes.history.shape[2]
    for node in np.flatnonzero((node_class == HOT) & (pool >= 0)).tolist():
        sentences[node] = "; ".join(
            f"{state.signals[c].name} load {reach_words(load[node, c], reach[node, c])} > high {format_percent(marks.high[node, c])} "
            f"in {over[node, c]} of {windows} windows"
            for c in np.flatnonzero(confirmed[node]).tolist()
        )
    for node, why in passing.items():
        sentences[node] += f"; its peak passes by itself: {why}"
    return tuple(sentences)


def _of_known(
    state: ClusterState, spec: Spec, *, load: FloatArray, reach: FloatArray, marks: Marks, over: IntArray, node_class: IntArray
) -> list[str]:
    """(nodes,) the sentences of nodes that are neither hot nor unknown; what stands at the others says nothing."""
    rows, leading = np.arange(load.shape[0]), leading_signal(reach, marks)
    names = [signal.name for signal in state.signals]
    loads, reaches, highs = load[rows, leading], reach[rows, leading], marks.high[rows, leading]
    columns = (
        leading.tolist(),
        node_class.tolist(),
        over[rows, leading].tolist(),
        loads.tolist(),
        reaches.tolist(),
        highs.tolist(),
        _percents(loads),
        _percents(highs),
    )
    sentences: list[str] = []
    for column, kind, windows, value, reached, high, load_words, high_words in zip(*columns, strict=True):
        words = load_words if not reached > value else _with_swings(load_words, value, reached)
        if reached > high:
            sentences.append(
                f"{names[column]} load {words} > high {high_words}, but only in {windows} of {spec.confirm.windows} windows; "
                f"{spec.confirm.at_least} are needed"
            )
        elif kind == COLD:
            sentences.append(f"under low on every signal; {names[column]} load {words} is the highest against its mark")
        else:
            sentences.append(f"{names[column]} load {words}, high is {high_words}")
    return sentences


def _percents(ratios: FloatArray) -> list[str]:
    """`format_percent` of each of (k,) ratios."""
    words = [f"{value:.0f} %" for value in (ratios * 100).tolist()]
    for row in np.flatnonzero(~np.isfinite(ratios)).tolist():
        words[row] = format_percent(float(ratios[row]))
    return words


def _with_swings(words: str, load: float, reach: float) -> str:
    return f"{words} and {format_percent(reach - load)} for swings" if reach > load else words


def _why_unknown(state: ClusterState, node: int, judged: BoolArray, load: FloatArray) -> str:
    if not state.nodes.ready[node]:
        return "the node is not Ready"
    missing: list[int] = np.flatnonzero(judged & np.isnan(load)).tolist()
    if not missing:
        return "the pool's mean is unknown, so its deviation marks are too"
    return "; ".join(f"{state.signals[c].name} load unknown: {state.nodes.unknown.get((node, c), 'no sample')}" for c in missing)
