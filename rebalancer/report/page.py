"""What a writer knows about the place that it writes for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    width: int = 100
    """Columns that a table may use; the wide format ignores it."""
    color: bool = False
    ascii: bool = False
    """The stream cannot carry UTF-8."""
