"""Where the policy in force comes from while the service runs: built in, or a file that may be edited at any time.

A broken edit never stops a service that worked: the last good policy stays in force, and the failure is handed to the caller to be counted
and told. Change is seen by content, since a ConfigMap is swapped by symbolic links and its times say nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from rebalancer.errors import PolicyError
from rebalancer.policy.document import read_text
from rebalancer.policy.loader import parse_policy
from rebalancer.policy.model import RebalancePolicy, built_in_policy
from rebalancer.policy.timing import judge_timing


class Reload(Enum):
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ReloadResult:
    outcome: Reload
    error: PolicyError | None = None
    """Why it failed; the last good policy stays in force."""
    news: bool = False
    """The outcome differs from that of the refresh before: a new policy, a new failure, or a recovery. Tell it once."""


class PolicySource(Protocol):
    def current(self) -> RebalancePolicy: ...

    def refresh(self) -> ReloadResult: ...


class BuiltInPolicy:
    """The safe policy that is in force when no file is given."""

    def __init__(self, policy: RebalancePolicy | None = None) -> None:
        self._policy = policy or built_in_policy()

    def current(self) -> RebalancePolicy:
        return self._policy

    def refresh(self) -> ReloadResult:
        return ReloadResult(Reload.UNCHANGED)


class PolicyFile:
    """A policy file that is read again on `refresh`. Raises PolicyError when made from a file that is not valid, never afterwards.

    One thread refreshes; any thread may ask for the current policy.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        text = read_text(path, what="policy", error=PolicyError)
        self._policy = parse_policy(text, origin=str(path))
        self._good = self._seen = _digest(text)
        self._error: PolicyError | None = None

    def current(self) -> RebalancePolicy:
        """The last policy that was valid."""
        return self._policy

    def refresh(self) -> ReloadResult:
        """Read the file again and put it in force if it is valid."""
        try:
            text = read_text(self._path, what="policy", error=PolicyError)
        except PolicyError as failure:
            return self._failed(failure, seen=str(failure))
        seen = _digest(text)
        if seen == self._good:
            recovered = self._error is not None
            self._error, self._seen = None, seen
            return ReloadResult(Reload.UNCHANGED, news=recovered)
        if seen == self._seen and self._error is not None:
            return ReloadResult(Reload.FAILED, error=self._error)
        try:
            policy = parse_policy(text, origin=str(self._path))
        except PolicyError as failure:
            return self._failed(failure, seen=seen)
        except Exception as failure:  # a fault of ours in judging one edit must not end a service that has a good policy
            return self._failed(PolicyError(f"policy file {self._path} could not be judged ({type(failure).__name__})"), seen=seen)
        faults = judge_timing(policy.spec).errors
        if faults:
            return self._failed(PolicyError(f"policy file {self._path} can never act: {faults[0]}"), seen=seen)
        self._policy, self._good, self._seen, self._error = policy, seen, seen, None
        return ReloadResult(Reload.CHANGED, news=True)

    def _failed(self, failure: PolicyError, *, seen: str) -> ReloadResult:
        news = self._error is None or seen != self._seen
        self._error, self._seen = failure, seen
        return ReloadResult(Reload.FAILED, error=failure, news=news)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
