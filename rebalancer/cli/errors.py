"""What a command that fails says, and the status that it ends with.

One sentence on stderr names the thing and the place, a second one says what to do. A traceback is for developers, on request (``--debug``).
"""

from __future__ import annotations

import sys
import traceback
from typing import TextIO

import typer

from rebalancer.cli.output import wants_color
from rebalancer.errors import RebalancerError
from rebalancer.report.text import clean

USAGE_STATUS = 2
INTERRUPTED_STATUS = 130
_BOLD_RED, _RESET = "\x1b[1;31m", "\x1b[0m"


def sentences(message: str, remedy: str) -> str:
    """``Message. Remedy.`` on one line."""
    parts = [_sentence(part) for part in (message, remedy[:1].upper() + remedy[1:] if _is_word(remedy) else remedy) if part.strip()]
    return " ".join(parts)


def _is_word(text: str) -> bool:
    return text.split(" ", 1)[0].isalpha()


def _sentence(text: str) -> str:
    text = clean(" ".join(text.split()), limit=None)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def report(error: BaseException, *, debug: bool, stream: TextIO | None = None) -> int:
    """Say what went wrong on stderr and return the exit status."""
    stream = sys.stderr if stream is None else stream
    if debug:
        traceback.print_exception(error, file=stream)
    if isinstance(error, RebalancerError):
        _say(stream, sentences(error.message, error.remedy))
        return error.exit_status
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        _say(stream, "interrupted.")
        return INTERRUPTED_STATUS
    if isinstance(error, typer.TyperException):
        return _usage(error, stream)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    remedy = "" if debug else "run it again with --debug for the traceback, and report that"
    _say(stream, sentences(f"unexpected failure: {what}", remedy))
    return 1


def _usage(error: typer.TyperException, stream: TextIO) -> int:
    shown = getattr(error, "format_message", None)
    message = (shown() if callable(shown) else str(error)).replace(": Value error, ", ": ")  # what pydantic puts before a reason
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "rebalancer")
    if message.strip():  # without a message, the help itself was the answer
        _say(stream, sentences(message, f"see '{command} --help'"))
    return int(getattr(error, "exit_code", USAGE_STATUS))


def warn(text: str, *, stream: TextIO | None = None) -> None:
    """A sentence on stderr that does not change the outcome."""
    _write(sys.stderr if stream is None else stream, "Warning:", _sentence(text))


def _say(stream: TextIO, text: str) -> None:
    _write(stream, "Error:", text)


def _write(stream: TextIO, head: str, text: str) -> None:
    head = f"{_BOLD_RED}{head}{_RESET}" if wants_color(stream) else head
    try:
        stream.write(f"{head} {text}\n")
        stream.flush()
    except (OSError, UnicodeEncodeError):  # nobody is there to be told
        return
