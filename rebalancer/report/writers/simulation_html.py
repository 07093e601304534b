"""Strategies as one page: the numbers side by side, and their courses as curves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from rebalancer.report.charts import Chart, chart, colour_of
from rebalancer.report.html import html_page
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.simulation import SimulationReport
from rebalancer.report.text import clean
from rebalancer.report.writers.simulation_table import MEASURES, cells_of, sentences_of, simulation_facts

_CLASSES = {"red": "bad", "green": "good", "": ""}


@writer(SimulationReport, Format.HTML)
def simulation_html(report: SimulationReport, page: Page, _: Format) -> str:
    rows = [
        {
            "words": measure.words,
            "cells": [{"text": cell.text, "style": _CLASSES[cell.style]} for cell in cells_of(measure, report.results)],
        }
        for measure in MEASURES
    ]
    values = {
        "title": clean(f"Simulation: {report.scenario}"),
        "facts": [(key, clean(value)) for key, value in simulation_facts(report) if value],
        "results": [{"name": clean(result.name), "describe": clean(result.describe)} for result in report.results],
        "rows": rows,
        "sentences": [clean(sentence) for sentence in sentences_of(report)],
        "charts": list(_charts(report)),
        "legend": [{"name": clean(result.name), "colour": colour_of(number)} for number, result in enumerate(report.results)],
    }
    return html_page("simulation.html.j2", page, values)


def _charts(report: SimulationReport) -> Iterator[Chart]:
    names, courses = [clean(result.name) for result in report.results], [result.course for result in report.results]
    hot = [[(point.hours, point.hot_nodes) for point in course] for course in courses]
    worst = [[(point.hours, point.worst_load) for point in course] for course in courses]
    spread = [[(point.hours, point.spread) for point in course] for course in courses]
    spent = [
        list(zip((point.hours for point in course), map(float, accumulate(point.evictions for point in course)), strict=True))
        for course in courses
    ]
    yield chart("Hot nodes", hours=report.hours, lines=list(zip(names, hot, strict=True)))
    yield chart("Worst load", hours=report.hours, lines=list(zip(names, worst, strict=True)), percent=True)
    yield chart("Spread of loads", hours=report.hours, lines=list(zip(names, spread, strict=True)), percent=True)
    yield chart("Evictions so far", hours=report.hours, lines=list(zip(names, spent, strict=True)))
