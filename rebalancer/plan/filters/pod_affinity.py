"""Required inter-pod affinity: one pod that matches every term, in the node's domain of each term's topology key.

The first pod of a group is let in when nobody matches all terms yet and it matches all of them itself. A pod that leaves still counts until
it is gone, so a single replica with affinity to itself stays in its domain, unless it is one of a StatefulSet.
"""

from __future__ import annotations

import numpy as np

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import BoolArray


def passes(replacement: Replacement) -> Verdict:
    terms = replacement.constraints.affinity
    if not terms:
        return True
    rules, neighbours = replacement.placements.rules, replacement.placements.neighbours
    nodes = replacement.standing(neighbours.matching_all(terms, replacement.namespace))
    with_keys = np.ones(len(replacement.state.nodes.names), dtype=np.bool_)
    near: BoolArray = with_keys.copy()
    anybody = False
    for term in terms:
        domains = rules.domains(term.topology_key)
        counts = domains.count(nodes)
        anybody |= bool(counts.any())
        near &= counts[domains.of] > 0
        with_keys &= domains.of > 0
    if not anybody and _matches_itself(replacement):
        return with_keys
    return near


def _matches_itself(replacement: Replacement) -> bool:
    neighbours = replacement.placements.neighbours
    return neighbours.matching_all(replacement.constraints.affinity, replacement.namespace).has(replacement.pod)


def reason(replacement: Replacement, node: int) -> str:
    rules, terms = replacement.placements.rules, replacement.constraints.affinity
    nodes = replacement.standing(replacement.placements.neighbours.matching_all(terms, replacement.namespace))
    for term in terms:
        domains = rules.domains(term.topology_key)
        number = int(domains.of[node])
        if number == 0:
            return f"The node has no label {term.topology_key}, which the pod's affinity needs"
        if not domains.count(nodes)[number]:
            return f"No pod that the pod's affinity requires is in {term.topology_key}={domains.names[number]}"
    return ""


FILTER = Filter(
    name="affinity",
    order=110,
    describe="No pod that required inter-pod affinity asks for is in the node's domain.",
    passes=passes,
    reason=reason,
)
