"""A pod of a StatefulSet is gone before its replacement comes, so the replacement finds the old place free; those of others do not."""

from __future__ import annotations

import pytest

from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.plan.replacement import NAMED
from rebalancer.plan.stock_scores import StockScores
from rebalancer.state.scheduling import Constraints, HostPort, PodTerm
from tests.plan_scheduling.asking import HOSTNAME, allowed, app, everywhere, names_of, row_of, why_not
from tests.support.builder import PodSpec, cluster, node, pod

PORT = Constraints(host_ports=(HostPort("0.0.0.0", "TCP", 80),))
APART = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("db")),))
CLAIM = Constraints(exclusive_claims=("default/data",))


def _member(name: str, *, on: str, constraints: Constraints | None = None, cpu: float = 1.0) -> PodSpec:
    return pod(
        name, on=on, workload="db", labels={"app": "db", NAMED: name}, cpu=cpu, memory="1Gi", constraints=constraints or Constraints()
    )


@pytest.mark.parametrize("constraints", [PORT, APART, CLAIM], ids=["host port", "anti-affinity", "exclusive claim"])
def test_the_old_place_is_free_for_the_next_pod_of_the_same_name(constraints: Constraints) -> None:
    """What the old pod held alone (a port, its anti-affinity, its claim) does not keep the next one out."""
    state = cluster(nodes=[node("a")], pods=[_member("db-0", on="a", constraints=constraints)])
    assert allowed(state, "db-0") == {"a"}
    assert allowed(state, "db-0", leaving=False) == set()


def test_the_requests_of_the_old_pod_are_given_back_to_the_next_one() -> None:
    """3 of 4 cores taken by the pod itself: its replacement fits on the same node, one of a ReplicaSet does not."""
    named = cluster(nodes=[node("a", cpu=4)], pods=[_member("db-0", on="a", cpu=3)])
    other = cluster(nodes=[node("a", cpu=4)], pods=[pod("web", on="a", workload="web", cpu=3)])
    assert allowed(named, "db-0") == {"a"}
    assert allowed(other, "web") == set()
    assert why_not(other, "web", "a") == "Insufficient cpu: needs 3.00, 1.00 free of 4.00"


def test_what_is_short_all_the_same_is_told_without_the_old_pod() -> None:
    """2 cores are taken by another pod since: 4 are needed, and 2, not 0, are free for it."""
    state = cluster(nodes=[node("a", cpu=4)], pods=[_member("db-0", on="a", cpu=4), pod("late", on="a", workload="late", cpu=2)])
    assert why_not(state, "db-0", "a") == "Insufficient cpu: needs 4.00, 2.00 free of 4.00"


def test_the_next_pod_comes_back_where_the_old_one_was_the_only_load() -> None:
    """Two equal nodes, the other one slightly fuller: without the old pod, its node is the emptier one."""
    pods = [_member("db-0", on="a", cpu=1), pod("else", on="b", workload="else", cpu=0.2, memory="200Mi")]
    state = cluster(nodes=[node("a", cpu=4), node("b", cpu=4)], pods=pods)
    best = StockScores(state, Placements(state)).best(row_of(state, "db-0"), everywhere(state))
    assert names_of(state, best.tolist()) == {"a"}


def test_a_booked_pod_counts_where_it_was_and_where_it_goes() -> None:
    """Once a plan has placed the replacement, nothing is given back a second time."""
    state = cluster(nodes=[node("a", cpu=4), node("b", cpu=4)], pods=[_member("db-0", on="a", cpu=3)])
    placements = Placements(state)
    placements.book(0, 1)
    assert not Feasibility(state, placements).allowed(0).any()
