"""How many pods one tenant may lose in a window, so that no tenant pays for the balance of all."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.limits import over_limit

NAME = "budget-tenant"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    row = int(scene.state.pods.tenant[candidate.pod])
    if row < 0:
        return None
    tenant = scene.state.tenants[row]
    return over_limit(
        scene,
        gate=NAME,
        subject=lambda: f"tenant {tenant}",
        key="perTenant",
        value=scene.spec.budgets.per_tenant,
        pods=lambda: int(scene.headcount.by_tenant[row]),
        past=scene.window.by_tenant.get(tenant, 0),
        planned=scene.booked.by_tenant.get(row, 0),
    )


GATE = Gate(
    name=NAME,
    order=410,
    describe=(
        "Pods of a tenant that lost `budgets.perTenant` pods (or that share of its running pods) within `budgets.window`, "
        "this plan included."
    ),
    check=check,
    static=False,
)
