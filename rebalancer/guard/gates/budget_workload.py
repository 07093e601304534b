"""How many pods of one workload a window may cost."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.limits import over_limit

NAME = "budget-workload"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    row = int(state.pods.workload[candidate.pod])
    if row < 0:
        return None
    if scene.follows_its_gang(candidate.pod):
        return None
    ref = state.workloads.refs[row]
    return over_limit(
        scene,
        gate=NAME,
        subject=lambda: str(ref),
        key="perWorkload",
        value=scene.spec.budgets.per_workload,
        pods=lambda: int(scene.headcount.by_workload[row]),
        past=scene.window.by_workload.get(ref, 0),
        planned=scene.booked.by_workload.get(ref, 0),
    )


GATE = Gate(
    name=NAME,
    order=380,
    describe=(
        "Pods of a workload that lost `budgets.perWorkload` pods (or that share of its running pods) within "
        "`budgets.window`, this plan included. A gang that moves whole counts once here, and with every pod in the other budgets."
    ),
    check=check,
    static=False,
)
