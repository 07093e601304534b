"""Showing that something is going on: on stderr, on a terminal only, gone when it is done.

Nothing is drawn when stderr is piped or the terminal is dumb, so that logs stay logs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from rebalancer.cli.output import wants_color
from rebalancer.report.text import clean


class Display(Protocol):
    def stage(self, words: str) -> None:
        """What is being done now."""

    def count(self, done: int, of: int) -> None:
        """How far it is."""


class Silent:
    def stage(self, words: str) -> None:
        return None

    def count(self, done: int, of: int) -> None:
        return None


class _Drawn:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def stage(self, words: str) -> None:
        self._progress.update(self._task, description=clean(words))

    def count(self, done: int, of: int) -> None:
        self._progress.update(self._task, completed=done, total=of)


@contextmanager
def showing(
    words: str, *, of: int | None = None, stream: TextIO | None = None, environ: Mapping[str, str] = os.environ
) -> Iterator[Display]:
    """A display for the time of a ``with``; ``of`` draws a bar of that many steps, None only a spinner."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty() or environ.get("TERM") == "dumb":
        yield Silent()
        return
    console = Console(file=stream, no_color=not wants_color(stream, environ=environ), markup=False, emoji=False, highlight=False)
    bar = () if of is None else (BarColumn(bar_width=30), MofNCompleteColumn())
    spinner = "dots" if (stream.encoding or "").lower().replace("-", "") == "utf8" else "line"
    with Progress(
        SpinnerColumn(spinner), TextColumn("{task.description}", markup=False), *bar, TimeElapsedColumn(), console=console, transient=True
    ) as progress:
        yield _Drawn(progress, progress.add_task(clean(words), total=of))
