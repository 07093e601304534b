"""The document that `explain` prints: one subject, sentences with numbers, and a verdict for each gate or candidate."""

from __future__ import annotations

from enum import Enum

import msgspec

from rebalancer.plan.model import API_VERSION


class Ruling(Enum):
    MOVES = "moves"
    """The plan moves the pod."""
    ARRIVES = "arrives"
    """The plan moves the pod here."""
    REFUSED = "refused"
    ALLOWED = "allowed"


class Fact(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    topic: str
    sentence: str


class Verdict(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """``subject`` is a pod (``namespace/name``), or the gate itself where all gates are asked about one pod."""

    subject: str
    ruling: Ruling
    gate: str | None = None
    sentence: str = ""
    retryable: bool | None = None
    rule: str = ""
    """What the gate is for, in one sentence."""


class Explanation(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: str = API_VERSION
    kind: str = "Explanation"
    cluster: str
    created_at: str
    subject_kind: str
    """``Node``, ``Pod``, or the kind of the workload."""
    subject: str
    conclusion: str
    facts: tuple[Fact, ...]
    verdicts: tuple[Verdict, ...]
    queries: dict[str, str] = {}
    """what it asked for -> the text of the query."""
