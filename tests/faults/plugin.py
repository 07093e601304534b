"""Prints the table of faults at the end of a run: ``pytest tests/faults/test_table.py -p tests.faults.plugin``.

What a row showed travels as properties of its report, so that it arrives from the processes of pytest-xdist as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.faults.meeting import Seen
    from tests.faults.table import Row

HEADS = ("row", "what is broken", "verdict", "what was seen")
PROPERTY = "fault"
MOST = 150
"""Characters of what was said."""


def show(record_property: Callable[[str, object], None], row: Row, seen: Seen) -> None:
    record_property(PROPERTY, (row.id, row.broken, words(row, seen)))


def words(row: Row, seen: Seen) -> str:
    """In one line: how it ended, what moved meanwhile, how soon all was well, which metric grew, who said why."""
    parts = [] if seen.status is None else [f"status {seen.status}"]
    parts.append(f"{len(seen.during)} evicted meanwhile" if seen.during else "nothing moved meanwhile")
    cycles = "1 cycle" if seen.cycles == 1 else f"{seen.cycles} cycles"
    parts.append("never well again" if seen.cycles is None else f"well after {cycles}")
    parts += [row.expect.counts] if row.expect.counts else []
    parts += [f"unready: {row.expect.unready}"] if row.expect.unready else []
    parts += [_excerpt(row.expect.says, seen.line)] if seen.line else []
    return "; ".join(parts)


def _excerpt(says: str, line: str) -> str:
    """The line from where it says it; from its beginning, if that is in sight."""
    found = re.search(says, line)
    start = 0 if found is None or found.end() <= MOST else found.start()
    text = line[start : start + MOST]
    return f'"{"…" if start else ""}{text}{"…" if start + MOST < len(line) else ""}"'


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [
        (*dict(report.user_properties)[PROPERTY], outcome)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if PROPERTY in dict(report.user_properties)
    ]
    if not rows:
        return
    from tests.faults.table import ROWS

    order = [row.id for row in ROWS]
    rows.sort(key=lambda row: order.index(row[0]))
    terminalreporter.section("faults")
    for line in table([(name, broken, "ok" if outcome == "passed" else "FAILED", seen) for name, broken, seen, outcome in rows]):
        terminalreporter.write_line(line)
    wrong = sum(outcome != "passed" for *_, outcome in rows)
    terminalreporter.write_line(f"{len(rows)} faults, {len(rows) - wrong} ok, {wrong} failed")


def table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    """In columns, the last one as long as it is."""
    widths = [max(len(row[column]) for row in (HEADS, *rows)) for column in range(3)]
    return ["  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])) for row in (HEADS, *rows)]
