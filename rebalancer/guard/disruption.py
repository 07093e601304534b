"""What an eviction costs a PodDisruptionBudget, by the rules of the Eviction API.

A pod that is Pending, finished or terminating costs nothing. A pod that is not Ready costs nothing under AlwaysAllow, or when the budget is
met (currentHealthy >= desiredHealthy > 0). Everything else costs one disruption.
"""

from __future__ import annotations

from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase

_OUTSIDE = frozenset({int(Phase.PENDING), int(Phase.SUCCEEDED), int(Phase.FAILED)})


def outside_budgets(state: ClusterState, pod: int) -> bool:
    """True when the Eviction API does not consult budgets for the pod at all."""
    pods = state.pods
    return bool(pods.terminating[pod]) or int(pods.phase[pod]) in _OUTSIDE


def disruption_cost(state: ClusterState, pod: int, budget: int) -> int:
    """0 or 1: what evicting the pod takes from the budget's ``disruptionsAllowed``."""
    if outside_budgets(state, pod):
        return 0
    rules = state.budgets[budget]
    if not state.pods.ready[pod]:
        if rules.always_allow_unhealthy:
            return 0
        if rules.current_healthy >= rules.desired_healthy > 0:
            return 0
    return 1
