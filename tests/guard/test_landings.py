"""Whether replacements land where they were planned: what counts, what does not, and what is made of too little."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.guard.breaker import BreakerCause, breaker_findings
from rebalancer.guard.landings import DEFINITE, NOTHING_LANDED, LandedMove, LandingRate, landing_rate
from rebalancer.policy.model import Breaker, Spec
from tests.guard.scenes import state_with
from tests.support.builder import node

HEALTHY = state_with(nodes=(node("n1"), node("n2")))
moves = st.builds(
    LandedMove,
    chance=st.one_of(st.floats(0, 1), st.just(math.nan)),
    named=st.booleans(),
    planned=st.booleans(),
)
definite = st.builds(LandedMove, chance=st.floats(DEFINITE, 1), named=st.booleans(), planned=st.booleans())


def opened(rate: LandingRate, **breaker: float) -> str:
    """The words with which such landings open the breaker; empty when they do not."""
    findings = breaker_findings(state=HEALTHY, spec=Spec(breaker=Breaker(**breaker)), landings=rate)  # type: ignore[arg-type]
    assert {finding.cause for finding in findings} <= {BreakerCause.LANDINGS_ELSEWHERE}
    return findings[0].words if findings else ""


def landed(*, named: int, planned: int, elsewhere: int, chance: float = 1.0) -> LandingRate:
    hits = [LandedMove(chance, named=True, planned=row < planned) for row in range(named)]
    return landing_rate([*hits, *[LandedMove(chance, named=False, planned=False)] * elsewhere])


def test_the_planned_node_and_those_named_beside_it_are_hits_and_both_are_counted() -> None:
    """The plan called them equally good; how often it was the planned one itself is shown beside it."""
    rate = landed(named=6, planned=4, elsewhere=2)
    assert rate == LandingRate(moves=8, named=6, planned=4)
    assert (rate.ratio, rate.planned_ratio) == (0.75, 0.5)


def test_without_a_move_the_rate_is_unknown() -> None:
    """Neither good nor bad."""
    assert math.isnan(NOTHING_LANDED.ratio)
    assert math.isnan(NOTHING_LANDED.planned_ratio)


@pytest.mark.parametrize("chance", [0.0, DEFINITE - 0.01, math.nan], ids=["one of very many", "one of many", "from an earlier version"])
def test_a_plan_that_was_not_definite_about_the_place_is_no_evidence(chance: float) -> None:
    """Six nodes named of a hundred that score alike: landing on another one is no mistake of anybody."""
    assert landed(named=1, planned=1, elsewhere=9, chance=chance) == NOTHING_LANDED


def test_few_hits_open_the_breaker_with_the_numbers_and_the_key() -> None:
    """An operator sees how far under the limit it is, over how many moves, and which key moves the limit."""
    assert opened(landed(named=2, planned=1, elsewhere=10)) == (
        "2 of the last 12 replacements landed on a node that their plan named (17 %, 1 of them on the planned one), "
        "less than 20 % (policy breaker.minLandingRate)"
    )


@pytest.mark.parametrize(
    ("named", "elsewhere", "breaker", "opens"),
    [
        (0, 5, {}, True),
        (0, 4, {}, False),
        (1, 4, {}, False),
        (1, 5, {}, True),
        (0, 4, {"min_moves": 4}, True),
        (4, 6, {"min_landing_rate": 50}, True),
        (5, 5, {"min_landing_rate": 50}, False),
        (0, 50, {"min_landing_rate": 0}, False),
    ],
)
def test_it_opens_below_the_rate_and_with_enough_moves(named: int, elsewhere: int, breaker: dict[str, float], opens: bool) -> None:
    """At the rate it stays closed; with 0 it never opens for that."""
    assert bool(opened(landed(named=named, planned=0, elsewhere=elsewhere), **breaker)) is opens


@given(st.lists(moves, max_size=30))
def test_the_rate_is_a_share_or_unknown(seen: list[LandedMove]) -> None:
    """Between 0 and 1, NaN exactly where no move says anything; the planned node itself is never hit more often than the named ones."""
    rate = landing_rate(seen)
    assert 0 <= rate.planned <= rate.named <= rate.moves <= len(seen)
    assert math.isnan(rate.ratio) == math.isnan(rate.planned_ratio) == (rate.moves == 0)
    assert rate.moves == 0 or 0.0 <= rate.planned_ratio <= rate.ratio <= 1.0


@given(
    seen=st.lists(moves.filter(lambda move: not move.chance >= DEFINITE), max_size=60),
    limit=st.floats(0, 100),
    few=st.integers(1, 10),
)
def test_what_is_unknown_never_opens_it(seen: list[LandedMove], limit: float, few: int) -> None:
    """However many landings there were, and however strict the policy is."""
    assert opened(landing_rate(seen), min_landing_rate=limit, min_moves=few) == ""


@given(seen=st.lists(definite, min_size=5, max_size=30), limit=st.floats(0, 100))
def test_one_more_hit_never_opens_it(seen: list[LandedMove], limit: float) -> None:
    """What is closed stays closed when a replacement lands as planned."""
    more = [*seen, LandedMove(1.0, named=True, planned=True)]
    assert opened(landing_rate(seen), min_landing_rate=limit) or not opened(landing_rate(more), min_landing_rate=limit)
