"""Data for stdout: how wide, in colour or not, and what happens when the reader has gone or the disk is full.

Colour follows the common rules: ``--no-color`` and a non-empty NO_COLOR switch it off, a non-empty FORCE_COLOR on, otherwise a terminal
decides. A closed pipe (``| head``) is no error of ours: the command ends quietly, with the status that the shell gives to SIGPIPE.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import msgspec
import typer

from rebalancer.errors import RebalancerError, UsageError
from rebalancer.report.registry import Format, write

DEFAULT_WIDTH = 100
CLOSED_PIPE_STATUS = 141


def wants_color(stream: TextIO, *, no_color: bool = False, environ: Mapping[str, str] = os.environ) -> bool:
    if no_color or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def page_width(stream: TextIO, *, environ: Mapping[str, str] = os.environ) -> int:
    """Columns of the terminal; of COLUMNS when piped; else 100."""
    if stream.isatty():
        return shutil.get_terminal_size((DEFAULT_WIDTH, 40)).columns
    columns = environ.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdigit() and int(columns) > 0 else DEFAULT_WIDTH


def print_document(document: msgspec.Struct, fmt: Format, *, no_color: bool = False) -> None:
    """Write a document to stdout. Raises UsageError when it cannot be written in that format."""
    stream = sys.stdout
    with _Stdout():
        write(document, fmt, stream=stream, width=page_width(stream), color=wants_color(stream, no_color=no_color))


def print_text(text: str) -> None:
    """Write lines of text to stdout; characters that the stream cannot carry become question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    with _Stdout():
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def save(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: beside its place first, then renamed. Raises UsageError."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o644 & ~_umask())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", remedy="give a file in a directory that exists and can be written"
        ) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class _Stdout:
    """Flushes on leaving, and turns a closed pipe or a full disk into what the command ends with."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                sys.stdout.flush()
                return
        except OSError as late:
            error = late
        if isinstance(error, BrokenPipeError):
            abandon_stdout()
            raise typer.Exit(CLOSED_PIPE_STATUS) from None
        if isinstance(error, OSError):
            abandon_stdout()
            raise RebalancerError(
                f"cannot write to standard output: {error.strerror}", remedy="free some space, or write elsewhere"
            ) from error


def abandon_stdout() -> None:
    """Let nothing that is still buffered raise at exit."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
    except (OSError, ValueError):  # not a real file, as under test
        return
