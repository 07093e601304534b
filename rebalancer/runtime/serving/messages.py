"""What a handler gets and what it gives back: one request, read whole, and one answer, written whole.

A handler is a function and knows of no socket. It may be called by many threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """Without the query, as it came: nothing in it is unescaped."""
    body: bytes = field(default=b"", repr=False)
    """Not shown where the request is: pods carry what is nobody's business."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Decoded; of a name that comes twice, the last."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names in lower case."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = HTTPStatus.OK
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside those that every answer has; ``Connection: close`` ends the connection after it."""


Handler = Callable[[Request], Answer]


def text(words: str, *, status: int = HTTPStatus.OK) -> Answer:
    """A line for people."""
    return Answer(status, f"{words}\n".encode(), TEXT)
