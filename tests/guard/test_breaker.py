"""What opens the breaker, and what an open one does."""

from __future__ import annotations

import math

import pytest

from rebalancer.guard.breaker import BreakerCause, breaker_findings, breaker_reason
from rebalancer.guard.landings import LandingRate
from rebalancer.policy.model import Breaker, Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History
from tests.guard.scenes import ask, measured, reason, scene_of, state_with
from tests.support.builder import NOW, node

SPEC = Spec()


def nodes(ready: int, not_ready: int) -> ClusterState:
    return state_with(nodes=tuple(node(f"n{i}", ready=i < ready) for i in range(ready + not_ready)))


def test_a_healthy_cluster_keeps_it_closed() -> None:
    """No sign, no words."""
    assert breaker_reason(state=nodes(10, 0), spec=SPEC, verified=[(1.0, 0.9)] * 10) == ""


@pytest.mark.parametrize(
    ("ready", "not_ready", "limit", "opens"),
    [
        (8, 2, "20%", False),
        (7, 3, "20%", True),
        (2, 1, "20%", False),
        (1, 2, "20%", True),
        (9, 1, 0, True),
        (6, 4, 4, False),
        (0, 0, 0, False),
    ],
)
def test_too_many_nodes_not_ready_open_it(ready: int, not_ready: int, limit: int | str, opens: bool) -> None:
    """More than the limit, as a count or a share of the nodes."""
    spec = Spec(breaker=Breaker(max_not_ready=limit))
    assert bool(breaker_reason(state=nodes(ready, not_ready), spec=spec)) is opens


def test_the_words_carry_the_numbers_and_the_key() -> None:
    """An operator can see how far over the limit the cluster is and which key moves the limit."""
    assert breaker_reason(state=nodes(7, 3), spec=SPEC) == (
        "3 of 10 nodes are not Ready, at most 2 may be (policy breaker.maxNotReady is 20%)"
    )


@pytest.mark.parametrize(
    ("ages", "opens"), [([301.0] * 3, True), ([301.0] * 2, False), ([300.0] * 3, False), ([301.0] * 2 + [10.0] * 9, False)]
)
def test_replacements_that_do_not_come_open_it(ages: list[float], opens: bool) -> None:
    """Three evictions without a Ready replacement after five minutes, by default."""
    words = breaker_reason(state=nodes(3, 0), spec=SPEC, open_since=[NOW - age for age in ages])
    expected = "3 evicted pods have no Ready replacement after 5m (policy breaker.maxPendingAfterMove is 3)" if opens else ""
    assert words == expected


@pytest.mark.parametrize(
    ("verified", "words"),
    [
        ([(1.0, 0.1)] * 5, "the last 5 verified moves realised 10 % of the gain they were predicted"),
        ([(1.0, -1.0)] * 5, "the last 5 verified moves realised -100 % of the gain they were predicted"),
        ([(1.0, 0.2)] * 5, ""),
        ([(1.0, 0.0)] * 4, ""),
        ([(1.0, 0.0)] * 4 + [(1.0, math.nan)] * 4, ""),
        ([(1.0, 0.0)] * 4 + [(0.0, 0.0), (math.nan, 0.0), (math.inf, 0.0)], ""),
        ([(10.0, 9.0)] + [(0.1, 0.0)] * 4, ""),
    ],
)
def test_moves_that_do_not_deliver_open_it(verified: list[tuple[float, float]], words: str) -> None:
    """Too few moves, unmeasured ones and ones that promised nothing say nothing; a large success outweighs small failures."""
    assert breaker_reason(state=nodes(3, 0), spec=SPEC, verified=verified).startswith(words)
    assert bool(breaker_reason(state=nodes(3, 0), spec=SPEC, verified=verified)) is bool(words)


def test_every_cause_is_named_and_all_words_are_joined() -> None:
    """All signs at once give a finding each, with a cause from a closed set."""
    given = {"open_since": [NOW - 999] * 4, "verified": [(1.0, 0.0)] * 5, "landings": LandingRate(moves=5)}
    findings = breaker_findings(state=nodes(1, 9), spec=SPEC, **given)
    assert [finding.cause for finding in findings] == list(BreakerCause)
    assert breaker_reason(state=nodes(1, 9), spec=SPEC, **given) == "; ".join(finding.words for finding in findings)


def test_an_open_breaker_refuses_everything_with_its_words() -> None:
    """Even a pod that every other gate would let go."""
    state = state_with(measured("web-0"))
    assert reason("breaker", scene_of(state, history=History(breaker="3 of 10 nodes are not Ready"))) == (
        "the breaker is open: 3 of 10 nodes are not Ready"
    )
    assert ask("breaker", scene_of(state)) is None
