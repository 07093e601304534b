"""Whose replacement is led to its node, so that the plan may choose the node itself instead of predicting the scheduler's choice.

By a hint: kube-scheduler takes a node that a pod is nominated for whatever the scores, if the pod fits there. The pod has to be held at a
gate for that, which the API server does in namespaces that ask for it, for pods of the stock scheduler that a controller makes anew and
free to be placed.

By reservation: `rebalancer extender` gives the planned node all of its points and every other node none. kube-scheduler adds them to its
own, so a node may be chosen only where its own scores are not further behind than the extender's points reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rebalancer.state.cluster import ClusterState

NAMESPACE_LABEL = "rebalancer.dev/hints"
ENABLED = "enabled"
"""The value of the label with which a namespace asks for hints."""
STOCK_SCHEDULER = "default-scheduler"
HINT = "hint"
TAINT = "taint"
EXTENDER = "extender"
UNSTEERED = "none"
"""How a move is steered: by its node given to the replacement, by soft taints on other nodes, by room reserved in the extender, or not."""
POINTS = 100.0
"""What a weight of 1 is worth in kube-scheduler's sum of scores, for an extender as for a plugin: both reach from 0 to 100 there."""
MARGIN = 20.0
"""Points that are left to what changes between the plan and the scheduling of the replacement."""


@dataclass(frozen=True, slots=True)
class Led:
    """How a replacement is led to its node. ``reach``: how far kube-scheduler's own scores may speak for another one."""

    by: str
    reach: float = math.inf


@dataclass(frozen=True, slots=True)
class HintRule:
    """``on``: hints are given at all. ``extender_weight``: of our extender in kube-scheduler's configuration, 0 for none."""

    state: ClusterState
    on: bool
    extender_weight: int = 0

    def __call__(self, pod: int) -> Led | None:
        """How the replacement of the pod would be led; None where it is not. A hint is the stronger of the two."""
        if not self.on and not self.extender_weight:
            return None
        pods, state = self.state.pods, self.state
        steerable = (
            state.constraints[int(pods.constraints[pod])].scheduler_name == STOCK_SCHEDULER
            and int(pods.controller[pod]) >= 0
            and state.controllers[int(pods.controller[pod])] != ""
        )
        if not steerable:
            return None
        if self.on and state.namespaces.get(pods.namespaces[pod], {}).get(NAMESPACE_LABEL) == ENABLED:
            return Led(HINT)
        return Led(EXTENDER, POINTS * self.extender_weight - MARGIN) if self.extender_weight else None
