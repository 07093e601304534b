"""nodeSelector and required node affinity."""

from __future__ import annotations

from rebalancer.plan.filter import Filter
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import BoolArray


def passes(replacement: Replacement) -> BoolArray:
    return replacement.placements.rules.selected(replacement.constraints)


def reason(replacement: Replacement, node: int) -> str:
    labels = replacement.state.nodes.labels[node]
    for key, value in replacement.constraints.node_selector:
        if labels.get(key) != value:
            has = f"{key}={labels[key]}" if key in labels else f"no label {key}"
            return f"The nodeSelector wants {key}={value}, the node has {has}"
    terms = replacement.constraints.node_terms or ()
    return f"None of the {len(terms)} required node affinity terms matches the node" if terms else "The required node affinity is empty"


FILTER = Filter(
    name="node-affinity",
    order=50,
    describe="The node does not match nodeSelector or required node affinity.",
    passes=passes,
    reason=reason,
    static=True,
)
