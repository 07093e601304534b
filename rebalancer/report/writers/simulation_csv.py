"""Strategies as CSV: one row each, every number raw."""

from __future__ import annotations

import msgspec

from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.simulation import SimulationReport, StrategyResult
from rebalancer.report.writers.csv_rows import CsvCell, csv_text

_LEFT_OUT = ("course", "describe", "undecided_why")


@writer(SimulationReport, Format.CSV)
def simulation_csv(report: SimulationReport, page: Page, _: Format) -> str:
    names = [field.name for field in msgspec.structs.fields(StrategyResult) if field.name not in _LEFT_OUT]
    head: list[CsvCell] = [report.scenario, report.seed, report.hours]
    rows = [[*head, *(getattr(result, name) for name in names)] for result in report.results]
    return csv_text(["scenario", "seed", "hours", *names], rows, page)
