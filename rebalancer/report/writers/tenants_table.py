"""The shares of tenants for people: one block a resource, a bar for what is held of the cluster, with marks for use and guarantee.

In a bar ``█`` is used, ``▒`` is held and not used as far as is known, ``|`` is the guarantee; it is as wide as the cluster's capacity, or
as the largest number in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Cell, Column, Row, Sheet
from rebalancer.report.tenants import TenantResource, TenantRow, TenantsReport
from rebalancer.report.text import counted
from rebalancer.report.writers.csv_rows import CsvCell, csv_text
from rebalancer.units import format_bytes, format_cores, format_duration, format_percent

BAR = 20
_FIELDS = ("requested", "pending", "used", "measured", "guaranteed", "limit", "entitled", "borrowed", "wasted")


@writer(TenantsReport, Format.TABLE, Format.WIDE)
def tenants_table(report: TenantsReport, page: Page, fmt: Format) -> str:
    wide = fmt is Format.WIDE
    sheet = Sheet(page, wide=wide)
    sheet.facts(_header(report))
    if not report.tenants:
        sheet.blank()
        sheet.sentence("There are no tenants: the file names none, so nobody is evicted for a quota.")
        return sheet.render()
    _waiting(sheet, report)
    for resource in report.capacity:
        if wide or any(_matters(tenant.resources[resource]) for tenant in report.tenants):
            _resource(sheet, report, resource, page=page)
    sheet.blank()
    used, held = ("#", "-") if page.ascii else ("█", "▒")
    sheet.sentence(f"{used} used, {held} held and not used as far as is known, | guaranteed; of what the cluster has.", style="dim")
    return sheet.render()


def _header(report: TenantsReport) -> Iterator[tuple[str, str]]:
    yield "Tenants", f"{report.file}, {counted(len(report.tenants), 'tenant')}"
    yield "Cluster", f"{report.cluster}, read at {report.created_at}"
    if report.unclaimed_pods:
        yield "Unclaimed", f"{counted(report.unclaimed_pods, 'pod')} of nobody"
    for number, note in enumerate(report.notes):
        yield "Notes" if number == 0 else "", note


def _waiting(sheet: Sheet, report: TenantsReport) -> None:
    """Whose pods wait, and who holds idle GPUs."""
    rows = []
    for tenant in report.tenants:
        if not tenant.pending_pods and not tenant.idle_gpus:
            continue
        age = tenant.oldest_pending_seconds
        waits = "" if age is None else format_duration(round(age))
        idle = "?" if tenant.idle_gpus is None else f"{tenant.idle_gpus:g}"
        rows.append(Row((_name(tenant), f"{tenant.pods:,}", f"{tenant.pending_pods:,}", waits, idle)))
    if rows:
        columns = (Column("TENANT"), *(Column(head, right=True) for head in ("PODS", "PENDING", "FOR", "IDLE GPUS")))
        sheet.title("Waiting, and holding idle GPUs")
        sheet.grid(columns, rows)


def _name(tenant: TenantRow) -> str:
    return f"{'  ' * tenant.level}{tenant.name}"


def _matters(one: TenantResource) -> bool:
    return any(value for value in (one.requested, one.pending, one.guaranteed, one.entitled))


def _resource(sheet: Sheet, report: TenantsReport, resource: str, *, page: Page) -> None:
    capacity = report.capacity[resource]
    sheet.title(f"{resource} ({amount(resource, capacity)} in the cluster)")
    heads = ("HELD", "USED", "PENDING", "GUARANTEED", "ENTITLED", "BORROWED", "WASTED")
    columns = (Column("TENANT"), Column("OF THE CLUSTER"), *(Column(head, right=True) for head in heads))
    most = 0.0 if capacity is None else max([capacity, *(one.resources[resource].requested or 0.0 for one in report.tenants)])
    rows = []
    for tenant in report.tenants:
        one = tenant.resources[resource]
        below = one.guaranteed is not None and one.requested is not None and one.pending and one.requested < one.guaranteed - 1e-9
        values = (one.requested, one.used, one.pending, one.guaranteed, one.entitled, one.borrowed, one.wasted)
        style = "red" if below else ""
        rows.append(
            Row((Cell(_name(tenant), style), _bar(one, most, ascii_only=page.ascii), *(amount(resource, value) for value in values)))
        )
    sheet.grid(columns, rows)


def _bar(one: TenantResource, most: float, *, ascii_only: bool) -> str:
    if most <= 0 or one.requested is None:
        return "?" if one.requested is None else ""
    held = round(one.requested / most * BAR)
    used = min(held, round((one.used or 0.0) / most * BAR))
    full, part = ("#", "-") if ascii_only else ("█", "▒")
    cells = list(full * used + part * (held - used) + " " * max(0, BAR - held))[:BAR]
    if one.guaranteed:
        cells[min(BAR - 1, max(0, round(one.guaranteed / most * BAR) - 1))] = "|"
    return "".join(cells).rstrip()


def amount(resource: str, value: float | None) -> str:
    """As people count it: cores, bytes with a unit, devices."""
    if value is None:
        return "?"
    if resource == "cpu":
        return format_cores(value)
    if resource in ("memory", "ephemeral-storage"):
        return format_bytes(value)
    return f"{value:g}"


@writer(TenantsReport, Format.CSV)
def tenants_csv(report: TenantsReport, page: Page, _: Format) -> str:
    """One row a tenant and resource."""
    header = ["tenant", "parent", "level", "weight", "priority", "dominant_share", "pods", "pending_pods", "oldest_pending_seconds"]
    header += ["idle_gpus", "resource", "capacity", *_FIELDS]
    rows: list[list[CsvCell]] = []
    for tenant in report.tenants:
        own: list[CsvCell] = [tenant.name, tenant.parent, tenant.level, tenant.weight, tenant.priority, tenant.dominant_share, tenant.pods]
        own += [tenant.pending_pods, tenant.oldest_pending_seconds, tenant.idle_gpus]
        for resource, one in tenant.resources.items():
            rows.append([*own, resource, report.capacity[resource], *(getattr(one, field) for field in _FIELDS)])
    return csv_text(header, rows, page)


def explained(report: TenantsReport, name: str) -> list[str]:
    """Sentences about one tenant, with its numbers. Raises KeyError where there is none of the name."""
    tenant = {one.name: one for one in report.tenants}[name]
    lines = [f"Tenant {name}: {counted(tenant.pods, 'pod')} on nodes, {tenant.pending_pods:,} pending."]
    if tenant.oldest_pending_seconds is not None:
        lines.append(f"The oldest of them has been waiting for {format_duration(round(tenant.oldest_pending_seconds))}.")
    if tenant.dominant_share is not None:
        lines.append(f"Its dominant share is {format_percent(tenant.dominant_share)}, over its weight of {tenant.weight:g}.")
    for resource, one in tenant.resources.items():
        if _matters(one):
            lines.append(_sentence(resource, one))
    return lines


def _sentence(resource: str, one: TenantResource) -> str:
    def shown(value: float | None) -> str:
        return "an unknown amount" if value is None else amount(resource, value)

    words = (
        f"{resource}: holds {shown(one.requested)} of {shown(one.guaranteed)} guaranteed and {shown(one.entitled)} that it is entitled to"
    )
    if one.pending:
        words += f", waits for {shown(one.pending)}"
    if one.borrowed:
        words += f", borrows {shown(one.borrowed)}"
    if one.limit is not None:
        words += f", may reach {shown(one.limit)}"
    if one.used is not None:
        words += f"; uses {shown(one.used)}"
        if one.measured is not None and one.measured < 1:
            words += f" by what is measured of {format_percent(one.measured)} of it"
    if one.wasted:
        words += f"; {shown(one.wasted)} of it lie idle"
    return words + "."
