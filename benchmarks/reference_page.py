"""The contenders side by side: a table for a terminal, a page for the file that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.scene import Machine
from tests.e2e.reference_course import HOT, SETTLED_S, Course
from tests.e2e.reference_run import REBALANCER
from tests.e2e.reference_town import PERIOD_S, Town

COLUMNS: Sequence[tuple[str, Callable[[Course], str]]] = (
    ("", lambda one: one.name),
    ("evictions", lambda one: str(one.evictions)),
    ("hot nodes, mean", lambda one: f"{one.hot():.2f}"),
    ("after the first minute", lambda one: f"{one.hot(after=SETTLED_S):.2f}"),
    ("without moves", lambda one: f"{one.hot_idle(after=SETTLED_S):.2f}"),
    ("made hot", lambda one: str(len(one.made_hot))),
    ("worst load", lambda one: _percent(one.worst)),
    ("without moves", lambda one: _percent(one.worst_idle)),
    ("above it", lambda one: _percent(one.above_idle) if one.above_idle > 0.005 else "never"),
    ("landed as planned", lambda one: f"{one.as_planned} of {sum(one.settled.values())}" if one.evictions else "-"),
    ("on the node named first", lambda one: f"{one.on_named} of {one.evictions}" if one.evictions else "-"),
)


def table(courses: Sequence[Course]) -> list[str]:
    """Columns of equal width."""
    rows = _rows(courses)
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def markdown(courses: Sequence[Course], *, town: Town, machine: Machine, kubernetes: str, seconds: float, command: str) -> str:
    head, *rows = _rows(courses)
    ruler = ["---", *["---:"] * (len(COLUMNS) - 1)]
    circumstances = (
        f"machine: {machine.processor}, {machine.cores} cores, {machine.system}, load average at the start {machine.load_average:.1f}",
        f"Kubernetes {kubernetes or 'of a version that nobody told'}, Python {machine.python}",
        f"seed {town.seed}; {seconds:g} s measured",
    )
    return (
        Path(__file__)
        .with_name("reference_page.md")
        .read_text(encoding="utf-8")
        .format(
            command=command,
            circumstances="\n".join(f"- {line}" for line in circumstances),
            table="\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *rows)),
            population=population(town),
            high=_percent(HOT),
            policy="spec:\n" + (REBALANCER.spec or "").rstrip(),
        )
    )


def population(town: Town) -> str:
    load = town.cores(0.0).sum() / sum(node.cpu for node in town.nodes)
    low, high = (f"{seconds / 60:g}" for seconds in PERIOD_S)
    sentences = (
        f"{len(town.nodes)} nodes of {town.nodes[0].cpu} cores, {town.pods:,} pods in {len(town.crops)} Deployments,",
        f"CPU use at {_percent(load)} of the nodes at the start.",
        "Requests and levels of use are drawn as `config/scenarios/skewed.yaml` says;",
        f"each pod's use is a wave of 25 % around its level, {low} to {high} minutes long.",
    )
    return "\n  ".join(sentences)


def _rows(courses: Sequence[Course]) -> list[tuple[str, ...]]:
    return [tuple(title for title, _ in COLUMNS), *(tuple(show(course) for _, show in COLUMNS) for course in courses)]


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
