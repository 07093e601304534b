"""How many evictions a sliding window may hold: in total, by node, namespace, workload and tenant."""

from __future__ import annotations

import pytest

from rebalancer.policy.model import Budgets
from rebalancer.state.history import History
from rebalancer.state.tables import WorkloadRef
from tests.guard.scenes import WEB, ask, evicted, measured, reason, scene_of, state_with, take
from tests.support.builder import pod

API = WorkloadRef("Deployment", "default", "api")


def many(count: int, *, on: str = "hot", tenant: str | None = None) -> list[object]:
    return [measured(f"app{i}-0", workload=f"app{i}", on=on, tenant=tenant) for i in range(count)]


def test_the_total_budget_counts_the_window() -> None:
    """Twenty evictions in ten minutes are all that the default allows."""
    history = History(evictions=tuple(evicted(i * 20.0, workload=API, source=f"n{i}") for i in range(20)))
    scene = scene_of(state_with(measured("web-0")), history=history)
    assert reason("budget-total", scene) == "the cluster: 20 of 20 evictions in the last 10m (policy budgets.total is 20)"
    assert ask("budget-total", scene_of(state_with(measured("web-0")), history=History(evictions=history.evictions[:19]))) is None


def test_the_window_slides() -> None:
    """An eviction leaves the window when it is exactly as old as the window is long."""
    one = Budgets(total=1)
    state = state_with(measured("web-0"))
    assert ask("budget-total", scene_of(state, budgets=one, history=History(evictions=(evicted(599.0),)))) is not None
    assert ask("budget-total", scene_of(state, budgets=one, history=History(evictions=(evicted(600.0),)))) is None


def test_window_and_plan_are_added_up() -> None:
    """What the plan has booked counts beside what happened, and the sentence tells them apart."""
    scene = scene_of(state_with(*many(3)), budgets=Budgets(total=3, per_node=10), history=History(evictions=(evicted(60),)))
    take(scene, 0)
    assert ask("budget-total", scene, 2) is None
    take(scene, 1)
    assert reason("budget-total", scene, 2) == (
        "the cluster: 3 of 3 evictions in the last 10m, 2 of them in this plan (policy budgets.total is 3)"
    )


def test_a_percentage_of_the_total_is_of_running_pods() -> None:
    """Ten percent of twenty running pods are two; a pending pod is not counted."""
    state = state_with(*many(20), *(pod(f"p{i}", workload="later") for i in range(10)))
    scene = scene_of(state, budgets=Budgets(total="10%"))
    take(scene, 0)
    assert ask("budget-total", scene, 2) is None
    take(scene, 1)
    assert "2 of 2 evictions" in reason("budget-total", scene, 2)
    assert "policy budgets.total is 10% of 20 pods" in reason("budget-total", scene, 2)


def test_a_node_may_lose_so_many() -> None:
    """Two by default, and another node has its own budget."""
    state = state_with(*many(3), measured("other-0", workload="other", on="cool"))
    scene = scene_of(state, history=History(evictions=(evicted(300, workload=API),)))
    take(scene, 0)
    assert reason("budget-node", scene, 1) == (
        "node hot: 2 of 2 evictions in the last 10m, 1 of them in this plan (policy budgets.perNode is 2)"
    )
    assert ask("budget-node", scene, 3) is None


def test_a_percentage_of_a_node_is_of_its_pods() -> None:
    """Half of the node's four pods are two, whatever runs elsewhere."""
    scene = scene_of(state_with(*many(4), *many(20, on="cool")), budgets=Budgets(per_node="50%"))
    take(scene, 0)
    assert ask("budget-node", scene, 1) is None
    take(scene, 1)
    assert "perNode is 50% of 4 pods" in reason("budget-node", scene, 2)


def test_a_namespace_may_lose_so_many() -> None:
    """The namespace's own evictions count, others' do not."""
    state = state_with(measured("a", namespace="shop"), measured("b", namespace="lab"))
    history = History(evictions=(evicted(60, workload=WorkloadRef("Deployment", "shop", "x")),))
    scene = scene_of(state, budgets=Budgets(per_namespace=1), history=history)
    assert reason("budget-namespace", scene) == "namespace shop: 1 of 1 evictions in the last 10m (policy budgets.perNamespace is 1)"
    assert ask("budget-namespace", scene, 1) is None


def test_a_workload_may_lose_so_many() -> None:
    """One by default; a share is of its running pods."""
    state = state_with(*(measured(f"web-{i}") for i in range(4)))
    history = History(evictions=(evicted(60),))
    assert reason("budget-workload", scene_of(state, history=history)) == (
        "Deployment default/web: 1 of 1 evictions in the last 10m (policy budgets.perWorkload is 1)"
    )
    assert ask("budget-workload", scene_of(state, history=history, budgets=Budgets(per_workload="50%"))) is None
    assert ask("budget-workload", scene_of(state, history=History(evictions=(evicted(60, workload=API),)))) is None


def test_a_tenant_may_lose_a_share_of_its_pods() -> None:
    """Ten percent of twenty pods by default; a pod of no tenant is not asked."""
    state = state_with(*many(20, tenant="team-a"), measured("b-0", tenant="team-b"), measured("c-0"))
    history = History(evictions=tuple(evicted(60, workload=API, tenant="team-a") for _ in range(2)))
    scene = scene_of(state, history=history)
    assert reason("budget-tenant", scene) == (
        "tenant team-a: 2 of 2 evictions in the last 10m (policy budgets.perTenant is 10% of 20 pods)"
    )
    assert ask("budget-tenant", scene, 20) is None
    assert ask("budget-tenant", scene, 21) is None


@pytest.mark.parametrize("value", [0, "0%"])
def test_a_budget_of_nothing_is_final(value: int | str) -> None:
    """No amount of waiting helps, and the sentence says so."""
    refusal = ask("budget-total", scene_of(state_with(measured("web-0")), budgets=Budgets(total=value)))
    assert refusal is not None
    assert refusal.reason.startswith("the cluster may lose no pod: policy budgets.total is 0")
    assert not refusal.retryable


def test_booking_charges_every_budget_once() -> None:
    """One accepted pod is one eviction for the plan, its node, namespace, workload and tenant."""
    scene = scene_of(state_with(measured("web-0", tenant="team-a")))
    take(scene, 0)
    booked = scene.booked
    assert (booked.total, booked.by_node, booked.by_namespace) == (1, {0: 1}, {"default": 1})
    assert (booked.by_workload, booked.by_tenant, booked.pods) == ({WEB: 1}, {0: 1}, {0})
