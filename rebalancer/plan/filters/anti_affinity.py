"""Required anti-affinity of the pod itself. A node without the topology key passes."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.node_rules import Domains
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import IntArray
from rebalancer.state.scheduling import PodTerm


def _crowded(replacement: Replacement) -> Iterator[tuple[PodTerm, Domains, IntArray]]:
    """Each term with its domains and the (domains,) number of pods in them that it forbids."""
    rules, neighbours = replacement.placements.rules, replacement.placements.neighbours
    for term in replacement.constraints.anti_affinity:
        domains = rules.domains(term.topology_key)
        yield term, domains, domains.count(replacement.standing(neighbours.matching_all((term,), replacement.namespace)))


def passes(replacement: Replacement) -> Verdict:
    verdict: Verdict = True
    for _, domains, counts in _crowded(replacement):
        verdict = (counts[domains.of] == 0) & verdict
    return verdict


def reason(replacement: Replacement, node: int) -> str:
    for term, domains, counts in _crowded(replacement):
        number = int(domains.of[node])
        if counts[number]:
            return f"The pod's anti-affinity forbids {term.topology_key}={domains.names[number]}: {counts[number]} matching pods are there"
    return ""


FILTER = Filter(
    name="anti-affinity",
    order=120,
    describe="Required anti-affinity of the pod forbids the node's domain.",
    passes=passes,
    reason=reason,
)
