"""From the gauges to the usage columns of a state: windows, what has departed, estimates, and why something is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.deviations import LONG_ENOUGH, with_typical
from rebalancer.collect.estimates import PodAges, with_estimates
from rebalancer.policy.hotness import Metrics
from rebalancer.simulate.forward.gauges import Gauges
from rebalancer.simulate.forward.ground import Ground
from rebalancer.simulate.forward.pods import PodRows
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState, Coverage, Share
from rebalancer.state.tables import Phase
from rebalancer.units import format_duration


@dataclass(frozen=True, slots=True)
class Readings:
    """What the metrics say of nodes (``windows`` (nodes, signals, windows) usage, newest last) and of the living pods."""

    windows: FloatArray
    departed: FloatArray
    age_s: FloatArray
    unknown: Mapping[tuple[int, int], str]
    measured: FloatArray
    usage: FloatArray
    estimated: BoolArray
    deviation: FloatArray


def no_readings(*, nodes: int, pods: int, signals: int) -> Readings:
    """Everything unknown, for whoever only wants to schedule."""
    unknown, nothing = np.full((nodes, signals), np.nan), np.full((pods, signals), np.nan)
    return Readings(
        windows=unknown[:, :, None],
        departed=np.zeros((nodes, signals)),
        age_s=unknown.copy(),
        unknown={},
        measured=nothing,
        usage=nothing.copy(),
        estimated=np.zeros((pods, signals), dtype=np.bool_),
        deviation=nothing.copy(),
    )


def read_gauges(
    gauges: Gauges, *, at: float, ground: Ground, pods: PodRows, rows: IntArray, request: FloatArray, metrics: Metrics, swing_s: float
) -> Readings:
    """``rows``: the living pods; ``request`` (pods, resources): what they ask for; ``swing_s``: what deviations are taken over."""
    windows, age_s = gauges.node_windows(at), gauges.node_age_s(at)
    with np.errstate(invalid="ignore"):
        stale = age_s > metrics.max_age
    windows[stale, :, -1] = np.nan
    window = gauges.pod_window(at)
    measured, slot = window[rows], pods.slot[rows]
    started = np.where(np.isfinite(pods.bound_at[rows]), pods.bound_at[rows], pods.created_at[rows])
    ages = PodAges(active=pods.node[rows] >= 0, age_s=at - started, window_s=metrics.window, late_s=metrics.max_age)
    asked = _asked(ground, slot, request)
    usage, estimated = with_estimates(measured, ages=ages, workload=ground.slots.owner[slot], signals=ground.signals, asked=asked)
    return Readings(
        windows=windows,
        departed=_departed(window, ground, pods),
        age_s=np.repeat(age_s[:, None], len(ground.signals), axis=1),
        unknown=_why_unknown(windows[:, :, -1], age_s=age_s, stale=stale),
        measured=measured,
        usage=usage,
        estimated=estimated,
        deviation=with_typical(
            gauges.pod_deviation()[rows],
            usage=usage,
            workload=ground.slots.owner[slot],
            long_enough=ages.active & (ages.age_s >= LONG_ENOUGH * swing_s),
        ),
    )


def _departed(window: FloatArray, ground: Ground, pods: PodRows) -> FloatArray:
    """(nodes, signals): what the newest window holds of pods that are gone."""
    gone = pods.departed()
    gone = gone[pods.node[gone] >= 0]
    found = np.zeros((len(ground.nodes.names), len(ground.signals)))
    np.add.at(found, pods.node[gone], np.nan_to_num(window[gone]))
    return found


def _asked(ground: Ground, slot: IntArray, request: FloatArray) -> list[FloatArray | None]:
    """What stands in for a missing measurement, by signal: the request, with the scheduler's defaults for cpu and memory."""
    found: list[FloatArray | None] = []
    for signal in ground.signals:
        if signal.resource is None or signal.resource not in ground.resources:
            found.append(None)
            continue
        column = ground.resources.index(signal.resource)
        asked = request[:, column]
        if column < ground.slots.scored_request.shape[1]:
            asked = np.maximum(asked, ground.slots.scored_request[slot, column])
        found.append(np.where(asked > 0, asked, np.nan))
    return found


def _why_unknown(newest: FloatArray, *, age_s: FloatArray, stale: BoolArray) -> Mapping[tuple[int, int], str]:
    reasons: dict[tuple[int, int], str] = {}
    for node, column in np.argwhere(np.isnan(newest)).tolist():
        if stale[node]:
            reasons[node, column] = f"last sample is {format_duration(round(float(age_s[node])))} old"
        else:
            reasons[node, column] = "no whole window of samples" if np.isfinite(age_s[node]) else "no sample"
    return reasons


def coverage_of(state: ClusterState) -> Coverage:
    """The same shares as `collect.coverage`: of the nodes that are Ready, and of running pods that have been there for a window."""
    nodes, pods = state.nodes, state.pods
    since = np.where(np.isnan(pods.started_at), pods.created_at, pods.started_at)
    settled = (pods.node >= 0) & (state.at - since >= state.window_s) & (pods.phase == int(Phase.RUNNING)) & ~pods.terminating
    known_nodes, known_pods = ~np.isnan(nodes.usage) & nodes.ready[:, None], ~np.isnan(pods.measured) & settled[:, None]
    ages = np.where(np.isnan(nodes.usage), -np.inf, nodes.sample_age_s)
    columns = [(column, signal.name) for column, signal in enumerate(state.signals)]
    return Coverage(
        nodes={name: Share(int(known_nodes[:, column].sum()), int(nodes.ready.sum())) for column, name in columns},
        pods={name: Share(int(known_pods[:, column].sum()), int(settled.sum())) for column, name in columns},
        oldest_sample_s={name: _oldest(ages[:, column]) for column, name in columns},
        dropped={},
    )


def _oldest(ages: FloatArray) -> float:
    return float(ages.max()) if np.isfinite(ages).any() else float("nan")
