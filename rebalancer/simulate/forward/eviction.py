"""What the API server answers to evictions of one moment, in their order.

The rules of the Eviction subresource over the columns of a state: a terminating pod is left as it is, a Pending or finished one needs no
budget, more than one budget is an error, and a budget that allows no disruption refuses. Every disruption is charged at once, so the second
eviction of a moment sees the first.
"""

from __future__ import annotations

from rebalancer.guard.disruption import disruption_cost, outside_budgets
from rebalancer.state.cluster import ClusterState


class EvictionApi:
    """One instance a cycle."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._allowed = [budget.allowed for budget in state.budgets]
        self._evicted: set[int] = set()

    def evict(self, pod: int) -> str:
        """Evict ``state.pods`` row ``pod``: an empty answer when it is accepted, else why it is not."""
        state = self._state
        if pod in self._evicted or state.pods.terminating[pod]:
            return "the pod is terminating already"
        budgets = () if outside_budgets(state, pod) else state.pods.budgets[pod]
        if len(budgets) > 1:
            return f"{len(budgets)} disruption budgets select the pod, which the eviction API does not support"
        for budget in budgets:
            cost = disruption_cost(state, pod, budget)
            if cost > self._allowed[budget]:
                rules = state.budgets[budget]
                return f"disruption budget {rules} needs {rules.desired_healthy} healthy pods and has {rules.current_healthy}"
            self._allowed[budget] -= cost
        self._evicted.add(pod)
        return ""
