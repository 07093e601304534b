"""The documents without a page of their own: their wide table as it is, in a page that can be mailed or opened."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from rebalancer.plan.model import Plan
from rebalancer.report.checks import CheckReport
from rebalancer.report.demo import DemoComparison, DemoResult
from rebalancer.report.explanation import Explanation
from rebalancer.report.gpus import GpusReport
from rebalancer.report.html import html_page
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render, writer
from rebalancer.report.skew import SkewReport
from rebalancer.report.tenants import TenantsReport
from rebalancer.report.tenants_change import TenantsChangeReport


def _table_page(document: msgspec.Struct, page: Page, _: Format) -> str:
    text = render(document, Format.WIDE, replace(page, color=False, ascii=False))
    return html_page("page.html.j2", page, {"title": f"rebalancer: {getattr(document, 'kind', 'report')}", "text": text})


plan_page = writer(Plan, Format.HTML)(_table_page)
check_page = writer(CheckReport, Format.HTML)(_table_page)
demo_page = writer(DemoResult, Format.HTML)(_table_page)
comparison_page = writer(DemoComparison, Format.HTML)(_table_page)
skew_page = writer(SkewReport, Format.HTML)(_table_page)
tenants_page = writer(TenantsReport, Format.HTML)(_table_page)
tenants_change_page = writer(TenantsChangeReport, Format.HTML)(_table_page)
gpus_page = writer(GpusReport, Format.HTML)(_table_page)
explanation_page = writer(Explanation, Format.HTML)(_table_page)
