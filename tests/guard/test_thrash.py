"""Nothing is moved again and again: one in flight, quarantine, and rests that grow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalancer.guard.windows import rest_after
from rebalancer.policy.model import Budgets, Cooldown
from rebalancer.state.history import History, Quarantine
from rebalancer.state.tables import Phase, WorkloadRef
from tests.guard.scenes import WEB, ask, evicted, measured, reason, scene_of, state_with, take
from tests.support.builder import NOW

API = WorkloadRef("Deployment", "default", "api")


def test_p1_the_next_pod_waits_for_the_replacement_of_the_last() -> None:
    """An open move of the workload holds its other pods; other workloads are free."""
    state = state_with(measured("web-1"), measured("api-0", workload="api"))
    scene = scene_of(state, history=History(in_flight={WEB: evicted(120)}))
    assert reason("in-flight", scene) == "the replacement of web-0, evicted 2m ago, is not Ready yet (Deployment default/web)"
    assert ask("in-flight", scene, 1) is None


@pytest.mark.parametrize("terminating", [True, False], ids=["leaving slowly", "no answer came to its eviction"])
def test_a_node_waits_until_the_pod_that_was_evicted_from_it_is_gone(terminating: bool) -> None:
    """Its load is still measured, so another pod would be taken for the same heat. Other nodes are free."""
    pods = (measured("web-0", terminating=terminating), measured("api-0", workload="api"), measured("db-0", workload="db", on="cool"))
    state = state_with(*pods)
    past = replace(evicted(180), pod_uid=state.pods.uids[0])
    scene = scene_of(state, history=History(in_flight={WEB: past}))
    assert reason("in-flight", scene, 1) == "web-0, evicted from hot 3m ago, has not left it yet"
    assert ask("in-flight", scene, 2) is None


def test_p1_a_plan_moves_one_pod_of_a_workload_at_a_time_without_any_budget() -> None:
    """No PDB, and a policy that would let more go: still the second waits."""
    scene = scene_of(state_with(measured("web-0"), measured("web-1")), budgets=Budgets(per_workload=3))
    assert ask("in-flight", scene, 1) is None
    take(scene, 0)
    assert reason("in-flight", scene, 1) == (
        "this plan already moves a pod of Deployment default/web; the next one waits until the replacement is Ready"
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"terminating": True}, "Deployment default/web has 1 pod terminating"),
        ({"on": None}, "Deployment default/web has 1 pod on the way that is not Ready yet"),
        ({"phase": Phase.PENDING, "ready": False, "age_s": 86400.0}, "Deployment default/web has 1 pod on the way that is not Ready yet"),
        ({"ready": False, "age_s": 60.0}, "Deployment default/web has 1 pod on the way that is not Ready yet"),
    ],
)
def test_p1_somebody_elses_eviction_counts_as_well(fields: dict[str, object], words: str) -> None:
    """A pod on its way out or in is a move under way, whoever began it."""
    assert reason("in-flight", scene_of(state_with(measured("web-0"), measured("web-1", **fields)))) == words


@pytest.mark.parametrize(
    "fields",
    [{}, {"ready": False, "age_s": 86400.0}, {"phase": Phase.SUCCEEDED, "ready": False, "age_s": 60.0}, {"workload": "api", "on": None}],
)
def test_p1_a_settled_pod_holds_nobody(fields: dict[str, object]) -> None:
    """Ready, finished, long broken, or another workload's: no replacement is on the way."""
    assert ask("in-flight", scene_of(state_with(measured("web-0"), measured("web-1", **fields)))) is None


def test_an_arriving_pod_does_not_wait_for_itself() -> None:
    """Only other pods of the workload are counted."""
    assert ask("in-flight", scene_of(state_with(measured("web-0", ready=False, age_s=60.0)))) is None


def test_t5_t6_a_workload_that_came_back_is_quarantined_with_an_end() -> None:
    """The sentence says how often it returned, where, and until when it rests."""
    held = {WEB: Quarantine(until=NOW + 3600, returns=2, node="hot")}
    scene = scene_of(state_with(measured("web-0"), measured("api-0", workload="api")), history=History(quarantine=held))
    assert reason("quarantine", scene) == (
        "Deployment default/web came back to node hot 2 times and rests until 2025-06-15T16:06:40Z (policy quarantine.hold)"
    )
    assert ask("quarantine", scene, 1) is None


def test_t6_a_quarantine_ends() -> None:
    """At its end the workload may move again."""
    held = {WEB: Quarantine(until=NOW, returns=1, node="hot")}
    assert ask("quarantine", scene_of(state_with(measured("web-0")), history=History(quarantine=held))) is None


@pytest.mark.parametrize(("ago", "refused"), [(0.0, True), (899.0, True), (900.0, False)])
def test_t3_a_workload_rests_after_its_first_move(ago: float, refused: bool) -> None:
    """For exactly cooldown.workload."""
    scene = scene_of(state_with(measured("web-0")), history=History(evictions=(evicted(ago),)))
    assert (ask("cooldown-workload", scene) is not None) is refused


def test_t3_the_rest_doubles_with_every_further_move_in_a_row() -> None:
    """Three moves within six hours: four times the first rest, and the sentence carries the numbers."""
    history = History(evictions=(evicted(7200), evicted(3600), evicted(600)))
    scene = scene_of(state_with(measured("web-0")), history=history)
    assert reason("cooldown-workload", scene) == (
        "Deployment default/web rests 1h after 3 moves within 6h, 50m of it left (policy cooldown.workload)"
    )


def test_t3_moves_of_long_ago_and_of_others_do_not_count() -> None:
    """A workload that nobody moved for cooldown.max starts afresh."""
    history = History(evictions=(evicted(30000), evicted(21600), evicted(1000), evicted(10, workload=API), evicted(10, workload=None)))
    assert ask("cooldown-workload", scene_of(state_with(measured("web-0")), history=history)) is None


def test_an_eviction_of_the_future_counts_as_just_now() -> None:
    """Two clocks that disagree do not shorten a rest."""
    scene = scene_of(state_with(measured("web-0")), history=History(evictions=(evicted(-60),)))
    assert reason("cooldown-workload", scene).startswith("Deployment default/web rests 15m after 1 move within 6h, 15m of it left")


@pytest.mark.parametrize(("ago", "refused"), [(0.0, True), (119.0, True), (120.0, False)])
def test_t3_a_node_rests_after_a_pod_left(ago: float, refused: bool) -> None:
    """The measurements need time to show it; other nodes are free."""
    state = state_with(measured("web-0"), measured("web-1", on="cool"))
    scene = scene_of(state, history=History(evictions=(evicted(500, workload=API), evicted(ago, workload=API))))
    assert (ask("cooldown-node", scene) is not None) is refused
    assert ask("cooldown-node", scene, 1) is None
    if ago == 0.0:
        assert reason("cooldown-node", scene) == "node hot rests 2m after its last eviction, 2m of it left (policy cooldown.node)"


def test_no_rest_where_the_policy_wants_none() -> None:
    """Cooldowns of zero refuse nobody."""
    scene = scene_of(
        state_with(measured("web-0")), history=History(evictions=(evicted(0), evicted(0))), cooldown=Cooldown(workload=0, node=0)
    )
    assert ask("cooldown-workload", scene) is None
    assert ask("cooldown-node", scene) is None


@pytest.mark.parametrize(
    ("moves", "expected"), [(0, 0.0), (1, 900.0), (2, 1800.0), (3, 3600.0), (5, 14400.0), (6, 21600.0), (100_000, 21600.0)]
)
def test_the_rest_is_bounded(moves: int, expected: float) -> None:
    """It doubles up to its maximum, for any number of moves."""
    assert rest_after(moves, first_s=900, factor=2, longest_s=21600) == expected


def test_pods_of_a_node_whose_peak_passes_by_itself_wait() -> None:
    """With what yesterday was like; those of other nodes are free."""
    scene = scene_of(state_with(measured("web-0"), measured("web-1", on="cool")))
    scene = replace(scene, passing={0: "cpu load 78 % as yesterday"})
    assert reason("passing-peak", scene) == "the peak of its node passes by itself: cpu load 78 % as yesterday"
    assert ask("passing-peak", scene, 1) is None
