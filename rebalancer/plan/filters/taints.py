"""NoSchedule and NoExecute taints that the pod does not tolerate."""

from __future__ import annotations

from rebalancer.plan.filter import Filter
from rebalancer.plan.replacement import Replacement
from rebalancer.plan.tolerations import untolerated
from rebalancer.state.arrays import BoolArray


def passes(replacement: Replacement) -> BoolArray:
    return replacement.placements.rules.tolerated(replacement.constraints.tolerations)


def reason(replacement: Replacement, node: int) -> str:
    taint = untolerated(replacement.state.nodes.taints[node], replacement.constraints.tolerations)
    if taint is None:
        return ""
    value = f"={taint.value}" if taint.value else ""
    return f"Untolerated taint {taint.key}{value}:{taint.effect}"


FILTER = Filter(
    name="taints",
    order=40,
    describe="The node has a NoSchedule or NoExecute taint that the pod does not tolerate.",
    passes=passes,
    reason=reason,
    static=True,
)
