"""Whose replacement is given its node, so that the plan may choose the node itself instead of predicting the scheduler's choice.

kube-scheduler takes a node that a pod is nominated for whatever the scores, if the pod fits there. The pod has to be held at a gate for
that, which the API server does in namespaces that ask for it, for pods of the stock scheduler that a controller makes anew and free to
be placed.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.state.cluster import ClusterState

NAMESPACE_LABEL = "rebalancer.dev/hints"
ENABLED = "enabled"
"""The value of the label with which a namespace asks for hints."""
STOCK_SCHEDULER = "default-scheduler"
HINT = "hint"
TAINT = "taint"
UNSTEERED = "none"
"""How a move is steered: by its node given to the replacement, by soft taints on other nodes, or by nothing."""


@dataclass(frozen=True, slots=True)
class HintRule:
    """``on``: hints are given at all."""

    state: ClusterState
    on: bool

    def __call__(self, pod: int) -> bool:
        """Whether the replacement of the pod would be given its node."""
        if not self.on:
            return False
        pods, state = self.state.pods, self.state
        return (
            state.namespaces.get(pods.namespaces[pod], {}).get(NAMESPACE_LABEL) == ENABLED
            and state.constraints[int(pods.constraints[pod])].scheduler_name == STOCK_SCHEDULER
            and int(pods.controller[pod]) >= 0
            and state.controllers[int(pods.controller[pod])] != ""
        )
