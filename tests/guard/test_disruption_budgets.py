"""The arithmetic of the Eviction API on disruption budgets, the plan's own consumption included."""

from __future__ import annotations

import pytest

from rebalancer.guard.gate import first_refusal
from rebalancer.state.tables import Budget, Phase
from tests.guard.scenes import ask, candidate, gate, measured, reason, scene_of, state_with, take
from tests.support.builder import budget

GATE = "disruption-budget"


def test_e1_a_budget_that_allows_nothing_is_named_with_its_numbers() -> None:
    """A dry run refuses what the Eviction API would refuse."""
    state = state_with(measured("web-0", budgets=["web"]), budgets=[budget("web", allowed=0, healthy=3, desired=3, expected=4)])
    scene = scene_of(state)
    refusal = first_refusal(candidate(scene), scene)
    assert refusal is not None
    assert refusal.gate == GATE
    assert refusal.reason == "PDB default/web allows 0 disruptions (3 healthy of 3 desired)"
    assert refusal.retryable


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (
            budget("web", allowed=0, healthy=3, desired=3, expected=3),
            "PDB default/web allows 0 disruptions (3 healthy of 3 desired): it wants all of its 3 expected pods",
        ),
        (
            budget("web", allowed=0, healthy=3, desired=0, expected=0),
            "PDB default/web allows 0 disruptions (3 healthy of 0 desired): it expects no pods, so it never allows one",
        ),
        (
            budget("web", stale=True),
            "PDB default/web has not been brought up to date with its newest spec, so what it allows is not known",
        ),
        (budget("web", allowed=-1, healthy=1, desired=2), "PDB default/web allows 0 disruptions (1 healthy of 2 desired)"),
    ],
)
def test_v4_the_sentence_tells_a_budget_that_never_allows_from_one_that_does_not_now(rules: Budget, words: str) -> None:
    """An operator sees whether waiting helps."""
    assert reason(GATE, scene_of(state_with(measured("web-0", budgets=["web"]), budgets=[rules]))) == words


def test_a_pod_under_a_generous_budget_or_none_passes() -> None:
    """One allowed disruption is enough for the first pod."""
    assert ask(GATE, scene_of(state_with(measured("web-0", budgets=["web"]), budgets=[budget("web", allowed=1)]))) is None
    assert ask(GATE, scene_of(state_with(measured("web-0")))) is None


def test_p4_the_second_of_two_candidates_is_refused_by_the_plans_own_use() -> None:
    """Two workloads share a budget that allows one disruption: one move."""
    state = state_with(
        measured("a-0", workload="a", budgets=["all"]),
        measured("b-0", workload="b", budgets=["all"]),
        budgets=[budget("all", allowed=1)],
    )
    scene = scene_of(state)
    take(scene, 0)
    assert reason(GATE, scene, 1) == "PDB default/all allows 1 disruption, and this plan already uses it"


def test_v18_unready_pods_of_a_met_budget_cost_nothing() -> None:
    """Allowed 2, two Ready pods, one that is not Ready while the budget is met: all three, and no fourth."""
    state = state_with(
        *(measured(name, budgets=["web"], ready=ready) for name, ready in [("a", True), ("b", True), ("c", False), ("d", True)]),
        budgets=[budget("web", allowed=2, healthy=5, desired=3, expected=6)],
    )
    scene = scene_of(state)
    for row in (0, 1, 2):
        assert ask(GATE, scene, row) is None
        take(scene, row)
    assert reason(GATE, scene, 3) == "PDB default/web allows 2 disruptions, and this plan already uses them"


@pytest.mark.parametrize(
    ("rules", "passes"),
    [
        (budget("web", allowed=0, healthy=2, desired=2), True),
        (budget("web", allowed=0, healthy=1, desired=2), False),
        (budget("web", allowed=0, healthy=1, desired=2, always_allow=True), True),
        (budget("web", allowed=0, healthy=0, desired=0), False),
    ],
)
def test_v12_v13_v14_a_pod_that_is_not_ready_follows_the_unhealthy_policy(rules: Budget, passes: bool) -> None:
    """Free under AlwaysAllow or a met budget, charged otherwise."""
    state = state_with(measured("web-0", budgets=["web"], ready=False), budgets=[rules])
    assert (ask(GATE, scene_of(state)) is None) is passes


def test_v15_budgets_are_not_asked_about_a_pending_pod() -> None:
    """The Eviction API lets a pending pod go whatever the budget says."""
    state = state_with(measured("web-0", budgets=["web"], phase=Phase.PENDING), budgets=[budget("web", allowed=0)])
    assert ask(GATE, scene_of(state)) is None


def test_v16_a_stale_budget_allows_nothing_even_if_its_old_status_does() -> None:
    """A status that does not know the newest spec is no permission."""
    old = Budget("default", "web", None, 5, 5, 0, 5, always_allow_unhealthy=False, stale=True)
    assert ask(GATE, scene_of(state_with(measured("web-0", budgets=["web"]), budgets=[old]))) is not None


def test_two_budgets_on_a_pod_are_named_and_final() -> None:
    """The Eviction API answers 500 to such a pod, whatever they allow."""
    state = state_with(measured("web-0", budgets=["web", "all"]), budgets=[budget("web", allowed=5), budget("all", allowed=5)])
    refusal = ask("several-budgets", scene_of(state))
    assert refusal is not None
    assert refusal.reason == "2 PDBs select it (default/all, default/web), and the Eviction API refuses such a pod; keep only one"
    assert not refusal.retryable
    assert ask("several-budgets", scene_of(state_with(measured("w", budgets=["web"]), budgets=[budget("web")]))) is None


def test_the_budget_gate_is_asked_again_while_the_plan_grows() -> None:
    """It counts what the plan has taken, so its answer does not hold for the whole cycle."""
    assert not gate(GATE).static
