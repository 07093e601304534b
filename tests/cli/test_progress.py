"""The progress display stays out of the way of everything that is not a terminal."""

from __future__ import annotations

import io

import pytest

from rebalancer.cli.progress import Silent, showing


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_nothing() -> None:
    """Not a byte."""
    stream = io.StringIO()
    with showing("reading pods", stream=stream) as display:
        display.stage("reading Prometheus")
        display.count(1, 2)
    assert stream.getvalue() == ""
    assert isinstance(display, Silent)


def test_a_dumb_terminal_gets_nothing() -> None:
    """It could not take anything back."""
    stream = Terminal()
    with showing("reading pods", stream=stream, environ={"TERM": "dumb"}):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize("of", [None, 6])
def test_a_terminal_sees_the_words(of: int | None) -> None:
    """Cleaned, and without markup."""
    stream = Terminal()
    with showing("reading pods", of=of, stream=stream, environ={"TERM": "xterm", "NO_COLOR": "1"}) as display:
        display.stage("cycle [red]\x1b[2J 3")
        display.count(3, 6)
    assert "cycle [red] 3" in stream.getvalue()
