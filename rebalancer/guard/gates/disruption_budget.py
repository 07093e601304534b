"""A move must fit what its PodDisruptionBudget still allows, less what the plan has taken from it already."""

from __future__ import annotations

from rebalancer.guard.disruption import disruption_cost
from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.state.tables import Budget

NAME = "disruption-budget"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    for row in state.pods.budgets[candidate.pod]:
        cost = disruption_cost(state, candidate.pod, row)
        budget, planned = state.budgets[row], scene.booked.by_budget.get(row, 0)
        if cost == 0 or cost + planned <= _allowed(budget):
            continue
        return Refusal(NAME, _sentence(budget, planned), retryable=True)
    return None


def _allowed(budget: Budget) -> int:
    return 0 if budget.stale else max(0, budget.allowed)


def _sentence(budget: Budget, planned: int) -> str:
    if budget.stale:
        return f"PDB {budget} has not been brought up to date with its newest spec, so what it allows is not known"
    allowed = _allowed(budget)
    disruptions = "1 disruption" if allowed == 1 else f"{allowed} disruptions"
    if planned:
        used = "it" if allowed == 1 else "them"
        return f"PDB {budget} allows {disruptions}, and this plan already uses {used}"
    health = f"({budget.current_healthy} healthy of {budget.desired_healthy} desired)"
    if budget.expected_pods <= 0:
        return f"PDB {budget} allows {disruptions} {health}: it expects no pods, so it never allows one"
    if budget.desired_healthy >= budget.expected_pods:
        return f"PDB {budget} allows {disruptions} {health}: it wants all of its {budget.expected_pods} expected pods"
    return f"PDB {budget} allows {disruptions} {health}"


GATE = Gate(
    name=NAME,
    order=320,
    describe="Pods whose PodDisruptionBudget allows no disruption now, or whose last one this plan uses already.",
    check=check,
    static=False,
)
