"""The end of the demonstration for people: before and after, what it cost, what was refused and why."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.report.demo import DemoResult, DemoState
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Cell, Column, Row, Sheet
from rebalancer.report.text import counted
from rebalancer.units import format_percent


@writer(DemoResult, Format.TABLE, Format.WIDE)
def demo_table(result: DemoResult, page: Page, fmt: Format) -> str:
    sheet = Sheet(page, wide=fmt is Format.WIDE)
    gpus = f"{result.gpus:,} GPUs, " if isinstance(result.gpus, int) else ""
    size = f"{result.nodes:,} nodes, {gpus}{result.pods:,} pods, " if result.nodes else ""
    sheet.facts(
        [
            ("Demo", f"{size}{result.cycles} cycles, seed {result.seed}, soft taints {'on' if result.soft_taints else 'off'}"),
            ("Evictions", f"{result.evictions:,}{_landing(result)}"),
            ("Worst seen", "" if result.worst_load_seen is None else f"{format_percent(result.worst_load_seen)} on any node at any time"),
            ("GPUs", _gpus_at_any_time(result)),
        ]
    )
    sheet.blank()
    columns = (Column(""), Column("BEFORE", right=True), Column("AFTER", right=True))
    before, after = result.before, result.after
    rows = [
        Row(("hot nodes", Cell(f"{before.hot_nodes:,}", "red" if before.hot_nodes else ""), _calm(after))),
        Row(("worst load", format_percent(before.max_load), format_percent(after.max_load))),
        Row(("spread", format_percent(before.stddev, digits=1), format_percent(after.stddev, digits=1))),
    ]
    sheet.grid(columns, [*rows, *_gpu_rows(before, after)])
    _course(sheet, result)
    _refused(sheet, result)
    return sheet.render()


def _landing(result: DemoResult) -> str:
    landing = result.landing
    if not (landing.as_planned or landing.elsewhere or landing.pending):
        return ""
    pending = f", {landing.pending} pending" if landing.pending else ""
    return f": {landing.as_planned} replacements landed as planned, {landing.elsewhere} elsewhere{pending}"


def _calm(state: DemoState) -> Cell:
    return _good(state.hot_nodes)


def _good(count: int) -> Cell:
    """Of something of which there should be none."""
    return Cell(f"{count:,}", "red" if count else "green")


def _gpus_at_any_time(result: DemoResult) -> str:
    if not isinstance(result.devices_overfilled, int) or not isinstance(result.gangs_broken, int):
        return ""
    return f"{counted(result.devices_overfilled, 'device')} overfilled and {counted(result.gangs_broken, 'gang')} broken at any time"


def _gpu_rows(before: DemoState, after: DemoState) -> Iterator[Row]:
    """Nothing for a demonstration without GPUs."""
    for title, one, other in (
        ("hot by GPU", before.gpu_hot_nodes, after.gpu_hot_nodes),
        ("over-full GPUs", before.overfull_devices, after.overfull_devices),
        ("broken gangs", before.gangs_broken, after.gangs_broken),
    ):
        if isinstance(one, int) and isinstance(other, int):
            yield Row((title, Cell(f"{one:,}", "red" if one else ""), _good(other)))
    if isinstance(before.worst_device_memory, float) and isinstance(after.worst_device_memory, float):
        yield Row(("worst GPU memory", format_percent(before.worst_device_memory), format_percent(after.worst_device_memory)))


def _course(sheet: Sheet, result: DemoResult) -> None:
    if not result.course:
        return
    sheet.title("Cycles")
    columns = (
        Column("CYCLE", right=True),
        Column("MOVES", right=True),
        Column("HOT", right=True),
        Column("WORST", right=True),
        Column("OUTCOME", wrap=True),
    )
    rows = [
        Row((str(one.cycle), f"{one.moves:,}", f"{one.state.hot_nodes:,}", format_percent(one.state.max_load), one.outcome))
        for one in result.course
    ]
    sheet.grid(columns, rows)


def _refused(sheet: Sheet, result: DemoResult) -> None:
    if not result.refused:
        return
    sheet.title(f"Refused candidates ({sum(result.refused.values()):,})")
    columns = (Column("GATE"), Column("COUNT", right=True), Column("FOR EXAMPLE", wrap=True))
    counts = sorted(result.refused.items(), key=lambda item: (-item[1], item[0]))
    sheet.grid(columns, [Row((gate, f"{count:,}", result.examples.get(gate, ""))) for gate, count in counts])
