"""The end of the demonstration of tenants for people."""

from __future__ import annotations

from dataclasses import replace

from rebalancer.report.demo_tenants import TenantsDemoResult, TenantState
from rebalancer.report.html import html_page
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render, writer
from rebalancer.report.sheet import Cell, Column, Row, Sheet
from rebalancer.report.text import counted
from rebalancer.report.writers.csv_rows import CsvCell, csv_text


@writer(TenantsDemoResult, Format.TABLE, Format.WIDE)
def tenants_demo_table(result: TenantsDemoResult, page: Page, fmt: Format) -> str:
    sheet = Sheet(page, wide=fmt is Format.WIDE)
    evicted = ", ".join(f"{count} of {tenant}" for tenant, count in result.evictions.items()) or "none"
    sheet.facts(
        [
            ("Demo", f"{result.nodes:,} nodes, {result.pods:,} pods, {counted(result.cycles, 'cycle')}, seed {result.seed}"),
            ("Evictions", f"{sum(result.evictions.values())}: {evicted}"),
            ("Room", f"{counted(result.named_nodes, 'pod')} of {result.starved} run on the nodes that room was made on"),
            ("Guarantees", f"broken for {', '.join(result.under_guarantee)}" if result.under_guarantee else "no tenant fell under its own"),
        ]
    )
    sheet.title("Cores by tenant")
    heads = ("GUARANTEED", "HELD BEFORE", "HELD AFTER", "WAITING BEFORE", "WAITING AFTER")
    after = {one.name: one for one in result.after}
    rows = [_row(one, after[one.name]) for one in result.before]
    sheet.grid((Column("TENANT"), *(Column(head, right=True) for head in heads)), rows)
    sheet.title("Cycles")
    columns = (
        Column("CYCLE", right=True),
        Column("METHOD"),
        Column("EVICTED", right=True),
        Column("WAITING", right=True),
        Column("OUTCOME", wrap=True),
    )
    sheet.grid(columns, [Row((str(one.cycle), one.method, f"{one.evicted}", f"{one.pending_pods}", one.outcome)) for one in result.course])
    if result.refused:
        sheet.title(f"Refused candidates ({sum(result.refused.values()):,})")
        sheet.grid((Column("GATE"), Column("COUNT", right=True)), [Row((gate, f"{count:,}")) for gate, count in result.refused.items()])
    return sheet.render()


def _row(before: TenantState, after: TenantState) -> Row:
    waiting = Cell(f"{after.waiting:g}", "green" if before.waiting and not after.waiting else "")
    return Row((before.name, f"{before.guaranteed:g}", f"{before.held:g}", f"{after.held:g}", f"{before.waiting:g}", waiting))


@writer(TenantsDemoResult, Format.CSV)
def tenants_demo_csv(result: TenantsDemoResult, page: Page, _: Format) -> str:
    """One row a tenant and moment."""
    moments = (("before", result.before), ("after", result.after))
    rows: list[list[CsvCell]] = [
        [moment, one.name, one.guaranteed, one.held, one.waiting, one.pending_pods] for moment, states in moments for one in states
    ]
    return csv_text(["moment", "tenant", "guaranteed", "held", "waiting", "pending_pods"], rows, page)


@writer(TenantsDemoResult, Format.HTML)
def tenants_demo_page(result: TenantsDemoResult, page: Page, _: Format) -> str:
    text = render(result, Format.WIDE, replace(page, color=False, ascii=False))
    return html_page("page.html.j2", page, {"title": "rebalancer: demonstration of tenants", "text": text})
