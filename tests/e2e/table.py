"""What the scenarios showed, as the table that is printed at the end of a run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """``shown`` grows while the scenario runs, so that a failed one tells how far it came."""

    scenario: str
    shown: list[str] = field(default_factory=list)
    verdict: str = "not run"

    def shows(self, words: str) -> None:
        self.shown.append(words)


@dataclass
class Table:
    rows: list[Row] = field(default_factory=list)

    def row(self, scenario: str) -> Row:
        found = Row(scenario)
        self.rows.append(found)
        return found

    def lines(self) -> list[str]:
        """One line a thing that was shown, in columns."""
        if not self.rows:
            return []
        first = max(len(row.scenario) for row in self.rows)
        last = max(len(row.verdict) for row in self.rows)
        found = [f"{'scenario':<{first}}  {'verdict':<{last}}  what it showed"]
        for row in self.rows:
            head, *more = row.shown or ["-"]
            found.append(f"{row.scenario:<{first}}  {row.verdict:<{last}}  {head}")
            found.extend(f"{'':<{first}}  {'':<{last}}  {words}" for words in more)
        return found
