"""How many pods one namespace may lose in a window."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.limits import over_limit

NAME = "budget-namespace"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    namespace = scene.state.pods.namespaces[candidate.pod]
    return over_limit(
        scene,
        gate=NAME,
        subject=lambda: f"namespace {namespace}",
        key="perNamespace",
        value=scene.spec.budgets.per_namespace,
        pods=lambda: scene.headcount.by_namespace.get(namespace, 0),
        past=scene.window.by_namespace.get(namespace, 0),
        planned=scene.booked.by_namespace.get(namespace, 0),
    )


GATE = Gate(
    name=NAME,
    order=400,
    describe=(
        "Pods in a namespace that lost `budgets.perNamespace` pods (or that share of its running pods) within "
        "`budgets.window`, this plan included."
    ),
    check=check,
    static=False,
)
