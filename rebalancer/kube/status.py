"""The Status object with which the API server explains a refusal, and the headers that go with it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec


class Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class Details(msgspec.Struct, frozen=True):
    name: str = ""
    kind: str = ""
    causes: list[Cause] | None = None


class Status(msgspec.Struct, frozen=True):
    """``meta/v1`` Status, as far as it is read. All fields empty when the answer was something else."""

    message: str = ""
    reason: str = ""
    details: Details | None = None

    def cause(self, reason: str) -> Cause | None:
        causes = (self.details.causes if self.details else None) or []
        return next((cause for cause in causes if cause.reason == reason), None)


BUDGET_CAUSE = "DisruptionBudget"


def read_status(body: bytes) -> Status:
    """The Status in ``body``; an empty one if there is none."""
    try:
        return msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Status()


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds of ``Retry-After``; None if it is absent or no plain number (the API server never sends a date)."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
