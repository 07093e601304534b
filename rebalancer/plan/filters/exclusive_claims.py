"""ReadWriteOncePod claims: while any pod uses the claim, no other pod that names it fits anywhere.

A pod that leaves still uses its claim until it is gone, so its replacement has no node now, and where it will have one is not known. The
next pod of a StatefulSet comes when the old one is gone, and takes the claim over.
"""

from __future__ import annotations

from rebalancer.plan.filter import Filter
from rebalancer.plan.replacement import Replacement


def _used(replacement: Replacement) -> str:
    """The first claim of the pod that an occupying or booked pod uses, or an empty string."""
    neighbours = replacement.placements.neighbours
    for claim in replacement.constraints.exclusive_claims:
        if replacement.standing(neighbours.with_constraints(neighbours.claim_holders[claim])).size:
            return claim
    return ""


def passes(replacement: Replacement) -> bool:
    return not _used(replacement)


def reason(replacement: Replacement, node: int) -> str:
    return f"Claim {_used(replacement)} is ReadWriteOncePod and a pod still uses it"


FILTER = Filter(
    name="exclusive-claims",
    order=80,
    describe="The pod has a ReadWriteOncePod claim that a pod still uses, if only the one that leaves.",
    passes=passes,
    reason=reason,
)
