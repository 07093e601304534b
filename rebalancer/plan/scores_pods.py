"""Preferred inter-pod affinity (weight 2): the pod's own preferences, and what pods on nodes hold for or against it."""

from __future__ import annotations

import numpy as np

from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import IntArray


def inter_pod_affinity(replacement: Replacement, rows: IntArray) -> IntArray:
    """(rows,) 0..100: the raw sums between the lowest and the highest; 0 for all when they are equal. Terminating pods count."""
    raw = _raw(replacement)[rows]
    least, span = int(raw.min(initial=0)), 0
    if len(raw):
        least, span = int(raw.min()), int(raw.max() - raw.min())
    if not span:
        return np.zeros(len(rows), dtype=np.int64)
    return (100.0 * ((raw - least) / span)).astype(np.int64)  # divided first, as the scheduler does: the truncation shows


def _raw(replacement: Replacement) -> IntArray:
    """(nodes,) sum of the weights in each node's domains."""
    placements, constraints = replacement.placements, replacement.constraints
    total = np.zeros(len(replacement.state.nodes.names), dtype=np.int64)
    own = (*constraints.preferred_affinity, *((-weight, term) for weight, term in constraints.preferred_anti_affinity))
    for weight, term in own:
        domains = placements.rules.domains(term.topology_key)
        total += (
            weight * domains.count(replacement.standing(placements.neighbours.matching_all((term,), replacement.namespace)))[domains.of]
        )
    for held in placements.holders.scoring.matching(replacement.label_set, gone=replacement.gone):
        domains = placements.rules.domains(held.topology_key)
        total += held.weight * domains.count(held.nodes)[domains.of]
    return total
