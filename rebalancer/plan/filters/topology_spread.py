"""Hard topology spread: no domain may get ahead of the emptiest one by more than maxSkew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.node_rules import Domains
from rebalancer.plan.replacement import Replacement
from rebalancer.plan.spread import counted_nodes, having_all_keys, included, matches_itself
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.scheduling import SpreadConstraint


@dataclass(frozen=True, slots=True)
class _Skew:
    """One constraint over its domains: ``counts`` (domains,) pods, ``least`` of any, ``itself`` 0 or 1."""

    constraint: SpreadConstraint
    domains: Domains
    counts: IntArray
    least: int
    itself: int

    def allowed(self) -> BoolArray:
        after = self.counts[self.domains.of] + self.itself
        return (self.domains.of > 0) & (after - self.least <= self.constraint.max_skew)


def _skews(replacement: Replacement) -> Iterator[_Skew]:
    hard = tuple(constraint for constraint in replacement.constraints.spread if constraint.hard)
    if not hard:
        return
    with_keys = having_all_keys(replacement, hard)
    for constraint in hard:
        domains = replacement.placements.rules.domains(constraint.topology_key)
        part = with_keys & included(replacement, constraint)
        nodes = counted_nodes(replacement, constraint)
        counts = domains.count(nodes[part[nodes]])
        taking_part = np.bincount(domains.of[part], minlength=domains.size) > 0
        enough = int(taking_part.sum()) >= max(1, constraint.min_domains)
        least = int(counts[taking_part].min()) if enough else 0
        yield _Skew(constraint, domains, counts, least, int(matches_itself(replacement, constraint)))


def passes(replacement: Replacement) -> Verdict:
    verdict: Verdict = True
    for skew in _skews(replacement):
        verdict = skew.allowed() & verdict
    return verdict


def reason(replacement: Replacement, node: int) -> str:
    for skew in _skews(replacement):
        if skew.allowed()[node]:
            continue
        key, number = skew.constraint.topology_key, int(skew.domains.of[node])
        if number == 0:
            return f"The node has no label {key}, which a topology spread constraint needs"
        after = int(skew.counts[number]) + skew.itself
        return (
            f"Topology spread: {key}={skew.domains.names[number]} would have {after} pods against {skew.least} in the emptiest domain, "
            f"above maxSkew {skew.constraint.max_skew}"
        )
    return ""


FILTER = Filter(
    name="topology-spread",
    order=100,
    describe="A DoNotSchedule topology spread constraint would be broken.",
    passes=passes,
    reason=reason,
)
