"""Skew for people: pools, then the worst nodes, workloads and namespaces, one line a subject and signal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalancer.plan.model import ShareReport
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Cell, Column, Row, Sheet
from rebalancer.report.skew import NodeSkew, PodsSkew, SkewReport
from rebalancer.report.styles import class_cell
from rebalancer.units import format_duration, format_percent, format_quantity

_SHOWN = 10
_NAME_LEAST = 20


@writer(SkewReport, Format.TABLE, Format.WIDE)
def skew_table(report: SkewReport, page: Page, fmt: Format) -> str:
    wide = fmt is Format.WIDE
    sheet = Sheet(page, wide=wide)
    sheet.facts(_header(report))
    _pools(sheet, report)
    _nodes(sheet, report.nodes, wide=wide)
    _pods(sheet, "Workloads", "WORKLOAD", report.workloads, wide=wide)
    _pods(sheet, "Namespaces", "NAMESPACE", report.namespaces, wide=wide)
    return sheet.render()


def _header(report: SkewReport) -> Iterator[tuple[str, str]]:
    yield "Cluster", f"{report.cluster}, read at {report.created_at}"
    yield "Usage", f"mean of {format_duration(report.window_seconds)}"
    yield "Metrics", f"{_share('nodes', report.coverage.nodes)}, {_share('pods', report.coverage.pods)}"
    yield "Quadrants", ", ".join(f"{count:,} {quadrant}" for quadrant, count in report.quadrants.items())
    if report.bare_pods:
        yield "Bare pods", f"{report.bare_pods:,}, counted in their namespaces only"
    for number, note in enumerate(report.coverage.notes):
        yield "Notes" if number == 0 else "", note


def _share(noun: str, share: ShareReport) -> str:
    return f"{share.known:,} of {share.of:,} {noun} known"


def _pools(sheet: Sheet, report: SkewReport) -> None:
    sheet.title("Pools")
    columns = (Column("POOL"), Column("NODES", right=True), Column("SIGNAL"), Column("MEAN LOAD", right=True), Column("SPREAD", right=True))
    rows = [
        Row((pool.name, f"{pool.nodes:,}", name, format_percent(signal.mean), format_percent(signal.stddev, digits=1)))
        for pool in report.pools
        for name, signal in pool.signals.items()
    ]
    sheet.grid(columns, rows)


def _nodes(sheet: Sheet, nodes: Sequence[NodeSkew], *, wide: bool) -> None:
    shown = nodes if wide else nodes[:_SHOWN]
    sheet.title(_of("Nodes", len(shown), len(nodes)))
    columns = [
        Column("NODE", least=_NAME_LEAST),
        Column("CLASS"),
        *([Column("POOL")] if wide else []),
        Column("QUADRANT"),
        Column("SIGNAL"),
        Column("PACKED", right=True),
        Column("LOAD", right=True),
        Column("SKEW", right=True),
    ]
    rows = []
    for node in shown:
        for name, signal in node.signals.items():
            pool = [node.pool or "none"] if wide else []
            numbers = (format_percent(signal.packing), format_percent(signal.load), _points(signal.skew))
            rows.append(Row((node.name, class_cell(node.node_class), *pool, node.quadrant or "unknown", name, *numbers)))
    sheet.grid(columns, rows)


def _pods(sheet: Sheet, title: str, heading: str, groups: Sequence[PodsSkew], *, wide: bool) -> None:
    shown = groups if wide else groups[:_SHOWN]
    sheet.title(_of(title, len(shown), len(groups)))
    columns = (
        Column(heading, least=_NAME_LEAST),
        Column("PODS", right=True),
        Column("UNMEASURED", right=True),
        Column("SIGNAL"),
        Column("REQUEST", right=True),
        Column("USAGE", right=True),
        Column("OF REQUEST", right=True),
        Column("SKEW", right=True),
    )
    rows = []
    for group in shown:
        name = group.name if group.kind == "Namespace" else f"{group.namespace}/{group.name}"
        subject = f"{name} ({group.kind})" if wide and group.kind != "Namespace" else name
        for signal_name, signal in group.signals.items():
            rows.append(
                Row(
                    (
                        subject,
                        f"{group.pods:,}",
                        Cell(f"{signal.unmeasured:,}", "yellow" if signal.unmeasured else ""),
                        signal_name,
                        format_quantity(signal.measured_request, signal.unit),
                        format_quantity(signal.usage, signal.unit),
                        format_percent(signal.ratio),
                        _signed(signal.skew, signal.unit),
                    )
                )
            )
    sheet.grid(columns, rows)


def _of(title: str, shown: int, total: int) -> str:
    return f"{title} ({total:,})" if shown == total else f"{title} (the {shown} worst of {total:,}; -o wide shows all)"


def _signed(value: float | None, unit: str) -> str:
    text = format_quantity(value, unit)
    return f"+{text}" if value is not None and value > 0 else text


def _points(ratio: float | None) -> str:
    """Percentage points with a sign."""
    return "?" if ratio is None else f"{ratio * 100:+.0f}"
