"""What another tenants file would change, for people: a block a resource, each cell ``before → after`` where it changes."""

from __future__ import annotations

from rebalancer.plan.model import PodRef
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Column, Row, Sheet
from rebalancer.report.tenants_change import FIELDS, Change, TenantChange, TenantsChangeReport
from rebalancer.report.text import counted
from rebalancer.report.writers.csv_rows import CsvCell, csv_text
from rebalancer.report.writers.tenants_table import amount

_FIELDS = ("requested", *FIELDS)


@writer(TenantsChangeReport, Format.TABLE, Format.WIDE)
def tenants_change_table(report: TenantsChangeReport, page: Page, fmt: Format) -> str:
    sheet = Sheet(page, wide=fmt is Format.WIDE)
    facts = [
        ("Tenants", f"{report.after or 'none'} instead of {report.before or 'none'}"),
        ("Cluster", f"{report.cluster}, read at {report.created_at}"),
    ]
    if report.come:
        facts.append(("New", ", ".join(report.come)))
    if report.gone:
        facts.append(("Gone", ", ".join(report.gone)))
    unclaimed = report.unclaimed_pods
    if unclaimed.before != unclaimed.after:
        facts.append(("Unclaimed", f"{unclaimed.before or 0:,.0f} pods of nobody before, {unclaimed.after or 0:,.0f} after"))
    sheet.facts(facts)
    if not report.changes:
        sheet.blank()
        sheet.sentence("No share of any tenant changes.")
    arrow, shown = "->" if page.ascii else "→", [change for change in report.changes if _matters(change)]
    for resource in dict.fromkeys(change.resource for change in shown):
        rows = [
            Row((change.tenant, *(_cell(resource, getattr(change, field), arrow) for field in _FIELDS)))
            for change in shown
            if change.resource == resource
        ]
        sheet.title(resource)
        heads = ("HELD", "GUARANTEED", "LIMIT", "ENTITLED", "BORROWED")
        sheet.grid((Column("TENANT"), *(Column(head, right=True) for head in heads)), rows)
    sheet.title(f"Reclaimed in the first cycle, if the policy reclaims: {counted(len(report.moves), 'pod')}")
    if report.moves:
        moves = [
            Row((f"{move.pod.namespace}/{move.pod.name}", move.tenant or "", move.source, _waits(move.makes_room_for)))
            for move in report.moves
        ]
        sheet.grid((Column("POD"), Column("TENANT"), Column("LEAVES"), Column("FOR")), moves)
    sheet.sentence(report.outcome, indent=2)
    return sheet.render()


def _matters(change: TenantChange) -> bool:
    return any(getattr(change, field).before or getattr(change, field).after for field in _FIELDS)


def _waits(pod: PodRef | None) -> str:
    return "" if pod is None else f"{pod.namespace}/{pod.name}"


def _cell(resource: str, change: Change, arrow: str) -> str:
    before, after = ("-" if value is None else amount(resource, value) for value in (change.before, change.after))
    return after if before == after else f"{before} {arrow} {after}"


@writer(TenantsChangeReport, Format.CSV)
def tenants_change_csv(report: TenantsChangeReport, page: Page, _: Format) -> str:
    """One row a tenant and resource that changes, in base units."""
    header = ["tenant", "resource", *(f"{field}_{when}" for field in _FIELDS for when in ("before", "after"))]
    rows: list[list[CsvCell]] = [
        [change.tenant, change.resource, *(getattr(getattr(change, field), when) for field in _FIELDS for when in ("before", "after"))]
        for change in report.changes
    ]
    return csv_text(header, rows, page)
