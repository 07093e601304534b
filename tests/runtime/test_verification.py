"""Earlier moves in the plan: what each promised and what came of it."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

from rebalancer.guard.breaker import BreakerCause
from rebalancer.guard.landings import LandingRate
from rebalancer.plan.model import LandingReport
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.report.registry import Format, write
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.memory import Landing, LandingResult, Memory, OpenMove, remember
from rebalancer.runtime.verification import MOST_SHOWN, earlier_moves, landing_rate_of
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from tests.support.builder import NOW, cluster, node, pod, workload


def opened(number: int = 0, *, at: float = NOW - 60, chance: float | None = 1.0, alternatives: tuple[str, ...] = ()) -> OpenMove:
    eviction = PastEviction(
        at=at,
        pod_uid=f"old-{number}",
        namespace="default",
        pod=f"web-{number}",
        workload=WorkloadRef("Deployment", "default", "web"),
        controller_uid="rs",
        tenant=None,
        source="hot",
        destination="cool",
        usage={"cpu": 2.0},
    )
    return OpenMove(eviction, alternatives, 0.05, {"cpu": 0.9}, {"cpu": 0.7}, chance)


def landed(result: LandingResult, node: str, *, at: float = NOW - 60, **move: Any) -> Landing:
    return Landing(opened(**move), result, at, node, 30.0, 1.0)


def test_a_settled_move_shows_where_it_landed_and_how_much_of_the_promise_came() -> None:
    """From the memory of a cycle into the plan of the same look."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.75}), node("cool")],
        pods=[pod("web-new", on="cool", workload="web", age_s=50)],
        workloads=[workload("web")],
    )
    verdict = consider(state, remember(Memory(), opened()), Orders(built_in_policy(), Mode.EVICT, "the test"))
    (move,) = verdict.decision.plan.earlier
    assert (move.source, move.planned, move.landed, move.result) == ("hot", "cool", "cool", "as-planned")
    assert move.ready_after_seconds == 60
    assert (move.predicted_fall, move.realised_share) == (0.2, 0.75)


def test_an_open_move_has_no_landing_and_unknown_numbers_stay_null() -> None:
    """Unknown is not zero."""
    (move,) = earlier_moves(Memory(open_moves=(opened(),)))
    assert (move.result, move.landed, move.ready_after_seconds, move.realised_share) == ("open", None, None, None)
    (lost,) = earlier_moves(Memory(landings=(Landing(opened(), LandingResult.LOST, NOW, "", math.nan, math.nan),)))
    assert (lost.result, lost.landed, lost.ready_after_seconds, lost.realised_share) == ("lost", None, None, None)


def test_the_newest_moves_come_first_and_their_number_is_bounded() -> None:
    """However long the memory is."""
    moves = tuple(opened(number, at=NOW - number) for number in range(MOST_SHOWN + 5))
    shown = earlier_moves(Memory(open_moves=moves))
    assert len(shown) == MOST_SHOWN
    assert shown[0].pod.name == "web-0"


def test_the_table_of_a_plan_lists_them_for_people() -> None:
    """Workload, where it was to land and where it did, promised and came; and how often the two nodes agree."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.75}), node("cool")],
        pods=[pod("web-new", on="cool", workload="web", age_s=50)],
        workloads=[workload("web")],
    )
    verdict = consider(state, remember(Memory(), opened()), Orders(built_in_policy(), Mode.EVICT, "the test"))
    text = io.StringIO()
    write(verdict.decision.plan, Format.TABLE, stream=text, width=100)
    row = next(line for line in text.getvalue().splitlines() if "default/web" in line)
    assert [word for word in row.split() if word != "%"][1:] == ["default/web", "cool", "cool", "as-planned", "1m", "20", "75"]
    assert "1 of the last 1 replacement landed on a node that the plan named (100 %), 1 on the planned one." in text.getvalue()


def test_an_alternative_is_marked_in_the_table_and_the_source_is_shown_when_there_is_room() -> None:
    """It counts as a hit, and whoever reads the table sees that it was another node than the planned one."""
    memory = Memory(landings=(landed(LandingResult.AS_PLANNED, "fine", alternatives=("fine",)),))
    plan = consider(STATE, memory, Orders(built_in_policy(), Mode.EVICT, "the test")).decision.plan
    text = io.StringIO()
    write(plan, Format.WIDE, stream=text, width=160)
    row = next(line for line in text.getvalue().splitlines() if "default/web" in line)
    assert row.split()[1:6] == ["default/web", "hot", "cool", "fine", "alternative"]
    assert "1 of the last 1 replacement landed on a node that the plan named (100 %), 0 on the planned one." in text.getvalue()


STATE = cluster(
    nodes=[node("hot", load={"cpu": 0.75}), node("cool")], pods=[pod("other", on="cool", workload="web")], workloads=[workload("web")]
)


def test_only_replacements_on_a_node_say_where_they_land() -> None:
    """One that never came and a pod that never left are no landing; alternatives and the planned node are told apart."""
    memory = Memory(
        landings=(
            landed(LandingResult.AS_PLANNED, "cool"),
            landed(LandingResult.AS_PLANNED, "fine", alternatives=("fine",)),
            landed(LandingResult.ELSEWHERE, "other"),
            landed(LandingResult.SOURCE, "hot"),
            landed(LandingResult.LOST, ""),
            landed(LandingResult.STAYED, ""),
            landed(LandingResult.ELSEWHERE, "other", chance=0.3),
            landed(LandingResult.ELSEWHERE, "other", chance=None),
            landed(LandingResult.ELSEWHERE, "other", at=NOW - 7200),
        )
    )
    assert landing_rate_of(memory, since=NOW - 3600) == LandingRate(moves=4, named=2, planned=1)


def test_landings_elsewhere_stop_evictions_for_as_long_as_they_are_looked_back_on() -> None:
    """The breaker says why with the numbers, the plan has the rate; after ``breaker.hold`` nothing is known any more, and it is closed."""
    orders = Orders(built_in_policy(), Mode.EVICT, "the test")
    memory = Memory(landings=tuple(landed(LandingResult.ELSEWHERE, "other", number=number) for number in range(5)))
    verdict = consider(STATE, memory, orders)
    (finding,) = verdict.breaker
    assert finding.cause is BreakerCause.LANDINGS_ELSEWHERE
    assert finding.words.startswith(
        "0 of the last 5 replacements landed on a node that their plan named (0 %, 0 of them on the planned one)"
    )
    assert verdict.history.breaker == finding.words
    report = verdict.decision.plan.landings
    assert report is not None
    assert (report.moves, report.named, report.planned, report.hit_ratio, report.planned_ratio) == (5, 0, 0, 0.0, 0.0)
    later = consider(replace(STATE, at=NOW + orders.policy.spec.breaker.hold), memory, orders)
    assert later.breaker == ()
    assert later.decision.plan.landings == LandingReport(moves=0, named=0, planned=0, hit_ratio=None, planned_ratio=None)
