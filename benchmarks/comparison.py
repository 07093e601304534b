"""What a comparison with the peers came to: one table a scenario, and in words where this project is better and where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scene import Machine
from rebalancer.report.simulation import SimulationReport, StrategyResult

OWN = "rebalancer"
OWN_DEFAULTS = "rebalancer, defaults"
IDLE = "none"


@dataclass(frozen=True, slots=True)
class Column:
    """A number of a strategy; less is better. None: not known."""

    title: str
    value: Callable[[StrategyResult], float | None]
    spell: Callable[[float], str]


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.1%}".replace("%", " %")


COLUMNS: tuple[Column, ...] = (
    Column("hot node-minutes", lambda one: one.hot_node_minutes, _whole),
    Column("evictions", lambda one: one.evictions, _whole),
    Column("made hot", lambda one: one.made_hot, _whole),
    Column("came to a hot node", lambda one: one.landed_on_hot, _whole),
    Column("worst load", lambda one: one.worst_load, _percent),
    Column("mean spread", lambda one: one.mean_spread, _percent),
    Column("throttled core-hours", lambda one: one.throttled_core_hours, "{:,.2f}".format),
    Column("PDB violations", lambda one: one.budget_violations, _whole),
    Column("cycles without a decision", lambda one: one.undecided_cycles, _whole),
)


def markdown(reports: Sequence[SimulationReport], *, machine: Machine, version: str, command: str) -> str:
    """The page."""
    template = Path(__file__).with_name("peers_page.md").read_text(encoding="utf-8")
    circumstances = "\n".join(f"- {line}" for line in _circumstances(reports, machine, version))
    return template.format(command=command, circumstances=circumstances, scenarios="\n\n".join(section(report) for report in reports))


def section(report: SimulationReport) -> str:
    """One scenario: what it is, its table, and how this project stands in it."""
    head = [
        f"## {report.scenario}",
        "",
        f"{report.description} {report.nodes:,} nodes, {report.pods:,} pods, {report.hours:g} simulated hours, seed {report.seed}.",
        "",
    ]
    rows = [("", *(column.title for column in COLUMNS)), ("---", *["---:"] * len(COLUMNS)), *(_row(one) for one in report.results)]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows), "", *standing(report)])


def standing(report: SimulationReport) -> list[str]:
    """Sentences on the peer with the fewest hot node-minutes, and on every number in which a peer is better than this project."""
    own = next((one for one in report.results if one.name == OWN), None)
    peers = [one for one in report.results if one.name not in (OWN, OWN_DEFAULTS, IDLE)]
    if own is None or not peers:
        return []
    if not any(one.hot_node_minutes or one.evictions for one in report.results):
        return ["No node was hot in these hours, and nobody evicted anything: the run tells the strategies apart in nothing."]
    best = min(peers, key=lambda one: (one.hot_node_minutes, one.evictions))
    sentences = [
        f"Against {best.name}, the peer with the fewest hot node-minutes: {_beside(own.hot_node_minutes, best.hot_node_minutes)} hot "
        f"node-minutes, {_beside(own.evictions, best.evictions)} evictions."
    ]
    worse = [text for column in COLUMNS if (text := _better_peers(column, own, peers))]
    sentences.append(f"Where a peer does better: {'; '.join(worse)}." if worse else "No peer does better in any column.")
    idle = next((one for one in report.results if one.strategy == IDLE), None)
    if idle is not None and idle.worst_load is not None and own.worst_load is not None and own.worst_load > idle.worst_load:
        sentences.append(
            f"The worst load is higher than where nothing is done: {_percent(own.worst_load)} and {_percent(idle.worst_load)}."
        )
    return sentences


def _better_peers(column: Column, own: StrategyResult, peers: Sequence[StrategyResult]) -> str:
    mine = column.value(own)
    theirs = [(value, one.name) for one in peers if (value := column.value(one)) is not None]
    if mine is None or not theirs:
        return ""
    value, name = min(theirs)
    return f"{column.title} ({name} {column.spell(value)}, rebalancer {column.spell(mine)})" if value < mine else ""


def _beside(mine: float, theirs: float) -> str:
    share = f" ({_percent(mine / theirs)})" if theirs else ""
    return f"{_whole(mine)} to {_whole(theirs)}{share}"


def _row(one: StrategyResult) -> tuple[str, ...]:
    values = ((column, column.value(one)) for column in COLUMNS)
    return (one.name, *("unknown" if value is None else column.spell(value) for column, value in values))


def _circumstances(reports: Sequence[SimulationReport], machine: Machine, version: str) -> list[str]:
    seeds = sorted({report.seed for report in reports})
    seconds = sum(one.wall_seconds for report in reports for one in report.results)
    return [
        f"machine: {machine.processor}, {machine.cores} cores, {machine.system}, load average at the start {machine.load_average:.1f}",
        f"rebalancer {version}, Python {machine.python}, numpy {machine.numpy}",
        f"seed {', '.join(map(str, seeds))}; {seconds:,.0f} s in all",
    ]
