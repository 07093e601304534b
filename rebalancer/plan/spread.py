"""What topology spread counts, for the filter (hard constraints) and for the score (soft ones) alike.

Two details of the scheduler are kept on purpose: an empty selector ``{}`` counts no pod, though the pod itself matches it; and the
selector gets ``key In (own value)`` for every ``matchLabelKeys`` key that the pod has.
"""

from __future__ import annotations

import numpy as np

from rebalancer.plan.neighbours import Crowd, without_one
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.matching import matches
from rebalancer.state.scheduling import Requirement, Selector, SpreadConstraint


def effective_selector(replacement: Replacement, constraint: SpreadConstraint) -> Selector | None:
    if constraint.selector is None:
        return None
    values = ((key, replacement.labels.get(key)) for key in constraint.match_label_keys)
    merged = tuple(Requirement(key, "In", (value,)) for key, value in values if value is not None)
    return Selector((*constraint.selector.requirements, *merged)) if merged else constraint.selector


def matches_itself(replacement: Replacement, constraint: SpreadConstraint) -> bool:
    """Whether the pod would add to the count of its own domain."""
    return matches(effective_selector(replacement, constraint), replacement.labels.get)


def counted_nodes(replacement: Replacement, constraint: SpreadConstraint) -> IntArray:
    """(pods,) nodes of the pods that the constraint counts, one entry a pod; the evicted pod is not among them."""
    crowd = replacement.placements.neighbours.spread(effective_selector(replacement, constraint), replacement.namespace)
    return without_itself(replacement, crowd)


def without_itself(replacement: Replacement, crowd: Crowd) -> IntArray:
    """The nodes of a crowd, without the pod that the replacement is for when it is leaving and is still counted."""
    occupancy = replacement.placements.occupancy
    nodes = crowd.nodes()
    if not replacement.leaving or occupancy.booked(replacement.pod) or not crowd.has(replacement.pod):
        return nodes
    return without_one(nodes, occupancy.spread_source(replacement.pod))


def included(replacement: Replacement, constraint: SpreadConstraint) -> BoolArray:
    """(nodes,): nodes that the inclusion policies of the constraint let take part."""
    rules, constraints = replacement.placements.rules, replacement.constraints
    mask = np.ones(len(replacement.state.nodes.names), dtype=np.bool_)
    if constraint.honor_node_affinity:
        mask &= rules.selected(constraints)
    if constraint.honor_node_taints:
        mask &= rules.tolerated(constraints.tolerations)
    return mask


def having_all_keys(replacement: Replacement, constraints: tuple[SpreadConstraint, ...]) -> BoolArray:
    """(nodes,): nodes that have the topology key of every constraint."""
    mask = np.ones(len(replacement.state.nodes.names), dtype=np.bool_)
    for constraint in constraints:
        mask &= replacement.placements.rules.domains(constraint.topology_key).of > 0
    return mask
