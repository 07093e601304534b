"""Cordoned nodes take only pods that tolerate the cordon."""

from __future__ import annotations

from rebalancer.plan.filter import Filter
from rebalancer.plan.replacement import Replacement
from rebalancer.state.arrays import BoolArray


def passes(replacement: Replacement) -> BoolArray:
    return replacement.placements.rules.open(replacement.constraints.tolerations)


def reason(replacement: Replacement, node: int) -> str:
    return f"Node {replacement.state.nodes.names[node]} is cordoned"


FILTER = Filter(name="cordon", order=20, describe="The node is unschedulable.", passes=passes, reason=reason, static=True)
