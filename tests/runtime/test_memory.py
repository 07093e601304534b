"""What becomes of a move once it was made: landed, elsewhere, back, lost; and what is remembered of it."""

from __future__ import annotations

import math

import pytest

from rebalancer.errors import ConfigurationError
from rebalancer.policy.model import Spec
from rebalancer.runtime.memory import LandingResult, Memory, OpenMove, forget, remember, settle
from rebalancer.runtime.records import dump_memory, load_memory
from rebalancer.state.history import PastEviction, Quarantine
from rebalancer.state.tables import WorkloadRef
from tests.support.builder import NOW, cluster, node, pod, workload

WEB = WorkloadRef("Deployment", "default", "web")
SPEC = Spec()


def opened(at: float = NOW - 60, *, alternatives: tuple[str, ...] = ()) -> OpenMove:
    eviction = PastEviction(
        at=at,
        pod_uid="old",
        namespace="default",
        pod="web-old",
        workload=WEB,
        controller_uid="rs",
        tenant=None,
        source="hot",
        destination="cool",
        usage={"cpu": 2.0},
    )
    return OpenMove(eviction, alternatives, 0.05, {"cpu": 0.9}, {"cpu": 0.7})


def seen(*pods, hot_load: float = 0.7, ready: float | None = None):
    nodes = [node("hot", load={"cpu": hot_load}), node("cool"), node("other")]
    return cluster(nodes=nodes, pods=pods, workloads=[workload("web", replicas=3, ready=ready)])


def settled(memory: Memory, state):
    after, landings = settle(memory, state, SPEC)
    return after, [landing.result for landing in landings]


def test_a_replacement_that_is_ready_on_the_planned_node_has_landed_as_planned() -> None:
    """The move is closed, and its realised share is the fall of the source over the predicted one."""
    memory = remember(Memory(), opened())
    after, landings = settle(memory, seen(pod("web-new", on="cool", workload="web", age_s=50)), SPEC)
    assert [landing.result for landing in landings] == [LandingResult.AS_PLANNED]
    assert landings[0].realised_share == pytest.approx(1.0)
    assert landings[0].seconds == 60
    assert after.open_moves == ()
    assert len(after.evictions) == 1


def test_an_alternative_is_as_planned_and_any_other_node_is_elsewhere() -> None:
    """A move names the nodes that the scheduler may choose with equal right."""
    other = pod("web-new", on="other", workload="web", age_s=50)
    assert settled(remember(Memory(), opened(alternatives=("other",))), seen(other))[1] == [LandingResult.AS_PLANNED]
    assert settled(remember(Memory(), opened()), seen(other))[1] == [LandingResult.ELSEWHERE]


def test_t5_a_replacement_back_on_the_source_quarantines_the_workload() -> None:
    """It is counted, and the workload rests with an end time."""
    after, results = settled(remember(Memory(), opened()), seen(pod("web-new", on="hot", workload="web", age_s=50)))
    assert results == [LandingResult.SOURCE]
    assert after.quarantine[WEB] == Quarantine(until=NOW + SPEC.quarantine.hold, returns=1, node="hot")


def test_a_replacement_that_is_not_ready_keeps_the_move_open() -> None:
    """Nothing is settled before the replacement serves."""
    after, results = settled(remember(Memory(), opened()), seen(pod("web-new", on="cool", workload="web", age_s=50, ready=False), ready=2))
    assert results == []
    assert list(after.history("").in_flight) == [WEB]


def test_an_old_pod_of_the_workload_is_not_taken_for_the_replacement() -> None:
    """Only a pod created since the eviction can replace the evicted one."""
    after, results = settled(remember(Memory(), opened()), seen(pod("web-1", on="cool", workload="web", age_s=86400), ready=2))
    assert results == []
    assert len(after.open_moves) == 1


def test_two_open_moves_never_claim_one_replacement() -> None:
    """Each replacement settles one move."""
    memory = remember(remember(Memory(), opened()), opened(at=NOW - 59))
    after, results = settled(memory, seen(pod("web-new", on="cool", workload="web", age_s=50), ready=2))
    assert results == [LandingResult.AS_PLANNED]
    assert len(after.open_moves) == 1


def test_a_workload_that_wants_no_replacement_settles_the_move_as_lost() -> None:
    """Scaled down in between: all wanted replicas are ready, so nothing more will come."""
    assert settled(remember(Memory(), opened()), seen(ready=3))[1] == [LandingResult.LOST]


def test_a_move_whose_old_pod_is_still_there_stays_open() -> None:
    """A long grace period settles nothing."""
    old = pod("web-old", on="hot", workload="web", uid="old", terminating=True)
    after, results = settled(remember(Memory(), opened()), seen(old, pod("web-new", on="cool", workload="web", age_s=50)))
    assert results == []
    assert len(after.open_moves) == 1


def test_an_unknown_load_of_the_source_leaves_the_realised_gain_unknown() -> None:
    """NaN, not zero: it must not open the breaker."""
    state = cluster(
        nodes=[node("hot", unknown={"cpu": "no sample"}), node("cool")],
        pods=[pod("web-new", on="cool", workload="web", age_s=50)],
        workloads=[workload("web")],
    )
    _, landings = settle(remember(Memory(), opened()), state, SPEC)
    assert math.isnan(landings[0].realised_share)


def test_what_is_written_down_but_not_carried_out_is_forgotten_whole() -> None:
    """A refused eviction starts no cooldown."""
    move = opened()
    assert forget(remember(Memory(), move), move) == Memory()


def test_evictions_are_forgotten_only_after_the_longest_window() -> None:
    """The longest of budget window, cooldown and breaker decides; here six hours of cooldown."""
    recent, ancient = opened(at=NOW - SPEC.cooldown.max + 1), opened(at=NOW - SPEC.cooldown.max - 1)
    memory = Memory(evictions=(ancient.eviction, recent.eviction))
    assert settle(memory, seen(), SPEC)[0].evictions == (recent.eviction,)


def test_the_record_gives_back_what_was_written_with_unknowns_unknown() -> None:
    """Round trip through bytes, NaN included."""
    memory, _ = settle(remember(Memory(), opened()), seen(ready=3), SPEC)
    memory = remember(memory, opened(at=NOW))
    again = load_memory(dump_memory(memory), origin="ConfigMap a/b")
    assert again.evictions == memory.evictions
    assert again.open_moves == memory.open_moves
    assert math.isnan(again.landings[0].seconds)
    assert again.landings[0].result is LandingResult.LOST


@pytest.mark.parametrize(("data", "words"), [(b'{"version": 1, "evict', "cannot be read"), (b'{"version": 9}', "version 9")])
def test_a_damaged_record_is_an_error_and_not_an_empty_memory(data: bytes, words: str) -> None:
    """Forgetting cooldowns in silence would move the same pods again."""
    with pytest.raises(ConfigurationError, match=words):
        load_memory(data, origin="ConfigMap a/b")
