"""From runs to the document that is reported."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rebalancer.report.simulation import CoursePoint, SimulationReport, StrategyResult
from rebalancer.simulate.forward.arranging import NOT_YET
from rebalancer.simulate.forward.running import Run, workloads_in
from rebalancer.simulate.forward.world import Setting


def report_of(setting: Setting, runs: Sequence[Run], *, hours: float, description: str = "") -> SimulationReport:
    high = {
        signal.name: float(np.nanmin(setting.high[:, column]))
        for column, signal in enumerate(setting.ground.signals)
        if np.isfinite(setting.high[:, column]).any()
    }
    workloads = workloads_in(setting)
    return SimulationReport(
        scenario=setting.name,
        description=description,
        seed=setting.seed,
        hours=round(hours, 4),
        nodes=len(setting.ground.nodes.names),
        pods=int((setting.placed > NOT_YET).sum()),
        workloads=workloads,
        hot_above={name: round(mark, 4) for name, mark in high.items()},
        results=tuple(_result(run, workloads=workloads, hours=hours) for run in runs),
    )


def _result(run: Run, *, workloads: int, hours: float) -> StrategyResult:
    tally = run.tally
    return StrategyResult(
        name=run.contestant.label,
        strategy=run.contestant.kind.name,
        policy=run.contestant.policy.metadata.name,
        describe=run.contestant.kind.describe,
        hot_node_minutes=round(tally.hot_node_s / 60, 2),
        mean_hot_nodes=round(tally.mean_hot_nodes, 4),
        worst_load=_known(tally.worst_load),
        mean_spread=_known(tally.mean_spread),
        throttled_core_hours=round(tally.throttled_core_s / 3600, 4),
        evictions=tally.evictions,
        refused_by_api_server=tally.refused,
        evictions_per_workload_day_mean=round(tally.evictions / max(workloads, 1) / (hours / 24), 4),
        evictions_per_workload_day_max=max(tally.by_workload_day.values(), default=0),
        made_hot=tally.made_hot,
        landed_on_hot=tally.landed_on_hot,
        returned=tally.returned,
        budget_violations=tally.violations,
        gangs_broken=tally.gangs_broken,
        pending_pod_minutes=round(tally.pending_pod_s / 60, 2),
        unready_pod_minutes=round(tally.unready_pod_s / 60, 2),
        cycles=run.cycles,
        undecided_cycles=run.undecided,
        undecided_why=run.undecided_why,
        wall_seconds=round(run.wall_s, 2),
        deciding_seconds=round(run.deciding_s, 2),
        course=tuple(
            CoursePoint(
                hours=round(point.hours, 4),
                hot_nodes=round(point.hot_nodes, 3),
                worst_load=_known(point.worst_load),
                spread=_known(point.spread),
                evictions=point.evictions,
            )
            for point in tally.course()
        ),
    )


def _known(value: float) -> float | None:
    return round(value, 5) if math.isfinite(value) else None
