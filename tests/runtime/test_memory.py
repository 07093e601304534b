"""What becomes of a move once it was made: landed, elsewhere, back, lost; and what is remembered of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from rebalancer.errors import ConfigurationError
from rebalancer.policy.model import Mode, RebalancePolicy, Spec
from rebalancer.policy.model import Quarantine as QuarantineRules
from rebalancer.runtime.considering import Orders, breaker_of
from rebalancer.runtime.memory import (
    GIVE_UP_S,
    MOST_EVICTIONS,
    MOST_LANDINGS,
    MOST_QUARANTINED,
    STAY_S,
    Landing,
    LandingResult,
    Memory,
    OpenMove,
    forget,
    quarantined_since,
    remember,
    settle,
)
from rebalancer.runtime.records import dump_memory, load_memory
from rebalancer.state.history import PastEviction, Quarantine
from rebalancer.state.tables import WorkloadRef
from tests.support.builder import NOW, cluster, node, pod, workload

WEB = WorkloadRef("Deployment", "default", "web")
SPEC = Spec()


def opened(
    at: float = NOW - 60, *, alternatives: tuple[str, ...] = (), uid: str = "old", before: float = 0.9, after: float = 0.7
) -> OpenMove:
    eviction = PastEviction(
        at=at,
        pod_uid=uid,
        namespace="default",
        pod="web-old",
        workload=WEB,
        controller_uid="rs",
        tenant=None,
        source="hot",
        destination="cool",
        usage={"cpu": 2.0},
    )
    return OpenMove(eviction, alternatives, 0.05, {"cpu": before}, {"cpu": after})


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


def test_the_time_to_readiness_is_what_the_status_of_the_replacement_says() -> None:
    """Not when a cycle saw it: 50 s ago it started, 20 s later it was Ready; 30 s after the eviction of a minute ago."""
    memory = remember(Memory(), opened())
    after, landings = settle(memory, seen(pod("web-new", on="cool", workload="web", age_s=50, ready_after_s=20)), SPEC)
    assert landings[0].seconds == 30
    assert after.history("").start_up == {WEB: 30}


def test_what_decisions_see_of_a_start_is_the_median_of_the_landings() -> None:
    """A replacement that never came says nothing of it."""
    landings = tuple(Landing(opened(), LandingResult.AS_PLANNED, NOW, "cool", seconds, 1.0) for seconds in (300.0, 20.0, math.nan, 40.0))
    assert Memory(landings=landings).history("").start_up == {WEB: 40.0}
    assert Memory(landings=landings[2:3]).history("").start_up == {}


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


def test_a_replacement_that_was_to_come_back_has_landed_as_planned() -> None:
    """A member of a gang on a node that is not hot may come back to it; that is no reason to let its job rest."""
    move = opened()
    back = replace(move, eviction=replace(move.eviction, source="cool"))
    after, results = settled(remember(Memory(), back), seen(pod("web-new", on="cool", workload="web", age_s=50)))
    assert results == [LandingResult.AS_PLANNED]
    assert after.quarantine == {}


def test_replacements_of_several_pods_at_once_are_told_apart_by_where_they_were_expected() -> None:
    """In whatever order they came: what landed well for one move is no return of another."""
    first, second = opened(uid="one"), opened(uid="two")
    second = replace(second, eviction=replace(second.eviction, source="cool", destination="other"))
    came = [pod("web-b", on="other", workload="web", age_s=50), pod("web-a", on="cool", workload="web", age_s=40)]
    after, results = settled(remember(remember(Memory(), first), second), seen(*came))
    assert results == [LandingResult.AS_PLANNED, LandingResult.AS_PLANNED]
    assert after.quarantine == {}


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


def test_a_record_of_an_earlier_version_knows_no_chances() -> None:
    """They are unknown, so such a move says nothing about where replacements land."""
    record = json.loads(dump_memory(remember(Memory(), opened())))
    del record["open_moves"][0]["chance"]
    (move,) = load_memory(json.dumps(record).encode(), origin="ConfigMap a/b").open_moves
    assert move.chance is None


@pytest.mark.parametrize(("data", "words"), [(b'{"version": 1, "evict', "cannot be read"), (b'{"version": 9}', "version 9")])
def test_a_damaged_record_is_an_error_and_not_an_empty_memory(data: bytes, words: str) -> None:
    """Forgetting cooldowns in silence would move the same pods again."""
    with pytest.raises(ConfigurationError, match=words):
        load_memory(data, origin="ConfigMap a/b")


def landed(result: LandingResult, *, at: float = NOW - 30, share: float = math.nan, move: OpenMove | None = None) -> Landing:
    return Landing(move or opened(), result, at, "hot", 30.0, share)


def test_a_pod_that_never_left_settles_its_move_instead_of_holding_the_workload_for_good() -> None:
    """A crash between writing it down and evicting, or an answer that never came; no gain is read into it."""
    old = pod("web-old", on="hot", workload="web", uid="old")
    assert settled(remember(Memory(), opened(NOW - STAY_S)), seen(old))[1] == []
    after, landings = settle(remember(Memory(), opened(NOW - STAY_S - 1)), seen(old), SPEC)
    assert [landing.result for landing in landings] == [LandingResult.STAYED]
    assert math.isnan(landings[0].realised_share)
    assert (after.open_moves, len(after.evictions), dict(after.quarantine)) == ((), 1, {})


def test_a_pod_that_is_terminating_for_longer_than_we_wait_no_longer_hides_its_replacement() -> None:
    """A stuck finalizer or an endless grace period: what has landed has landed."""
    old = pod("web-old", on="hot", workload="web", uid="old", terminating=True)
    new = pod("web-new", on="cool", workload="web", age_s=50)
    assert settled(remember(Memory(), opened(NOW - GIVE_UP_S)), seen(old, new))[1] == []
    assert settled(remember(Memory(), opened(NOW - GIVE_UP_S - 1)), seen(old, new))[1] == [LandingResult.AS_PLANNED]


def test_a_replacement_that_never_becomes_ready_is_given_up_in_the_end() -> None:
    """It would else hold its workload, and with others the breaker, for as long as it crashes."""
    new = pod("web-new", on="cool", workload="web", age_s=50, ready=False)
    assert settled(remember(Memory(), opened(NOW - GIVE_UP_S)), seen(new, ready=2))[1] == []
    assert settled(remember(Memory(), opened(NOW - GIVE_UP_S - 1)), seen(new, ready=2))[1] == [LandingResult.LOST]


def test_a_replacement_that_never_comes_is_given_up_in_the_end() -> None:
    """A quota, say; until then the workload waits."""
    assert settled(remember(Memory(), opened(NOW - GIVE_UP_S)), seen(ready=2))[1] == []
    assert settled(remember(Memory(), opened(NOW - GIVE_UP_S - 1)), seen(ready=2))[1] == [LandingResult.LOST]


def test_an_unknown_number_of_ready_replicas_is_not_all_of_them() -> None:
    """A custom resource without a status: the move stays open until it is given up."""
    state = cluster(nodes=[node("hot"), node("cool")], pods=[], workloads=[workload("web", replicas=math.nan, ready=math.nan)])
    assert settled(remember(Memory(), opened()), state)[1] == []


def test_a_workload_that_was_deleted_settles_the_move_as_lost() -> None:
    """Nobody will make a replacement."""
    state = cluster(nodes=[node("hot"), node("cool")])
    assert settled(remember(Memory(), opened()), state)[1] == [LandingResult.LOST]


def test_two_pods_that_left_one_node_share_the_fall_that_both_made() -> None:
    """0.9 to 0.55 is what 0.2 and 0.15 together promised: each realised all of it, neither 175 % nor 233 %."""
    first, second = opened(uid="old-1", after=0.7), opened(uid="old-2", after=0.75)
    news = [pod(f"new-{i}", on="cool", workload="web", age_s=50) for i in (1, 2)]
    _, landings = settle(remember(remember(Memory(), first), second), seen(*news, hot_load=0.55), SPEC)
    assert [landing.realised_share for landing in landings] == [pytest.approx(1.0), pytest.approx(1.0)]


def test_a_pod_that_is_still_leaving_is_not_expected_to_have_lowered_the_load() -> None:
    """Only one of two left: 0.2 is all that could come."""
    old = pod("old-2", on="hot", workload="web", uid="old-2", terminating=True)
    memory = remember(remember(Memory(), opened(uid="old-1")), opened(uid="old-2", after=0.75))
    _, landings = settle(memory, seen(old, pod("new-1", on="cool", workload="web", age_s=50)), SPEC)
    assert [landing.realised_share for landing in landings] == [pytest.approx(1.0)]


def test_a_move_that_settles_later_is_compared_with_all_that_left_since_its_plan() -> None:
    """The other one is in the landings by then; one of a later plan counts too, one of an earlier plan does not."""
    earlier = landed(LandingResult.AS_PLANNED, move=opened(NOW - 600, uid="old-0", before=1.2, after=0.9))
    with_it = landed(LandingResult.AS_PLANNED, move=opened(NOW - 60, uid="old-1"))
    later = landed(LandingResult.AS_PLANNED, move=opened(NOW - 30, uid="old-3", before=0.6, after=0.5))
    memory = Memory(open_moves=(opened(NOW - 60, uid="old-2", after=0.7),), landings=(earlier, with_it, later))
    _, landings = settle(memory, seen(pod("new-2", on="cool", workload="web", age_s=50), hot_load=0.65), SPEC)
    assert [landing.realised_share for landing in landings] == [pytest.approx(0.25 / (0.2 + 0.2 + 0.1))]


def test_a_neighbour_whose_fall_is_unknown_makes_the_comparison_unknown() -> None:
    """Nobody knows which part of the fall was its."""
    blind = OpenMove(opened(uid="old-2").eviction, (), 0.05, {}, {})
    memory = remember(remember(Memory(), opened(uid="old-1")), blind)
    news = [pod(f"new-{i}", on="cool", workload="web", age_s=50) for i in (1, 2)]
    _, landings = settle(memory, seen(*news, hot_load=0.5), SPEC)
    assert all(math.isnan(landing.realised_share) for landing in landings)


def test_a_load_that_rose_all_the_same_is_a_negative_share() -> None:
    """It must pull the breaker's mean down, not vanish."""
    _, landings = settle(remember(Memory(), opened()), seen(pod("n", on="cool", workload="web", age_s=50), hot_load=1.0), SPEC)
    assert landings[0].realised_share == pytest.approx(-0.5)


def test_t6_the_workload_rests_after_k_returns_with_an_end_and_is_told_once() -> None:
    """quarantine.returns of three: two returns are counted, the third one makes it rest."""
    spec = Spec(quarantine=QuarantineRules(returns=3))
    back = seen(pod("web-new", on="hot", workload="web", age_s=50))
    once = (landed(LandingResult.SOURCE, at=NOW - 900),)
    after, _ = settle(Memory(open_moves=(opened(),), landings=once), back, spec)
    assert after.quarantine == {}
    before = Memory(open_moves=(opened(),), landings=(*once, landed(LandingResult.SOURCE, at=NOW - 450)))
    after, _ = settle(before, back, spec)
    rest = Quarantine(until=NOW + spec.quarantine.hold, returns=3, node="hot")
    assert quarantined_since(before, after) == ((WEB, rest),)
    again, _ = settle(after, back, spec)
    assert again.quarantine == {WEB: rest}
    assert quarantined_since(after, again) == ()


def test_t6_a_quarantine_ends_by_itself() -> None:
    """It has an end time, and the returns that led to it are forgotten with it."""
    memory = Memory(quarantine={WEB: Quarantine(until=NOW, returns=1, node="hot")})
    assert settle(memory, seen(), SPEC)[0].quarantine == {}


def test_the_breaker_counts_moves_whose_replacement_is_missing_and_not_pods_that_are_still_there() -> None:
    """Three long grace periods are no sign that anything is wrong."""
    policy = RebalancePolicy(spec=SPEC)
    orders = Orders(policy=policy, mode=Mode.EVICT, mode_source="a test")
    moves = tuple(opened(NOW - SPEC.breaker.pending_after - 1, uid=f"old-{i}") for i in range(SPEC.breaker.max_pending_after_move))
    leaving = [pod(m.eviction.pod_uid, on="hot", workload="web", uid=m.eviction.pod_uid, terminating=True) for m in moves]
    assert breaker_of(seen(*leaving), Memory(open_moves=moves), orders) == ()
    (finding,) = breaker_of(seen(ready=0), Memory(open_moves=moves), orders)
    assert finding.cause.value == "pending-after-moves"


def test_the_breaker_looks_back_on_what_moves_came_to_for_as_long_as_the_policy_says() -> None:
    """Five moves that brought nothing open it; the same five from longer ago, or unmeasured, do not."""
    orders = Orders(policy=RebalancePolicy(spec=SPEC), mode=Mode.EVICT, mode_source="a test")

    def causes(share: float, at: float) -> list[str]:
        landings = (landed(LandingResult.ELSEWHERE, at=at, share=share),) * SPEC.breaker.min_moves
        return [finding.cause.value for finding in breaker_of(seen(), Memory(landings=landings), orders)]

    assert causes(0.1, NOW - SPEC.breaker.hold + 1) == ["gain-below-prediction"]
    assert causes(0.1, NOW - SPEC.breaker.hold - 1) == []
    assert causes(0.9, NOW - 60) == []
    assert causes(math.nan, NOW - 60) == []


def test_everything_that_is_kept_has_a_bound() -> None:
    """However large the budgets are; the newest stay."""
    move = opened(NOW - 100)
    memory = Memory(evictions=(move.eviction,) * MOST_EVICTIONS, landings=(landed(LandingResult.LOST),) * (MOST_LANDINGS + 5))
    grown = remember(memory, opened(NOW - 1, uid="newest"))
    assert len(grown.evictions) == MOST_EVICTIONS
    assert grown.evictions[-1].pod_uid == "newest"
    rests = {WorkloadRef("Deployment", "ns", f"w{i}"): Quarantine(NOW + 1 + i, 1, "hot") for i in range(MOST_QUARANTINED + 3)}
    after, _ = settle(Memory(evictions=memory.evictions, landings=memory.landings, quarantine=rests), seen(), SPEC)
    assert (len(after.landings), len(after.quarantine)) == (MOST_LANDINGS, MOST_QUARANTINED)
    assert min(rest.until for rest in after.quarantine.values()) == NOW + 4


def test_a_replacement_of_another_workload_settles_nothing() -> None:
    """Only a pod of the same root owner can be it."""
    assert settled(remember(Memory(), opened()), seen(pod("api-1", on="cool", workload="api", age_s=50), ready=2))[1] == []
