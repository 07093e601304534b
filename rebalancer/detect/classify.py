"""Hot, cold, normal or unknown: the class of every node, with the numbers that made it so.

Hot is over ``high`` on any judged signal, now by the load ledger and in at least k of the last n windows as Prometheus kept them. Where the
policy keeps room for swings (``risk``), what is compared is the load plus so many standard deviations of it. Cold is
under ``low`` on all. A node with an unknown load on a signal that its pool is judged by is unknown, and nothing is decided about it.
"""

from __future__ import annotations

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass, Quadrant
from rebalancer.detect.pools import assign_pools
from rebalancer.detect.thresholds import Marks, pool_spread, resolve_marks
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_deviation, node_load, node_packing
from rebalancer.units import format_percent


def detect(state: ClusterState, spec: Spec) -> Findings:
    """Classify every node. Raises PolicyError when two pools claim one node."""
    pool = assign_pools(state, spec.pools)
    load = node_load(state)
    load[~state.nodes.ready] = np.nan  # a node that does not report is not known, whatever its last numbers were
    packing = node_packing(state)
    spread = pool_spread(load, pool, len(spec.pools))
    marks = resolve_marks(state, spec.pools, pool, spread)
    margin = _margin(state, spec.risk.deviations)
    reach = load + margin
    over = _windows_over(state.nodes.history, marks.high - margin)
    windows = state.nodes.history.shape[2]
    with np.errstate(invalid="ignore"):
        confirmed = marks.judged & (reach > marks.high) & (over >= spec.confirm.at_least)
    node_class = _classify(load, marks, confirmed, pool)
    return Findings(
        pools=spec.pools,
        pool=pool,
        load=load,
        reach=reach,
        packing=packing,
        judged=marks.judged,
        low=marks.low,
        target=marks.target,
        high=marks.high,
        weight=marks.weight,
        over=over,
        windows=windows,
        node_class=node_class,
        confirmed=confirmed,
        quadrant=_quadrants(load, packing, marks),
        reasons=_reasons(state, spec, pool, load, reach, marks, over, node_class, confirmed),
        pool_mean=spread.mean,
        deviations=spec.risk.deviations,
        pool_stddev=spread.stddev,
        notes=state.coverage.notes,
    )


def _margin(state: ClusterState, deviations: float) -> FloatArray:
    """(nodes, signals) the room kept for swings, as a ratio."""
    if deviations == 0:
        return np.zeros(state.nodes.capacity.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = deviations * node_deviation(state) / state.nodes.capacity
    return np.where(np.isfinite(margin), margin, 0.0)


def reach_words(load: float, reach: float) -> str:
    """A load in a sentence, with the room for its swings where there is any."""
    room = f" and {format_percent(reach - load)} for swings" if reach > load else ""
    return f"{format_percent(load)}{room}"


def _windows_over(history: FloatArray, high: FloatArray) -> IntArray:
    """(nodes, signals): windows over ``high``; an unknown window is not over."""
    with np.errstate(invalid="ignore"):
        return np.asarray((history > high[:, :, None]).sum(axis=2), dtype=np.int64)


def _classify(load: FloatArray, marks: Marks, confirmed: BoolArray, pool: IntArray) -> IntArray:
    node_class = np.full(load.shape[0], int(NodeClass.NORMAL), dtype=np.int64)
    with np.errstate(invalid="ignore"):
        cold = np.where(marks.judged, load < marks.low, True).all(axis=1)
    unknown = (marks.judged & (np.isnan(load) | np.isnan(marks.high))).any(axis=1) | (pool < 0) | ~marks.judged.any(axis=1)
    node_class[cold] = int(NodeClass.COLD)
    node_class[confirmed.any(axis=1)] = int(NodeClass.HOT)
    node_class[unknown] = int(NodeClass.UNKNOWN)
    return node_class


def leading_signal(load: FloatArray, marks: Marks) -> IntArray:
    """(nodes,): the judged signal whose load is highest against its ``high`` mark; -1 when none is known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        strain = np.where(marks.judged, load / np.maximum(marks.high, 1e-9), np.nan)
    known = ~np.isnan(strain).all(axis=1)
    leading = np.full(load.shape[0], -1, dtype=np.int64)
    leading[known] = np.nanargmax(strain[known], axis=1)
    return leading


def _quadrants(load: FloatArray, packing: FloatArray, marks: Marks) -> tuple[Quadrant | None, ...]:
    """By the leading signal, packing and load each against its ``target``: under it, the scheduler still sees room."""
    quadrants: list[Quadrant | None] = []
    for node, column in enumerate(leading_signal(load, marks).tolist()):
        if column < 0 or np.isnan(packing[node, column]):
            quadrants.append(None)
            continue
        packed = packing[node, column] > marks.target[node, column]
        loaded = load[node, column] > marks.target[node, column]
        quadrants.append(
            {
                (False, True): Quadrant.LOW_PACKING_HIGH_LOAD,
                (True, False): Quadrant.HIGH_PACKING_LOW_LOAD,
                (False, False): Quadrant.LOW_PACKING_LOW_LOAD,
                (True, True): Quadrant.HIGH_PACKING_HIGH_LOAD,
            }[bool(packed), bool(loaded)]
        )
    return tuple(quadrants)


def _reasons(
    state: ClusterState,
    spec: Spec,
    pool: IntArray,
    load: FloatArray,
    reach: FloatArray,
    marks: Marks,
    over: IntArray,
    node_class: IntArray,
    confirmed: BoolArray,
) -> tuple[str, ...]:
    """One sentence a node; written node by node, since every node is shown in the report."""
    leading = leading_signal(reach, marks)
    names = [signal.name for signal in state.signals]
    sentences: list[str] = []
    for node in range(load.shape[0]):
        if pool[node] < 0:
            sentences.append("no pool of the policy claims it")
        elif node_class[node] == NodeClass.UNKNOWN:
            sentences.append(_why_unknown(state, node, marks.judged[node], load[node]))
        elif node_class[node] == NodeClass.HOT:
            hot = np.flatnonzero(confirmed[node])
            sentences.append(
                "; ".join(
                    f"{names[c]} load {reach_words(load[node, c], reach[node, c])} > high {format_percent(marks.high[node, c])} "
                    f"in {over[node, c]} of {state.nodes.history.shape[2]} windows"
                    for c in hot.tolist()
                )
            )
        else:
            sentences.append(_why_not_hot(spec, names, leading[node], load[node], reach[node], marks, node, over[node], node_class[node]))
    return tuple(sentences)


def _why_unknown(state: ClusterState, node: int, judged: BoolArray, load: FloatArray) -> str:
    if not state.nodes.ready[node]:
        return "the node is not Ready"
    missing: list[int] = np.flatnonzero(judged & np.isnan(load)).tolist()
    if not missing:
        return "the pool's mean is unknown, so its deviation marks are too"
    return "; ".join(f"{state.signals[c].name} load unknown: {state.nodes.unknown.get((node, c), 'no sample')}" for c in missing)


def _why_not_hot(
    spec: Spec,
    names: list[str],
    column: int,
    load: FloatArray,
    reach: FloatArray,
    marks: Marks,
    node: int,
    over: IntArray,
    node_class: int,
) -> str:
    name, value = names[column], reach_words(load[column], reach[column])
    if reach[column] > marks.high[node, column]:
        return (
            f"{name} load {value} > high {format_percent(marks.high[node, column])}, but only in {over[column]} of "
            f"{spec.confirm.windows} windows; {spec.confirm.at_least} are needed"
        )
    if node_class == NodeClass.COLD:
        return f"under low on every signal; {name} load {value} is the highest against its mark"
    return f"{name} load {value}, high is {format_percent(marks.high[node, column])}"
