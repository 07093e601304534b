"""Structured logs on stderr: one event a line, JSON for machines, columns for people.

What libraries log by the standard library goes the same way, so that a line has one shape. No secret passes: keys that hold secrets are
blanked by name, and credentials inside texts by their form. Standard output belongs to the data that commands print.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

REDACTED = "[redacted]"
LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]

_QUIET = {
    "kubernetes": logging.INFO,  # below, it writes whole response bodies
    "urllib3": logging.WARNING,  # below, it writes URLs with their query strings
    "requests": logging.WARNING,
    "apscheduler": logging.WARNING,  # its news are counted by our own listener
    "asyncio": logging.WARNING,
}
_SECRET_KEY = re.compile(r"authori[sz]ation|token|passw|secret|cookie|credential|api_?key|bearer", re.IGNORECASE)
_HARMLESS_KEY = re.compile(r"(_file|_path|_seconds|_count|_name)$", re.IGNORECASE)
_SECRET_TEXT = (
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{4,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"://[^/\s@]+@"), f"://{REDACTED}@"),
    (re.compile(r"([?&](?:token|password|api_?key|secret)=)[^&\s\"']+", re.IGNORECASE), rf"\1{REDACTED}"),
)


def setup_logging(log_format: LogFormat, level: LogLevel, *, stream: TextIO | None = None) -> None:
    """Route structlog and the standard library to one handler on ``stream`` (stderr). Calling it again replaces what was set up before."""
    target = sys.stderr if stream is None else stream
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.stdlib.ExtraAdder(),
    ]
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.StackInfoRenderer(),
                *_renderers(log_format, coloured=target.isatty() and not os.environ.get("NO_COLOR")),
            ],
        )
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *before,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, floor in _QUIET.items():
        logging.getLogger(name).setLevel(max(floor, root.level))
    logging.captureWarnings(True)


def _renderers(log_format: LogFormat, *, coloured: bool) -> list[Processor]:
    """Tracebacks become text before secrets are looked for; the console's own way would print local variables."""
    common: list[Processor] = [structlog.processors.format_exc_info, redact]
    if log_format == "json":
        return [*common, structlog.processors.EventRenamer("message"), structlog.processors.JSONRenderer()]
    return [*common, structlog.dev.ConsoleRenderer(colors=coloured, exception_formatter=structlog.dev.plain_traceback)]


def redact(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Blank secrets, and write numbers that JSON cannot hold as null."""
    return {key: _clean(key, value) for key, value in event.items()}


def _clean(key: str, value: Any) -> Any:
    if _SECRET_KEY.search(key) and not _HARMLESS_KEY.search(key) and not isinstance(value, bool):
        return REDACTED if value not in (None, "") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        for pattern, cure in _SECRET_TEXT:
            value = pattern.sub(cure, value)
        return value
    if isinstance(value, Mapping):
        return {str(inner): _clean(str(inner), held) for inner, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean("", held) for held in value]
    if isinstance(value, BaseException):
        return _clean(key, str(value))
    return value
