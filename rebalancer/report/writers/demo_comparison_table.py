"""What soft taints are worth, for people: the same cluster, run with and without them, side by side."""

from __future__ import annotations

from rebalancer.report.demo import DemoComparison, DemoResult
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Column, Row, Sheet
from rebalancer.units import format_percent


@writer(DemoComparison, Format.TABLE, Format.WIDE)
def demo_comparison_table(comparison: DemoComparison, page: Page, fmt: Format) -> str:
    sheet = Sheet(page, wide=fmt is Format.WIDE)
    with_, without = comparison.with_soft_taints, comparison.without_soft_taints
    size = f"{with_.nodes:,} nodes, {with_.pods:,} pods, " if with_.nodes else ""
    sheet.facts([("Demo", f"{size}{with_.cycles} cycles, seed {with_.seed}, run twice")])
    sheet.blank()
    columns = (Column(""), Column("START", right=True), Column("WITH SOFT TAINTS", right=True), Column("WITHOUT", right=True))
    rows = [
        Row(("hot nodes", f"{with_.before.hot_nodes:,}", f"{with_.after.hot_nodes:,}", f"{without.after.hot_nodes:,}")),
        Row(("hot nodes, mean of the cycles", "", _mean_hot(with_), _mean_hot(without))),
        Row(("worst load", *_percents(with_.before.max_load, with_.after.max_load, without.after.max_load))),
        Row(("worst load at any time", "", *_percents(with_.worst_load_seen, without.worst_load_seen))),
        Row(("spread", *_percents(with_.before.stddev, with_.after.stddev, without.after.stddev, digits=1))),
        Row(("evictions", "", f"{with_.evictions:,}", f"{without.evictions:,}")),
        Row(("landed as planned", "", f"{with_.landing.as_planned:,}", f"{without.landing.as_planned:,}")),
        Row(("landed elsewhere", "", f"{with_.landing.elsewhere:,}", f"{without.landing.elsewhere:,}")),
    ]
    sheet.grid(columns, rows)
    return sheet.render()


def _percents(*ratios: float | None, digits: int = 0) -> tuple[str, ...]:
    return tuple(format_percent(ratio, digits=digits) for ratio in ratios)


def _mean_hot(result: DemoResult) -> str:
    return f"{sum(one.state.hot_nodes for one in result.course) / len(result.course):.1f}" if result.course else "?"
