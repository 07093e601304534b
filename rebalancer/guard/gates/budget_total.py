"""How many pods the whole cluster may lose in a window."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.limits import over_limit

NAME = "budget-total"


def check(_candidate: Candidate, scene: Scene) -> Refusal | None:
    return over_limit(
        scene,
        gate=NAME,
        subject=lambda: "the cluster",
        key="total",
        value=scene.spec.budgets.total,
        pods=lambda: scene.headcount.total,
        past=scene.window.total,
        planned=scene.booked.total,
    )


GATE = Gate(
    name=NAME,
    order=420,
    describe=(
        "Every pod once `budgets.total` pods (or that share of the running pods) were evicted within `budgets.window`, this plan included."
    ),
    check=check,
    static=False,
)
