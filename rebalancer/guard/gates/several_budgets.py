"""The Eviction API answers 500 to a pod that two disruption budgets select, whatever they allow."""

from __future__ import annotations

from rebalancer.guard.disruption import outside_budgets
from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "several-budgets"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    budgets = state.pods.budgets[candidate.pod]
    if len(budgets) < 2 or outside_budgets(state, candidate.pod):
        return None
    names = ", ".join(sorted(str(state.budgets[row]) for row in budgets))
    reason = f"{len(budgets)} PDBs select it ({names}), and the Eviction API refuses such a pod; keep only one"
    return Refusal(NAME, reason, retryable=False)


GATE = Gate(
    name=NAME,
    order=310,
    describe="Pods that more than one PodDisruptionBudget selects: the Eviction API refuses them whatever the budgets allow.",
    check=check,
)
