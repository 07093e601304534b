"""Required anti-affinity that other pods hold against this one: a pod without any term is kept out by theirs."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.node_rules import Domains
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import IntArray


def _refused(replacement: Replacement) -> Iterator[tuple[str, Domains, IntArray]]:
    """Topology key, domains, and the (domains,) number of holders in them, of each held term that matches the pod."""
    placements = replacement.placements
    for held in placements.holders.refusing.matching(replacement.label_set, gone=replacement.gone):
        domains = placements.rules.domains(held.topology_key)
        yield held.topology_key, domains, domains.count(held.nodes)


def passes(replacement: Replacement) -> Verdict:
    verdict: Verdict = True
    for _, domains, counts in _refused(replacement):
        verdict = (counts[domains.of] == 0) & verdict
    return verdict


def reason(replacement: Replacement, node: int) -> str:
    for key, domains, counts in _refused(replacement):
        number = int(domains.of[node])
        if counts[number]:
            return f"{counts[number]} pods in {key}={domains.names[number]} have anti-affinity against the pod"
    return ""


FILTER = Filter(
    name="held-anti-affinity",
    order=130,
    describe="Required anti-affinity of pods in the node's domain is against the pod.",
    passes=passes,
    reason=reason,
)
