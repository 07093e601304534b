"""Accounts for people: a block a resource, in hours of what people count in (cores, GiB, devices)."""

from __future__ import annotations

from dataclasses import replace

from rebalancer.report.accounting import AccountingReport, AccountRow
from rebalancer.report.html import html_page
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render, writer
from rebalancer.report.sheet import Column, Row, Sheet
from rebalancer.report.writers.csv_rows import CsvCell, csv_text
from rebalancer.units import format_percent

_FIELDS = ("requested_hours", "used_hours", "wasted_hours", "borrowed_hours", "guaranteed_hours")
GIB = 2.0**30


@writer(AccountingReport, Format.TABLE, Format.WIDE)
def accounting_table(report: AccountingReport, page: Page, fmt: Format) -> str:
    sheet = Sheet(page, wide=fmt is Format.WIDE)
    facts = [("Period", f"{report.since} to {report.until}, every {report.step_seconds:g} s")]
    facts += [("Notes" if number == 0 else "", note) for number, note in enumerate(report.notes)]
    sheet.facts(facts)
    if not report.rows:
        sheet.blank()
        sheet.sentence(
            "Nothing is recorded of any tenant in this period: `rebalancer run --tenants FILE` makes the metrics, "
            "and Prometheus has to scrape it."
        )
        return sheet.render()
    for resource in dict.fromkeys(row.resource for row in report.rows):
        _resource(sheet, report, resource)
    return sheet.render()


def _resource(sheet: Sheet, report: AccountingReport, resource: str) -> None:
    rows = [row for row in report.rows if row.resource == resource]
    priced = any(row.cost is not None for row in rows)
    sheet.title(f"{resource}, {_unit(resource)}-hours")
    heads = [
        "REQUESTED",
        "USED",
        "WASTED",
        "BORROWED",
        "GUARANTEED",
        "RECORDED",
        "MEASURED",
        *([f"COST {report.currency}".strip()] if priced else []),
    ]
    lines = [
        Row(
            (
                row.tenant,
                *(_hours(row, field) for field in _FIELDS),
                format_percent(row.coverage),
                "?" if row.measured is None else format_percent(row.measured),
                *(["?" if row.cost is None else f"{row.cost:,.2f}"] if priced else []),
            )
        )
        for row in rows
    ]
    sheet.grid((Column("TENANT"), *(Column(head, right=True) for head in heads)), lines)


def _unit(resource: str) -> str:
    return {"cpu": "core", "memory": "GiB", "ephemeral-storage": "GiB"}.get(resource, "device" if resource.startswith("gpu") else "unit")


def _hours(row: AccountRow, field: str) -> str:
    value: float | None = getattr(row, field)
    if value is None:
        return "?"
    return f"{value / GIB if _unit(row.resource) == 'GiB' else value:,.1f}"


@writer(AccountingReport, Format.CSV)
def accounting_csv(report: AccountingReport, page: Page, _: Format) -> str:
    """One row a tenant and resource, in base units."""
    header = ["since", "until", "tenant", "resource", *_FIELDS, "coverage", "measured", "cost", "currency"]
    rows: list[list[CsvCell]] = [
        [
            report.since,
            report.until,
            row.tenant,
            row.resource,
            *(getattr(row, field) for field in _FIELDS),
            row.coverage,
            row.measured,
            row.cost,
            report.currency,
        ]
        for row in report.rows
    ]
    return csv_text(header, rows, page)


@writer(AccountingReport, Format.HTML)
def accounting_page(report: AccountingReport, page: Page, _: Format) -> str:
    text = render(report, Format.WIDE, replace(page, color=False, ascii=False))
    return html_page("page.html.j2", page, {"title": "rebalancer: accounts", "text": text})
