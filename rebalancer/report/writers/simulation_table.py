"""Strategies side by side for people: one column a strategy, one row a number, the best of the row in green."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Cell, Column, Row, Sheet
from rebalancer.report.simulation import SimulationReport, StrategyResult
from rebalancer.report.text import counted
from rebalancer.units import format_percent


@dataclass(frozen=True, slots=True)
class Measure:
    """``key`` is what is compared; less is better, None is unknown. ``wide``: shown in the wide format only. ``bad``: a fault above 0."""

    words: str
    key: Callable[[StrategyResult], float | None]
    show: Callable[[float], str]
    wide: bool = False
    bad: bool = False


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _one_digit(value: float) -> str:
    return f"{value:,.1f}"


def _load(value: float) -> str:
    return format_percent(value)


def _spread(value: float) -> str:
    return format_percent(value, digits=1)


MEASURES = (
    Measure("hot node-minutes", lambda r: r.hot_node_minutes, _count),
    Measure("hot nodes, mean", lambda r: r.mean_hot_nodes, lambda value: f"{value:,.2f}"),
    Measure("worst load", lambda r: r.worst_load, _load),
    Measure("spread, mean", lambda r: r.mean_spread, _spread),
    Measure("throttled core-hours", lambda r: r.throttled_core_hours, _one_digit),
    Measure("evictions", lambda r: r.evictions, _count),
    Measure("refused by the API server", lambda r: r.refused_by_api_server, _count, wide=True),
    Measure("evictions per workload and day, mean", lambda r: r.evictions_per_workload_day_mean, lambda value: f"{value:,.2f}"),
    Measure("evictions per workload and day, most", lambda r: r.evictions_per_workload_day_max, _count),
    Measure("evictions that made a node hot", lambda r: r.made_hot, _count, bad=True),
    Measure("evictions that came to a hot node", lambda r: r.landed_on_hot, _count, bad=True),
    Measure("evictions that came back", lambda r: r.returned, _count, bad=True),
    Measure("disruption budgets violated", lambda r: r.budget_violations, _count, bad=True),
    Measure("gangs broken", lambda r: r.gangs_broken, _count, wide=True, bad=True),
    Measure("pending pod-minutes", lambda r: r.pending_pod_minutes, _one_digit),
    Measure("starting pod-minutes", lambda r: r.unready_pod_minutes, _one_digit),
    Measure("cycles", lambda r: float(r.cycles), _count, wide=True),
    Measure("cycles without a decision", lambda r: float(r.undecided_cycles), _count, wide=True, bad=True),
    Measure("seconds to simulate", lambda r: r.wall_seconds, _one_digit),
    Measure("of them in the strategy", lambda r: r.deciding_seconds, _one_digit, wide=True),
)
_NOT_COMPARED = ("cycles", "seconds to simulate", "of them in the strategy", "evictions", "starting pod-minutes")
_OF_EVICTIONS = "evictions per"


@writer(SimulationReport, Format.TABLE, Format.WIDE)
def simulation_table(report: SimulationReport, page: Page, fmt: Format) -> str:
    wide = fmt is Format.WIDE
    sheet = Sheet(page, wide=wide)
    sheet.facts(simulation_facts(report))
    sheet.blank()
    columns = (Column("", least=20), *(Column(result.name.upper(), right=True, least=8) for result in report.results))
    measures = [measure for measure in MEASURES if wide or not measure.wide]
    sheet.grid(columns, [Row((measure.words, *cells_of(measure, report.results))) for measure in measures])
    for sentence in sentences_of(report):
        sheet.blank()
        sheet.sentence(sentence, style="red")
    return sheet.render()


def sentences_of(report: SimulationReport) -> list[str]:
    """What a reader must know before believing the numbers."""
    return [
        f"{result.name} could not decide in {result.undecided_cycles} of {result.cycles} cycles: {result.undecided_why}"
        for result in report.results
        if result.undecided_cycles
    ]


def simulation_facts(report: SimulationReport) -> list[tuple[str, str]]:
    marks = ", ".join(f"{name} above {format_percent(mark)}" for name, mark in report.hot_above.items())
    size = f"{counted(report.nodes, 'node')}, {counted(report.pods, 'pod')} in {counted(report.workloads, 'workload')}"
    return [
        ("Scenario", f"{report.scenario}: {size}, {report.hours:g} hours, seed {report.seed}"),
        ("", report.description),
        ("Hot", marks),
    ]


def cells_of(measure: Measure, results: tuple[StrategyResult, ...]) -> list[Cell]:
    values = [measure.key(result) for result in results]
    known = [value for value in values if value is not None]
    compared = len(known) > 1 and measure.words not in _NOT_COMPARED and not measure.words.startswith(_OF_EVICTIONS)
    best = min(known) if compared and min(known) < max(known) else None
    cells = []
    for value in values:
        style = "red" if measure.bad and value else "green" if value is not None and value == best else ""
        cells.append(Cell("?" if value is None else measure.show(value), style))
    return cells
