"""Volumes: node affinity and zone labels of bound ones; a claim that is not bound can be promised no node.

A local volume pins its pod to one node. A claim that is missing, lost, or waits for its first consumer is rejected everywhere: where it
would be bound depends on provisioners and on capacity that are not read.
"""

from __future__ import annotations

import numpy as np

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.replacement import Replacement


def passes(replacement: Replacement) -> Verdict:
    constraints, rules = replacement.constraints, replacement.placements.rules
    if constraints.unbound_claims:
        return False
    if not constraints.volume_terms and not constraints.volume_zones:
        return True
    mask = np.ones(len(replacement.state.nodes.names), dtype=np.bool_)
    for terms in constraints.volume_terms:
        mask &= rules.term_mask(terms)
    for zone in constraints.volume_zones:
        mask &= rules.zone_mask(zone)
    return mask


def reason(replacement: Replacement, node: int) -> str:
    constraints, rules = replacement.constraints, replacement.placements.rules
    claims = ", ".join(replacement.state.pods.volumes[replacement.pod].claims)
    if constraints.unbound_claims:
        return f"Claim {', '.join(constraints.unbound_claims)} is missing or not bound"
    for terms in constraints.volume_terms:
        if not rules.term_mask(terms)[node]:
            where = f" ({claims})" if claims else ""
            return f"A volume of the pod{where} is bound to other nodes"
    for zone in constraints.volume_zones:
        if not rules.zone_mask(zone)[node]:
            has = replacement.state.nodes.labels[node].get(zone.key, "none")
            return f"A volume of the pod is in {zone.key} {' or '.join(sorted(zone.values))}, the node is in {has}"
    return ""


FILTER = Filter(
    name="volumes",
    order=90,
    describe="A volume cannot be attached to the node, or a claim is missing or not bound.",
    passes=passes,
    reason=reason,
    static=True,
)
