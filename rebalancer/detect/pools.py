"""Which pool a node is balanced in: by label selector, one pool a node, the pool without a selector takes the rest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rebalancer.errors import PolicyError
from rebalancer.policy.model import Pool
from rebalancer.policy.quantities import LabelSelector
from rebalancer.state.arrays import IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.matching import matches
from rebalancer.state.scheduling import Requirement, Selector


def selector_of(selector: LabelSelector) -> Selector:
    """The policy's selector in the words of the state."""
    pairs = tuple(Requirement(key, "In", (value,)) for key, value in sorted(selector.match_labels.items()))
    expressions = tuple(Requirement(e.key, e.operator, e.values) for e in selector.match_expressions)
    return Selector(pairs + expressions)


def assign_pools(state: ClusterState, pools: tuple[Pool, ...]) -> IntArray:
    """(nodes,) row of the pool that claims each node, -1 when none does.

    Raises PolicyError when two pools with a selector claim one node, or when two pools have none.
    """
    selectors = [selector_of(pool.node_selector) for pool in pools]
    fallback = [row for row, selector in enumerate(selectors) if not selector.requirements]
    if len(fallback) > 1:
        first, second = (pools[row].name for row in fallback[:2])
        raise PolicyError(
            f"pools {first} and {second} both have no nodeSelector, so both claim every node",
            remedy="give one of them a nodeSelector",
        )
    assigned = np.full(len(state.nodes.names), -1, dtype=np.int64)
    for row, selector in enumerate(selectors):
        if not selector.requirements:
            continue
        for node, labels in enumerate(state.nodes.labels):
            if not matches(selector, labels.get):
                continue
            if assigned[node] >= 0:
                raise PolicyError(
                    f"pools {pools[int(assigned[node])].name} and {pools[row].name} both claim node {state.nodes.names[node]}",
                    remedy="make their nodeSelectors exclude each other",
                )
            assigned[node] = row
    if fallback:
        assigned[assigned < 0] = fallback[0]
    return assigned


def claimed(pools: tuple[Pool, ...], labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is in some pool: what is in none is another controller's, or nobody's."""
    return any(matches(selector_of(pool.node_selector), labels.get) for pool in pools)
