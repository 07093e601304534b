"""A page of text and grids for people: titles, sentences that wrap at words, columns that never wrap in the middle of a name.

A grid fits the page by shortening the columns that may be shortened, widest first; a column of sentences wraps within itself; notes run
below their row over the full width. Unlike a table with borders, the result survives grep, narrow terminals and a proportional eye.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rebalancer.report.page import Page
from rebalancer.report.text import clean, shorten, to_ascii, wrap

GAP = "  "
UNLIMITED = 100_000


@dataclass(frozen=True, slots=True)
class Cell:
    """``spill``: the text has the rest of the line for itself, and does not widen its column."""

    text: str
    style: str = ""
    spill: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """``least``: the column may be shortened to that many characters. ``wrap``: it holds sentences; only the last column may."""

    title: str
    right: bool = False
    least: int | None = None
    wrap: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    cells: tuple[Cell | str, ...]
    note: str = ""
    """A sentence below the row."""


class Sheet:
    """Collects lines, then renders them once."""

    def __init__(self, page: Page, *, wide: bool = False) -> None:
        self._page = page
        self._width = UNLIMITED if wide else max(page.width, 40)
        self._lines: list[Text] = []

    def blank(self) -> None:
        if self._lines and self._lines[-1].plain:
            self._lines.append(Text())

    def title(self, text: str) -> None:
        self.blank()
        self._lines.append(Text(clean(text), style="bold"))

    def sentence(self, text: str, *, style: str = "", indent: int = 0) -> None:
        for line in wrap(clean(text), self._width - indent):
            self._lines.append(Text(" " * indent + line, style=style))

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """``key  value`` lines with aligned values; long values wrap under themselves."""
        kept = [(key, value) for key, value in pairs if value]
        margin = max((len(key) for key, _ in kept), default=0) + len(GAP)
        for key, value in kept:
            for number, line in enumerate(wrap(clean(value), self._width - margin)):
                text = Text((key if number == 0 else "").ljust(margin), style="dim")
                text.append(line, style="not dim")
                self._lines.append(text)

    def grid(self, columns: Sequence[Column], rows: Sequence[Row], *, notes_under: int = 0) -> None:
        """Column titles, then the rows; notes begin under column ``notes_under``. Every cell is cleaned here, whatever it holds."""
        safe = [[_cell(cell) for cell in row.cells] for row in rows]
        widths = _fit(columns, safe, self._width)
        indent = sum(widths[:notes_under]) + len(GAP) * max(notes_under, 1)
        self._lines.append(_line(columns, widths, [Cell(column.title, "bold dim") for column in columns], self._width))
        for row, cells in zip(rows, safe, strict=True):
            self._add_row(columns, widths, cells)
            if row.note:
                self.sentence(row.note, style="dim", indent=indent)

    def _add_row(self, columns: Sequence[Column], widths: Sequence[int], cells: list[Cell]) -> None:
        rest: list[str] = []
        if columns[-1].wrap and cells[-1].text:
            first, *rest = wrap(cells[-1].text, widths[-1])
            cells = [*cells[:-1], Cell(first, cells[-1].style)]
        self._lines.append(_line(columns, widths, cells, self._width))
        margin = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
        for line in rest:
            self._lines.append(Text(" " * margin + line, style=cells[-1].style))

    def render(self) -> str:
        if not self._page.color:
            text = "".join(f"{line.plain}\n" for line in self._lines)
            return to_ascii(text) if self._page.ascii else text
        stream = io.StringIO()
        console = Console(
            file=stream,
            width=UNLIMITED,
            force_terminal=True,
            color_system="standard",
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
            _environ={},
        )
        for line in self._lines:
            console.print(line, soft_wrap=True)
        text = stream.getvalue()
        return to_ascii(text) if self._page.ascii else text


def _cell(cell: Cell | str) -> Cell:
    return Cell(clean(cell)) if isinstance(cell, str) else Cell(clean(cell.text), cell.style, cell.spill)


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Cell], page_width: int) -> Text:
    line = Text()
    for number, (column, width, cell) in enumerate(zip(columns, widths, cells, strict=True)):
        if cell.spill:
            line.append(shorten(cell.text, page_width - cell_len(line.plain)), style=cell.style or None)
            break
        text = cell.text if column.wrap else shorten(cell.text, width)
        padding = " " * max(0, width - cell_len(text))
        if column.right:
            line.append(padding)
        line.append(text, style=cell.style or None)
        if not column.right:
            line.append(padding)
        if number < len(columns) - 1:
            line.append(GAP)
    line.rstrip()
    return line


def _fit(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], page_width: int) -> list[int]:
    """Widths of the columns: natural ones, then sentences wrap, then the widest that may shrink give way, until the page holds them."""
    widths = [
        max([cell_len(column.title), *(cell_len(row[number].text) for row in rows if not row[number].spill)])
        for number, column in enumerate(columns)
    ]
    least = [
        max(cell_len(column.title), 30) if column.wrap else width if column.least is None else max(cell_len(column.title), column.least)
        for column, width in zip(columns, widths, strict=True)
    ]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - page_width
    for number, column in enumerate(columns):
        if column.wrap and over > 0:
            given = max(0, min(over, widths[number] - least[number]))
            widths[number] -= given
            over -= given
    while over > 0:
        open_columns = [number for number in range(len(columns)) if widths[number] > least[number]]
        if not open_columns:
            break
        widest = max(open_columns, key=lambda number: widths[number])
        widths[widest] -= 1
        over -= 1
    return widths
