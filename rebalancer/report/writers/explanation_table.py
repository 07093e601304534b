"""An explanation for people: the conclusion first, then the facts, then the verdicts."""

from __future__ import annotations

from collections import Counter

from rebalancer.report.explanation import Explanation, Ruling
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, writer
from rebalancer.report.sheet import Column, Row, Sheet
from rebalancer.report.styles import ruling_cell
from rebalancer.report.text import counted

_SHOWN = 30
_NAME_LEAST = 24


@writer(Explanation, Format.TABLE, Format.WIDE)
def explanation_table(explanation: Explanation, page: Page, fmt: Format) -> str:
    wide = fmt is Format.WIDE
    sheet = Sheet(page, wide=wide)
    sheet.title(f"{explanation.subject_kind} {explanation.subject}")
    sheet.sentence(explanation.conclusion)
    sheet.blank()
    sheet.facts((fact.topic, fact.sentence) for fact in explanation.facts)
    by_gate = bool(explanation.verdicts) and all(verdict.subject == verdict.gate for verdict in explanation.verdicts)
    if by_gate:
        _gates(sheet, explanation, wide=wide)
    elif explanation.verdicts:
        _pods(sheet, explanation, wide=wide)
    if explanation.queries and wide:
        sheet.title("Queries")
        sheet.facts(explanation.queries.items())
    elif explanation.queries:
        sheet.blank()
        sheet.sentence("-o wide shows the queries behind the numbers.", style="dim")
    return sheet.render()


def _counts(explanation: Explanation) -> str:
    counts = Counter(verdict.ruling for verdict in explanation.verdicts)
    nouns = {Ruling.MOVES: "move", Ruling.ARRIVES: "arrival"}
    words = {ruling: counted(counts[ruling], nouns[ruling]) if ruling in nouns else f"{counts[ruling]} {ruling.value}" for ruling in Ruling}
    return ", ".join(words[ruling] for ruling in Ruling if counts[ruling])


def _gates(sheet: Sheet, explanation: Explanation, *, wide: bool) -> None:
    """Every gate in ``wide``; else those that refuse, and the names of the others."""
    sheet.title(f"Gates ({_counts(explanation)})")
    shown = [verdict for verdict in explanation.verdicts if wide or verdict.ruling is not Ruling.ALLOWED]
    if shown:
        columns = (Column("GATE"), Column("VERDICT"), Column("WHY", wrap=True))
        sheet.grid(columns, [Row((one.subject, ruling_cell(one.ruling), one.sentence or one.rule)) for one in shown])
    allowed = [verdict.subject for verdict in explanation.verdicts if verdict.ruling is Ruling.ALLOWED]
    if allowed and not wide:
        sheet.sentence(f"Allowed by {', '.join(allowed)}.", style="dim")


def _pods(sheet: Sheet, explanation: Explanation, *, wide: bool) -> None:
    verdicts = explanation.verdicts
    sheet.title(f"Pods ({_counts(explanation)})")
    shown = verdicts if wide else verdicts[:_SHOWN]
    columns = (Column("POD", least=_NAME_LEAST), Column("VERDICT"), Column("GATE"))
    sheet.grid(columns, [Row((one.subject, ruling_cell(one.ruling), one.gate or ""), note=one.sentence) for one in shown])
    if len(shown) < len(verdicts):
        sheet.sentence(f"{len(verdicts) - len(shown):,} more; -o wide shows all.", style="dim")
