"""Earlier moves in the plan: what each promised and what came of it."""

from __future__ import annotations

import io
import math

from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.report.registry import Format, write
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.memory import Landing, LandingResult, Memory, OpenMove, remember
from rebalancer.runtime.verification import MOST_SHOWN, earlier_moves
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from tests.support.builder import NOW, cluster, node, pod, workload


def opened(number: int = 0, *, at: float = NOW - 60) -> OpenMove:
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
    return OpenMove(eviction, (), 0.05, {"cpu": 0.9}, {"cpu": 0.7})


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
    """Workload, source, where it landed, promised and came."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.75}), node("cool")],
        pods=[pod("web-new", on="cool", workload="web", age_s=50)],
        workloads=[workload("web")],
    )
    verdict = consider(state, remember(Memory(), opened()), Orders(built_in_policy(), Mode.EVICT, "the test"))
    text = io.StringIO()
    write(verdict.decision.plan, Format.TABLE, stream=text, width=100)
    row = next(line for line in text.getvalue().splitlines() if "default/web" in line)
    assert [word for word in row.split() if word != "%"][1:] == ["default/web", "hot", "cool", "as-planned", "1m", "20", "75"]
