"""What became of a move when it was acted on: a closed list of results, each with the sentence that came back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rebalancer.plan.model import Move


class Result(Enum):
    EVICTED = "evicted"
    ANNOTATED = "annotated"
    RECORDED = "recorded"
    """Dry run: it would have been done."""
    GONE = "gone"
    """The pod was not there any more, or is another one of the same name."""
    CHANGED = "changed"
    """The re-check right before found that the plan does not hold: other node, terminating, not running."""
    BLOCKED = "blocked"
    """A disruption budget refused."""
    THROTTLED = "throttled"
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The eviction was asked for and no answer came: the pod may leave yet, so it counts to every limit."""
    ABANDONED = "abandoned"
    """Not tried: the cycle was stopped, or something earlier in the plan said to stop."""

    @property
    def done(self) -> bool:
        return self in (Result.EVICTED, Result.ANNOTATED, Result.RECORDED)

    @property
    def trouble(self) -> bool:
        """Something that an operator has to look at, in contrast to a cluster that merely moved on."""
        return self in (Result.FORBIDDEN, Result.FAILED, Result.THROTTLED, Result.UNKNOWN, Result.ABANDONED)

    @property
    def counts(self) -> bool:
        """The pod is leaving or may be, which no memory may forget."""
        return self in (Result.EVICTED, Result.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done or failed before the first move, in sentences."""

    notes: tuple[str, ...] = ()
    untainted: tuple[str, ...] = ()
    """Nodes that the plan counts on to repel new pods, and that do not: their taints could not be put."""


@dataclass(frozen=True, slots=True)
class Outcome:
    move: Move
    result: Result
    reason: str
    stop: bool = False
    """Nothing further of the plan may be tried: the API server throttles, or the right is missing."""
