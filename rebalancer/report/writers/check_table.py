"""The preflight report for people: one line a check, its remedy below it."""

from __future__ import annotations

from collections import Counter

from rebalancer.report.checks import CheckReport, CheckStatus
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Column, Row, Sheet
from rebalancer.report.styles import status_cell


@writer(CheckReport, Format.TABLE, Format.WIDE)
def check_table(report: CheckReport, page: Page, fmt: Format) -> str:
    sheet = Sheet(page, wide=fmt is Format.WIDE)
    if report.cluster:
        sheet.facts([("Cluster", f"{report.cluster}, checked at {report.created_at}")])
        sheet.blank()
    columns = (Column("CHECK"), Column("STATUS"), Column("FOUND", wrap=True))
    rows = [
        Row((check.name, status_cell(check.status), check.sentence), note=f"-> {check.remedy}" if check.remedy else "")
        for check in report.checks
    ]
    sheet.grid(columns, rows, notes_under=2)
    counts = Counter(check.status for check in report.checks)
    sheet.blank()
    sheet.sentence(", ".join(f"{counts[status]} {status.value}" for status in CheckStatus), style="bold")
    return sheet.render()
