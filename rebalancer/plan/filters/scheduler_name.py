"""Pods of a scheduler whose rules are not known here cannot be predicted."""

from __future__ import annotations

from rebalancer.plan.filter import Filter
from rebalancer.plan.replacement import Replacement


def passes(replacement: Replacement) -> bool:
    return replacement.constraints.scheduler_name in replacement.steered


def reason(replacement: Replacement, node: int) -> str:
    known = ", ".join(sorted(replacement.steered)) or "none"
    return f"Its scheduler is {replacement.constraints.scheduler_name}, where only {known} can be predicted"


FILTER = Filter(
    name="scheduler",
    order=10,
    describe="The pod names a scheduler whose placement cannot be predicted.",
    passes=passes,
    reason=reason,
    static=True,
)
