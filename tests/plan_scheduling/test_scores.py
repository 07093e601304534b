"""The stock scores against the worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.plan.grades import HOT_TAINT, SOFT_TAINTS, WARM_TAINT, is_own
from rebalancer.plan.ledger import Placements
from rebalancer.plan.stock_scores import StockScores, sample_size
from rebalancer.state.scheduling import Constraints, NodeTerm, PodTerm, Requirement, SpreadConstraint, Taint, Toleration
from rebalancer.state.tables import WorkloadRef
from tests.plan_scheduling.asking import HOSTNAME, ZONE, app, everywhere, names_of, row_of, scores
from tests.support.builder import cluster, node, pod

GI = 2.0**30
HOT, BOTH = (True, False), (True, True)
"""Which of our soft taints a node will carry."""
WARM, NONE = (False, True), (False, False)


def test_e25_least_allocated_counts_what_is_free_after_the_pod() -> None:
    """8000m/32Gi with 3000m/8Gi used and a pod of 1000m/2Gi: 50 and 68, mean 59."""
    state = cluster(nodes=[node("n1", cpu=8, memory="32Gi")], pods=[pod("b", on="n1", cpu=3, memory="8Gi"), pod("p", cpu=1, memory="2Gi")])
    assert scores(state, "p", "NodeResourcesFit") == [59]


def test_e26_a_pod_without_requests_counts_with_the_defaults() -> None:
    """4000m/8Gi half used: 100m and 200Mi more leave 47 and 47."""
    state = cluster(nodes=[node("n1", cpu=4, memory="8Gi")], pods=[pod("b", on="n1", cpu=2, memory="4Gi"), pod("p", cpu=0, memory=0)])
    assert scores(state, "p", "NodeResourcesFit") == [47]
    assert scores(state, "p", "NodeResourcesBalancedAllocation") == [0]


@pytest.mark.parametrize(
    ("allocatable", "requested", "score"),
    [((4, 10000), (0, 0), 68), ((6, 10000), (0, 0), 75), ((10, 20000), (3, 0), 73), ((10, 20000), (3, 5000), 74)],
    ids=["e27a", "e27b", "e27c", "e27d"],
)
def test_e27_balanced_allocation_scores_the_change_of_balance(
    allocatable: tuple[float, float], requested: tuple[float, float], score: int
) -> None:
    """A pod of 3000m and 5000 bytes on four nodes."""
    state = cluster(
        nodes=[node("n1", cpu=allocatable[0], memory=allocatable[1])],
        pods=[pod("b", on="n1", cpu=requested[0], memory=requested[1]), pod("p", cpu=3, memory=5000)],
    )
    assert scores(state, "p", "NodeResourcesBalancedAllocation") == [score]


def test_e28_soft_taints_are_normalised_against_the_most_tainted_node() -> None:
    """0, 1 and 3 untolerated soft taints: 100, 67, 0."""
    soft = [Taint(f"k{i}", "", "PreferNoSchedule") for i in range(3)]
    state = cluster(nodes=[node("n1"), node("n2", taints=soft[:1]), node("n3", taints=soft)], pods=[pod("p")])
    assert scores(state, "p", "TaintToleration") == [100, 67, 0]


def test_without_soft_taints_every_node_has_the_full_score() -> None:
    """A hard taint does not score, and a tolerated soft one neither."""
    tolerant = Constraints(tolerations=(Toleration("soft", "Exists", "", "PreferNoSchedule"),))
    state = cluster(
        nodes=[node("n1", taints=[Taint("soft", "", "PreferNoSchedule")]), node("n2", taints=[Taint("hard")])],
        pods=[pod("p", constraints=tolerant)],
    )
    assert scores(state, "p", "TaintToleration") == [100, 100]


def test_a_toleration_for_another_effect_does_not_cover_a_soft_taint() -> None:
    """Only tolerations for PreferNoSchedule or for every effect do."""
    hard_only = Constraints(tolerations=(Toleration("soft", "Exists", "", "NoSchedule"),))
    state = cluster(nodes=[node("n1", taints=[Taint("soft", "", "PreferNoSchedule")]), node("n2")], pods=[pod("p", constraints=hard_only)])
    assert scores(state, "p", "TaintToleration") == [0, 100]


def test_soft_tainted_nodes_repel_as_if_the_taint_were_there_already() -> None:
    """The hot node is emptiest by request; with the taint the other one wins."""
    state = cluster(nodes=[node("hot", cpu=8), node("cool", cpu=8)], pods=[pod("b", on="cool", cpu=4), pod("p", cpu=1)])
    plain = StockScores(state, Placements(state))
    steered = StockScores(state, Placements(state), own_taints=np.array([HOT, NONE]))
    row = row_of(state, "p")
    assert names_of(state, plain.best(row, everywhere(state))) == {"hot"}
    assert names_of(state, steered.best(row, everywhere(state))) == {"cool"}


def test_a_hot_taint_that_is_on_the_node_is_not_counted_twice() -> None:
    """Asking for the taint where it is already changes no score."""
    hot = Taint("rebalancer.dev/hot", "true", "PreferNoSchedule")
    state = cluster(nodes=[node("n1", taints=[hot]), node("n2", taints=[Taint("x", "", "PreferNoSchedule"), hot])], pods=[pod("p")])
    steered = StockScores(state, Placements(state), own_taints=np.array([HOT, HOT]))
    assert steered.by_plugin(0, everywhere(state))["TaintToleration"].tolist() == [50, 0]


def test_a_hot_taint_that_is_about_to_be_taken_off_repels_nobody() -> None:
    """What counts is who carries it when the pod is placed; other soft taints stay."""
    hot = Taint("rebalancer.dev/hot", "true", "PreferNoSchedule")
    state = cluster(nodes=[node("n1", taints=[hot]), node("n2", taints=[Taint("x", "", "PreferNoSchedule"), hot])], pods=[pod("p")])
    cooled = StockScores(state, Placements(state), own_taints=np.array([NONE, NONE]))
    assert cooled.by_plugin(0, everywhere(state))["TaintToleration"].tolist() == [100, 0]


def test_a_cool_node_is_preferred_to_a_warm_one_and_that_to_a_hot_one() -> None:
    """One taint more is half of the way where two are the most; without a hot node among them a warm one repels as much as one can."""
    state = cluster(nodes=[node("hot"), node("warm"), node("cool")], pods=[pod("p")])
    steered = StockScores(state, Placements(state), own_taints=np.array([BOTH, WARM, NONE]))
    assert steered.by_plugin(0, everywhere(state))["TaintToleration"].tolist() == [0, 50, 100]
    assert steered.by_plugin(0, np.array([False, True, True]))["TaintToleration"].tolist() == [0, 100]


def test_each_of_our_taints_counts_beside_those_of_others() -> None:
    """A warm node with a soft taint of somebody else repels as much as a hot one."""
    state = cluster(nodes=[node("hot"), node("warm", taints=[Taint("x", "", "PreferNoSchedule")]), node("cool")], pods=[pod("p")])
    steered = StockScores(state, Placements(state), own_taints=np.array([BOTH, WARM, NONE]))
    assert steered.by_plugin(0, everywhere(state))["TaintToleration"].tolist() == [0, 0, 100]


def test_a_pod_that_tolerates_one_of_our_taints_feels_the_other() -> None:
    """By key; a toleration of everything feels none."""
    one = Constraints(tolerations=(Toleration("rebalancer.dev/hot", "Exists", "", ""),))
    every = Constraints(tolerations=(Toleration(operator="Exists"),))
    state = cluster(nodes=[node("hot"), node("warm"), node("cool")], pods=[pod("p", constraints=one), pod("q", constraints=every)])
    steered = StockScores(state, Placements(state), own_taints=np.array([BOTH, WARM, NONE]))
    assert steered.by_plugin(row_of(state, "p"), everywhere(state))["TaintToleration"].tolist() == [0, 0, 100]
    assert steered.by_plugin(row_of(state, "q"), everywhere(state))["TaintToleration"].tolist() == [100, 100, 100]


_taints = st.sampled_from(
    [*SOFT_TAINTS, Taint("x", "", "PreferNoSchedule"), Taint("y", "z", "PreferNoSchedule"), Taint(HOT_TAINT.key, "", "NoExecute")]
)
_tolerations = st.sampled_from(
    [
        Toleration(HOT_TAINT.key, "Exists", "", ""),
        Toleration(WARM_TAINT.key, "Equal", "true", "PreferNoSchedule"),
        Toleration("x", "Exists", "", ""),
    ]
)
_nodes = st.lists(st.tuples(st.lists(_taints, unique=True, max_size=4), st.tuples(st.booleans(), st.booleans())), min_size=1, max_size=5)


@given(nodes=_nodes, tolerations=st.lists(_tolerations, unique=True, max_size=3))
def test_scores_for_taints_that_are_not_there_yet_are_those_of_nodes_that_have_them(
    nodes: list[tuple[list[Taint], tuple[bool, bool]]], tolerations: list[Toleration]
) -> None:
    """Whatever is on the nodes now, of ours and of others, and whatever the pod tolerates: prediction and scheduler count alike."""
    wants = Constraints(tolerations=tuple(tolerations))
    now = cluster(nodes=[node(f"n{i}", taints=taints) for i, (taints, _) in enumerate(nodes)], pods=[pod("p", constraints=wants)])
    later = [
        [*(taint for taint in taints if not is_own(taint)), *(taint for taint, on in zip(SOFT_TAINTS, own, strict=True) if on)]
        for taints, own in nodes
    ]
    then = cluster(nodes=[node(f"n{i}", taints=taints) for i, taints in enumerate(later)], pods=[pod("p", constraints=wants)])
    predicted = StockScores(now, Placements(now), own_taints=np.array([own for _, own in nodes])).by_plugin(0, everywhere(now))
    assert predicted["TaintToleration"].tolist() == scores(then, "p", "TaintToleration")


def test_preferred_node_affinity_is_a_share_of_the_best_node() -> None:
    """Raw 80, 20, 0: 100, 25, 0; empty terms are ignored."""
    wants = Constraints(
        preferred_nodes=(
            (80, NodeTerm((Requirement("disk", "In", ("ssd",)),))),
            (20, NodeTerm((Requirement("disk", "In", ("hdd",)),))),
            (50, NodeTerm()),
        )
    )
    state = cluster(
        nodes=[node("n1", labels={"disk": "ssd"}), node("n2", labels={"disk": "hdd"}), node("n3")], pods=[pod("p", constraints=wants)]
    )
    assert scores(state, "p", "NodeAffinity") == [100, 25, 0]


def test_e29_system_defaults_spread_over_host_and_zone() -> None:
    """n1 (zone a, 2 pods), n2 (zone a, none), n3 (zone b, 1): 75, 100, 100."""
    state = cluster(
        nodes=[node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b")],
        pods=[
            pod("w1", on="n1", workload="web"),
            pod("w2", on="n1", workload="web"),
            pod("w3", on="n3", workload="web"),
            pod("p", workload="web"),
        ],
    )
    assert scores(state, "p", "PodTopologySpread") == [75, 100, 100]


def test_e29_an_own_soft_constraint_on_zone() -> None:
    """Counts 4, 2, 0 with maxSkew 1: raw 6, 3, 0, scores 0, 50, 100."""
    soft = Constraints(spread=(SpreadConstraint(ZONE, 1, False, app("web")),))
    pods = [pod(f"{zone}{i}", on=zone, workload="web") for zone, n in (("a", 4), ("b", 2)) for i in range(n)]
    state = cluster(nodes=[node(zone, zone=zone) for zone in "abc"], pods=[*pods, pod("p", workload="web", constraints=soft)])
    assert scores(state, "p", "PodTopologySpread") == [0, 50, 100]


def test_the_pod_that_leaves_does_not_count_for_the_spread_of_its_replacement() -> None:
    """A single replica scores its own node like an empty one."""
    state = cluster(nodes=[node("n1"), node("n2")], pods=[pod("p", on="n1", workload="web")])
    assert scores(state, "p", "PodTopologySpread") == [100, 100]


def test_pods_of_jobs_and_bare_pods_have_no_default_spread() -> None:
    """The scheduler finds no selector for them, so the plugin is skipped."""
    job = WorkloadRef("Job", "default", "train")
    state = cluster(
        nodes=[node("n1"), node("n2")],
        pods=[pod("j1", on="n1", workload=job), pod("j", workload=job), pod("bare", workload=None)],
    )
    assert scores(state, "j", "PodTopologySpread") == [0, 0]
    assert scores(state, "bare", "PodTopologySpread") == [0, 0]


def test_a_node_without_a_key_of_an_own_constraint_scores_nothing() -> None:
    """With own constraints it is ignored; with the system defaults only the missing key does not add."""
    soft = Constraints(spread=(SpreadConstraint(ZONE, 1, False, app("web")),))
    state = cluster(nodes=[node("a", zone="a"), node("bare")], pods=[pod("p", workload="web", constraints=soft), pod("q", workload="db")])
    assert scores(state, "p", "PodTopologySpread") == [100, 0]
    assert scores(state, "q", "PodTopologySpread") == [33, 100]


def test_inter_pod_affinity_is_stretched_between_the_lowest_and_the_highest() -> None:
    """Raw -10, 0, 30: 0, 25, 100."""
    likes = Constraints(
        preferred_affinity=((30, PodTerm(HOSTNAME, app("friend"))),), preferred_anti_affinity=((10, PodTerm(HOSTNAME, app("foe"))),)
    )
    state = cluster(
        nodes=[node("n1"), node("n2"), node("n3")],
        pods=[pod("foe", on="n1", workload="foe"), pod("friend", on="n3", workload="friend"), pod("p", workload="p", constraints=likes)],
    )
    assert scores(state, "p", "InterPodAffinity") == [0, 25, 100]


def test_preferences_and_required_affinity_of_other_pods_score_too() -> None:
    """Weight 40 for, 40 against, and 1 for a required affinity, of pods that hold terms about the incoming one: raw 40, -40, 1."""
    web = PodTerm(HOSTNAME, app("web"))
    state = cluster(
        nodes=[node("n1"), node("n2"), node("n3")],
        pods=[
            pod("fan", on="n1", workload="x", constraints=Constraints(preferred_affinity=((40, web),))),
            pod("critic", on="n2", workload="x", constraints=Constraints(preferred_anti_affinity=((40, web),))),
            pod("tied", on="n3", workload="x", constraints=Constraints(affinity=(web,))),
            pod("p", workload="web"),
        ],
    )
    assert scores(state, "p", "InterPodAffinity") == [100, 0, 51]


def test_inter_pod_affinity_divides_first_as_the_scheduler_does() -> None:
    """29 of 100 is 28.999... in doubles and truncates to 28."""
    likes = Constraints(preferred_affinity=((100, PodTerm(HOSTNAME, app("a"))), (29, PodTerm(HOSTNAME, app("b")))))
    state = cluster(
        nodes=[node("n1"), node("n2"), node("n3")],
        pods=[pod("a", on="n1", workload="a"), pod("b", on="n2", workload="b"), pod("p", workload="p", constraints=likes)],
    )
    assert scores(state, "p", "InterPodAffinity") == [100, int(100 * (29 / 100)), 0]


def test_e30_the_weighted_sum_over_three_nodes() -> None:
    """Totals 632, 322 and 489, so n1 is the destination."""
    wants = Constraints(
        preferred_nodes=(
            (80, NodeTerm((Requirement("rank", "In", ("1",)),))),
            (20, NodeTerm((Requirement("rank", "In", ("3",)),))),
        ),
        preferred_affinity=((10, PodTerm(HOSTNAME, app("friend"))),),
    )
    state = cluster(
        nodes=[
            node("n1", cpu=8, memory="32Gi", labels={"rank": "1"}),
            node("n2", cpu=8, memory="32Gi", taints=[Taint("soft", "", "PreferNoSchedule")]),
            node("n3", cpu=4, memory="16Gi", labels={"rank": "3"}),
        ],
        pods=[
            pod("b1", on="n1", cpu=3, memory="8Gi"),
            pod("friend", on="n2", cpu=1, memory="24Gi", workload="friend"),
            pod("b3", on="n3", cpu=0.4, memory="1Gi", workload="b"),
            pod("p", cpu=1, memory="2Gi", workload=None, constraints=wants),
        ],
    )
    placements = Placements(state)
    placements.scored_units[2] = (500, 2 * GI)  # n3 has containers without requests
    found = StockScores(state, placements)
    assert found.total(row_of(state, "p"), everywhere(state)).tolist() == [632, 322, 489]
    assert found.best(row_of(state, "p"), everywhere(state)).tolist() == [0]


def test_e31_every_node_within_the_maximum_is_possible() -> None:
    """Ties fall by positions nobody outside can know: all of them are named, none is promised."""
    state = cluster(nodes=[node("n1"), node("n2"), node("n3", cpu=4)], pods=[pod("p", workload=None)])
    found = StockScores(state, Placements(state))
    assert names_of(state, found.best(0, everywhere(state))) == {"n1", "n2"}
    assert names_of(state, found.best(0, np.array([False, True, True]))) == {"n2"}
    assert found.best(0, np.zeros(3, dtype=bool)).tolist() == []


def test_nodes_that_are_not_feasible_score_minus_infinity_and_do_not_normalise() -> None:
    """The most tainted node is not feasible, so the next one has the whole range."""
    soft = [Taint(f"k{i}", "", "PreferNoSchedule") for i in range(4)]
    state = cluster(nodes=[node("n1"), node("n2", taints=soft[:1]), node("n3", taints=soft)], pods=[pod("p", workload=None)])
    total = StockScores(state, Placements(state)).total(0, np.array([True, True, False]))
    assert total[2] == -np.inf
    assert total[0] - total[1] == 300


@pytest.mark.parametrize(
    ("nodes", "looked_at"),
    [
        (99, 99),
        (100, 100),
        (250, 120),
        (500, 230),
        (1000, 420),
        (2000, 680),
        (3125, 781),
        (5000, 500),
        (5500, 330),
        (5625, 281),
        (6000, 300),
        (10000, 500),
    ],
)
def test_the_scheduler_looks_at_a_part_of_a_large_cluster(nodes: int, looked_at: int) -> None:
    """K by number of nodes, default percentage."""
    assert sample_size(nodes) == looked_at


def test_bookings_move_the_scores() -> None:
    """A booked replacement makes its destination less attractive for the next pod."""
    state = cluster(nodes=[node("n1"), node("n2")], pods=[pod("a", cpu=4), pod("b", cpu=4)])
    placements = Placements(state)
    found = StockScores(state, placements)
    placements.book(0, 0)
    assert found.best(1, everywhere(state)).tolist() == [1]
