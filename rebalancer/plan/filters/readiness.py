"""A node that is not Ready takes nothing, also in the moments before the node controller taints it."""

from __future__ import annotations

from rebalancer.plan.filter import Filter
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import BoolArray


def passes(replacement: Replacement) -> BoolArray:
    return replacement.state.nodes.ready


def reason(replacement: Replacement, node: int) -> str:
    return f"Node {replacement.state.nodes.names[node]} is not Ready"


FILTER = Filter(name="not-ready", order=30, describe="The node is not Ready.", passes=passes, reason=reason, static=True)
