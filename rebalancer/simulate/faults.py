"""Faults on demand: which requests are hit, how often, and what happens to them.

A fault is added by a test or a scenario and taken by the HTTP handlers, which ask `Faults.take` for each request. What a
fault does to the samples themselves (stale, NaN, missing nodes) is not here but in `series`, since no request is broken by it.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from enum import Enum


class Act(Enum):
    """What happens to a request."""

    LATENCY = "latency"
    """Answer as usual, after ``seconds``."""
    STATUS = "status"
    """Answer with ``status`` and ``body`` and do nothing."""
    DROP = "drop"
    """Close the connection without an answer."""
    DROP_AFTER = "drop-after"
    """Do what was asked, then close the connection without an answer: the caller cannot know."""
    TRUNCATE = "truncate"
    """Announce the whole body, send half of it, close."""
    HANG = "hang"
    """Accept the request, never answer, until ``seconds`` have passed or the server stops; then close."""
    GONE = "gone"
    """410 for a continue token or a watch, as after a compaction; other requests pass."""
    WATCH_ERROR = "watch-error"
    """A watch that opens well, then carries an ERROR event with code 410."""
    REPLACE = "replace"
    """Answer 200 with ``body`` and ``content_type`` instead of the real answer: login pages, empty results."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``method`` and ``path`` are regular expressions (searched; the path has its query). After ``skip`` requests ``count`` are hit."""

    act: Act
    method: str = ""
    path: str = ""
    count: int | None = None
    skip: int = 0
    status: int = 500
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    def concerns(self, method: str, path: str) -> bool:
        return re.search(self.method, method) is not None and re.search(self.path, path) is not None


@dataclass(slots=True)
class Faults:
    """The faults in force at one server. Thread-safe; the first that concerns a request is the one that hits it."""

    _active: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._active.append(fault)

    def clear(self) -> None:
        with self._lock:
            self._active.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The fault for this request, if any; uses up one of its ``count``."""
        with self._lock:
            for index, fault in enumerate(self._active):
                if not fault.concerns(method, path):
                    continue
                if fault.skip > 0:
                    self._active[index] = replace(fault, skip=fault.skip - 1)
                    continue
                if fault.count is not None:
                    if fault.count <= 0:
                        continue
                    self._active[index] = replace(fault, count=fault.count - 1)
                return fault
        return None

    # ---- short forms for the usual ones -------------------------------------------------------------------------------

    def status(
        self, code: int, *, method: str = "", path: str = "", count: int | None = None, body: bytes = b"", retry_after: int | None = None
    ) -> None:
        headers = (("Retry-After", str(retry_after)),) if retry_after is not None else ()
        self.add(Fault(Act.STATUS, method=method, path=path, count=count, status=code, body=body, headers=headers))

    def drop(self, *, method: str = "", path: str = "", count: int | None = None, after: bool = False) -> None:
        self.add(Fault(Act.DROP_AFTER if after else Act.DROP, method=method, path=path, count=count))

    def hang(self, seconds: float = 3600.0, *, method: str = "", path: str = "", count: int | None = None) -> None:
        self.add(Fault(Act.HANG, method=method, path=path, count=count, seconds=seconds))

    def latency(self, seconds: float, *, method: str = "", path: str = "", count: int | None = None) -> None:
        self.add(Fault(Act.LATENCY, method=method, path=path, count=count, seconds=seconds))

    def truncate(self, *, method: str = "", path: str = "", count: int | None = None) -> None:
        self.add(Fault(Act.TRUNCATE, method=method, path=path, count=count))

    def expire(self, *, path: str = "", count: int | None = None) -> None:
        """Continue tokens and watches get 410."""
        self.add(Fault(Act.GONE, method="GET", path=path or r"[?&](continue|watch)=", count=count))

    def login_page(self, *, path: str = "", count: int | None = None) -> None:
        """A proxy that answers every request with the HTML of a login form and status 200."""
        page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action='/login'></form></body></html>"
        self.add(Fault(Act.REPLACE, path=path, count=count, body=page, content_type="text/html; charset=utf-8"))
