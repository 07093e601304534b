"""JSON, YAML and CSV: whole, and harmless wherever they are opened."""

from __future__ import annotations

import csv
import io
import json
import math

from msgspec.structs import replace

from rebalancer.plan.model import Plan
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from tests.report import cases, samples
from tests.report.documents import all_documents


def _with_reason(reason: str) -> Plan:
    plan = samples.plan()
    return replace(plan, moves=(replace(plan.moves[0], reason=reason),), refused=(replace(plan.refused[0], reason=reason),))


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_unknown_numbers_are_null_and_never_zero() -> None:
    """NaN and infinity become null in JSON and YAML, an empty cell in CSV, a question mark in a table."""
    plan = samples.plan()
    move = plan.moves[0]
    signal = replace(move.signals["cpu"], source_before=math.nan, source_after=math.inf, destination_before=None)
    plan = replace(plan, moves=(replace(move, signals={"cpu": signal}),))
    written = json.loads(render(plan, Format.JSON, Page()))["moves"][0]["signals"]["cpu"]
    assert (written["sourceBefore"], written["sourceAfter"], written["destinationBefore"]) == (None, None, None)
    assert ".nan" not in render(plan, Format.YAML, Page())
    row = _rows(render(plan, Format.CSV, Page()))[0]
    assert (row["cpu_source_before"], row["cpu_source_after"], row["cpu_destination_before"]) == ("", "", "")
    assert "? -> ?" in render(plan, Format.TABLE, Page())


def test_nothing_from_the_cluster_reaches_the_terminal_raw() -> None:
    """Escapes and direction marks in a reason survive in no format, as they are."""
    plan = _with_reason("\x1b[2J\x9b31m\u202eevil\x07 [bold red]not markup[/] :smile:")
    for fmt in Format:
        text = render(plan, fmt, Page())
        assert not set(text) & set("\x1b\x9b\u202e\x07"), fmt
        assert "[bold red]not markup[/] :smile:" in text.replace("\n", "")


def test_a_csv_cell_is_never_a_formula() -> None:
    """Also when an escape sequence hides the equals sign."""
    for reason in ("=HYPERLINK(1)", "\x1b[0m=1+1", "@x", "+1", "-1", "\t=1"):
        for row in _rows(render(_with_reason(reason), Format.CSV, Page())):
            assert row["reason"].startswith("'")


def test_csv_numbers_stay_numbers() -> None:
    """A negative skew is not a formula."""
    rows = _rows(render(all_documents()["skew"], Format.CSV, Page()))
    skew = {(row["name"], row["signal"]): row["skew"] for row in rows if row["subject"] == "workload"}
    assert float(skew["cart", "cpu"]) == -3.6
    assert skew["silent", "cpu"] == ""


def test_csv_has_moves_and_refusals() -> None:
    """One row each, told apart by the decision."""
    rows = _rows(render(samples.plan(), Format.CSV, Page()))
    assert [row["decision"] for row in rows] == ["move"] * 3 + ["refused"] * 17
    assert rows[0]["pod"] == "checkout-service-canary-europe-7d9c8b6f5-x2x4z"
    assert rows[3]["gate"] == "disruption-budget"


def test_yaml_cannot_smuggle_a_type() -> None:
    """A value that looks like a tag stays a string."""
    text = render(_with_reason("!!python/object/apply:os.system [x]"), Format.YAML, Page())
    assert "reason: '!!python/object/apply:os.system [x]'" in text


def test_csv_of_an_explanation_has_every_gate() -> None:
    """The word of each gate is one row."""
    rows = _rows(render(all_documents()["pod"], Format.CSV, Page()))
    assert {row["subject"] for row in rows if row["section"] == "verdict"} >= {"disruption-budget", "breaker"}
    assert rows[0]["subject"] == f"shop/{cases.WEB_POD}"
