"""The policy of crane-scheduler that is in force: the one that it is shipped with, or a file that may be edited at any time.

As with our own policy, a broken edit keeps the last good one. What is odd in the file is told once for each version of it.
"""

from __future__ import annotations

from pathlib import Path

from rebalancer.errors import PolicyError
from rebalancer.policy.document import read_text
from rebalancer.steer.crane_policy import DEFAULT, CranePolicy, parse_crane_policy


class CranePolicySource:
    """Raises PolicyError when made from a file that is not valid, never afterwards."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._policy = DEFAULT
        self._text = ""
        self._news: tuple[str, ...] = ()
        self._failure = ""
        """The last one that was told and is not over."""
        if path is not None:
            self._take(read_text(path, what="scheduler policy", error=PolicyError))

    def current(self) -> CranePolicy:
        return self._policy

    def refresh(self) -> tuple[str, ...]:
        """Read the file again; sentences about it that were not told yet."""
        if self._path is not None:
            try:
                text = read_text(self._path, what="scheduler policy", error=PolicyError)
                if text != self._text:
                    self._take(text)
            except PolicyError as error:
                self._failed(str(error))
        news, self._news = self._news, ()
        return news

    def _take(self, text: str) -> None:
        before, self._text = self._text, text
        policy = parse_crane_policy(text, origin=str(self._path))
        self._policy, self._failure = policy, ""
        self._news = (*self._news, *policy.notes, *((f"{self._path} was read again",) if before else ()))

    def _failed(self, why: str) -> None:
        if why != self._failure:
            self._news = (*self._news, f"the last good policy of crane-scheduler stays in force: {why}")
        self._failure = why
