"""HTML pages: one file that loads nothing, every text escaped by the template engine, safe for any name that a cluster may hold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from rebalancer.report.page import Page


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("rebalancer.report", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=False
    )


def html_page(template: str, page: Page, values: Mapping[str, object]) -> str:
    """The page of a template of `report.templates`; characters beyond ASCII are written as references where the stream needs it."""
    text = _templates().get_template(template).render(values).rstrip("\n") + "\n"
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii") if page.ascii else text
