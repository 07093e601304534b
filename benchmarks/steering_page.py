"""The ways of steering side by side: tables for a terminal, a page for the file that keeps them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.scene import Machine
from rebalancer.state.arrays import FloatArray, IntArray
from tests.e2e.reference_course import HOT, Course
from tests.e2e.reference_town import Town
from tests.e2e.steering_failures import Latency
from tests.e2e.steering_run import BURST, CALM_NODES, HOT_NODES, WARM_UP_S, Burst
from tests.e2e.steering_ways import RESERVATIONS

MOMENTS = 5
"""Of each closed loop, evenly from its start to its end."""
Rows = Sequence[Sequence[str]]
T = TypeVar("T")


@dataclass(frozen=True)
class Findings:
    courses: Sequence[Course]
    bursts: Sequence[Burst]
    latencies: Sequence[Latency]


LOOP: Sequence[tuple[str, Callable[[Course], str]]] = (
    ("", lambda one: one.name),
    ("evictions", lambda one: str(one.evictions)),
    ("on the planned node", lambda one: _of(one.on_named, one.evictions)),
    ("there, or as good", lambda one: _of(one.as_planned, sum(one.settled.values()))),
    ("workloads evicted again", lambda one: str(len(one.again))),
    ("worst load, %", lambda one: " → ".join(f"{load * 100:.0f}" for load in _at_moments(one, one.loads.max(axis=1)))),
    ("hot nodes", lambda one: " → ".join(f"{count:.0f}" for count in _at_moments(one, (one.loads > HOT).sum(axis=1)))),
    ("on average", lambda one: f"{one.hot():.2f}"),
    ("without moves", lambda one: f"{one.hot_idle():.2f}"),
)
BURSTS: Sequence[tuple[str, Callable[[Burst], str]]] = (
    ("", lambda one: one.name),
    ("on hot nodes", lambda one: f"{one.hot} of {one.pods} ({one.share * 100:.1f} %)"),
    ("most on one node", lambda one: str(one.busiest)),
    ("all bound after", lambda one: f"{one.seconds:.1f} s"),
)
LATENCIES: Sequence[tuple[str, Callable[[Latency], str]]] = (
    ("the extender", lambda one: one.name),
    ("pods bound", lambda one: str(len(one.seconds))),
    ("in the middle", lambda one: f"{sorted(one.seconds)[len(one.seconds) // 2]:.2f} s"),
    ("at most", lambda one: f"{max(one.seconds):.2f} s"),
)


def tables(findings: Findings) -> list[str]:
    """Columns of equal width."""
    return [line for rows in _all(findings) for line in (*_aligned(rows), "")]


def markdown(findings: Findings, *, town: Town, machine: Machine, kubernetes: str, seconds: float, command: str) -> str:
    loop, bursts, latencies = (_markdown(rows) for rows in _all(findings))
    circumstances = (
        f"machine: {machine.processor}, {machine.cores} cores, {machine.system}, load average at the start {machine.load_average:.1f}",
        f"Kubernetes {kubernetes or 'of a version that nobody told'}, Python {machine.python}",
        f"seed {town.seed}; {seconds:g} s of each closed loop measured, after {WARM_UP_S:g} s of metrics",
    )
    return (
        Path(__file__)
        .with_name("steering_page.md")
        .read_text(encoding="utf-8")
        .format(
            command=command,
            circumstances="\n".join(f"- {line}" for line in circumstances),
            loop=loop,
            bursts=bursts,
            latencies=latencies,
            nodes=len(town.nodes),
            cores=town.nodes[0].cpu,
            pods=town.pods,
            deployments=len(town.crops),
            high=f"{HOT * 100:g} %",
            burst=BURST,
            burst_nodes=CALM_NODES + HOT_NODES,
            hot_nodes=HOT_NODES,
            hot_share=f"{HOT_NODES / (CALM_NODES + HOT_NODES) * 100:.0f} %",
            policy="spec:\n" + RESERVATIONS.spec.rstrip(),
        )
    )


def _all(findings: Findings) -> tuple[Rows, Rows, Rows]:
    return _rows(LOOP, findings.courses), _rows(BURSTS, findings.bursts), _rows(LATENCIES, findings.latencies)


def _rows(columns: Sequence[tuple[str, Callable[[T], str]]], found: Sequence[T]) -> Rows:
    return [[title for title, _ in columns], *([show(one) for _, show in columns] for one in found)]


def _aligned(rows: Rows) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _markdown(rows: Rows) -> str:
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rest))


def _at_moments(course: Course, values: FloatArray | IntArray) -> list[float]:
    rows = np.linspace(0, len(course.times) - 1, MOMENTS).round().astype(int)
    return [float(values[row]) for row in rows]


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole * 100:.0f} %)" if whole else "-"
