"""What nodes used a day ago, at this time of the day and after it: the query that measured them today, asked for another time.

Asked only when somebody has something to decide by it, for the signals that a node is hot by. The times are multiples of the step, so that
the same ones are asked for in the next cycle and whatever caches answers in front of a large installation has them. Nothing here is needed
to decide: what cannot be had is unknown, with a note that says so, and then nothing is anticipated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.asking import Asking
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.resolve import resolve
from rebalancer.collect.sanity import believed
from rebalancer.collect.signal_plan import SignalPlan, forced_label, plan_signals
from rebalancer.errors import MetricsError
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import Yesterday

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Grid:
    """The times that are asked for, unix seconds of yesterday."""

    start: float
    end: float
    step_s: float


def grid_of(spec: Spec, *, at: float) -> Grid:
    """From the oldest of the windows that today is compared by to twice the horizon, on whole steps around both."""
    step_s, then = spec.anticipation.step, at - DAY_S
    behind_s = (spec.confirm.windows - 1) * spec.confirm.step
    return Grid(
        start=math.floor((then - behind_s) / step_s) * step_s,
        end=math.ceil((then + 2 * spec.anticipation.horizon) / step_s) * step_s,
        step_s=step_s,
    )


def read_yesterday(
    asking: Asking, *, spec: Spec, names: Sequence[str], capacity: FloatArray, sources: Mapping[str, str], wanted: Sequence[str]
) -> Yesterday:
    """``names`` (nodes,), ``capacity`` (nodes, signals of the policy): of the state; ``sources``: signal -> the way that measured its
    nodes; ``wanted``: the signals to ask for. Raises Interrupted, and SettingsError for unreadable credentials."""
    grid = grid_of(spec, at=asking.at)
    points = round((grid.end - grid.start) / grid.step_s) + 1
    load = np.full((len(names), capacity.shape[1], points), np.nan)
    for column, plan in enumerate(plan_signals(spec, recorded=asking.recorded)):
        if plan.signal.name not in wanted:
            continue
        usage = _usage(asking, plan, spec=spec, grid=grid, names=names, source=sources.get(plan.signal.name, ""))
        if usage is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                load[:, column] = usage / capacity[:, column, None]
    load[~np.isfinite(load)] = np.nan
    times: FloatArray = grid.start + grid.step_s * np.arange(points, dtype=np.float64)
    return Yesterday(ahead_s=times + (DAY_S - asking.at), load=load)


def _usage(asking: Asking, plan: SignalPlan, *, spec: Spec, grid: Grid, names: Sequence[str], source: str) -> FloatArray | None:
    """(nodes, points) in the unit of the signal; None when it cannot be had."""
    way = next((way for way in plan.nodes if way.source == source), None)
    if way is None:
        return None
    try:
        answer = asking.between(way.usage, start=grid.start, end=grid.end, step_s=grid.step_s)
    except MetricsError as error:
        asking.heard.note(f"signal {plan.signal.name}: yesterday is unknown: {error.message}")
        return None
    found = resolve(answer.labels, directory=asking.directory, forced=forced_label(spec), lookups=asking.lookups)
    usage = _by_node(answer, found.nodes, names, maximum=plan.maximum)
    known = int(np.isfinite(usage).all(axis=1).sum())
    asking.heard.note(f"signal {plan.signal.name}: yesterday at this time is known of {known} of {len(names)} nodes")
    return usage


def _by_node(answer: Answer, nodes: Sequence[str], names: Sequence[str], *, maximum: float | None) -> FloatArray:
    """(nodes, points): NaN where no series speaks of the node, where two contradict each other, or where a sample is no possible amount."""
    values, _ = believed(answer, maximum=maximum)
    row_of = {name: row for row, name in enumerate(names)}
    rows = np.fromiter((row_of.get(node, -1) for node in nodes), dtype=np.int64, count=len(nodes))
    ours = rows >= 0
    total, count = np.zeros((len(names), values.shape[1])), np.zeros((len(names), values.shape[1]), dtype=np.int64)
    np.add.at(total, rows[ours], np.where(answer.present, values, 0.0)[ours])
    np.add.at(count, rows[ours], answer.present[ours])
    return np.where(count == 1, total, np.nan)
