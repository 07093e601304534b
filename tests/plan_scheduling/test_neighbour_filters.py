"""Filters that count other pods: topology spread and inter-pod affinity."""

from __future__ import annotations

from rebalancer.plan.ledger import Placements
from rebalancer.state.scheduling import Constraints, NodeTerm, PodTerm, Requirement, Selector, SpreadConstraint
from rebalancer.state.tables import Phase
from tests.plan_scheduling.asking import HOSTNAME, ZONE, allowed, app, row_of, why_not
from tests.support.builder import NodeSpec, PodSpec, cluster, node, pod


def _zones(*names: str) -> list[NodeSpec]:
    """One node a zone, named like its zone."""
    return [node(name, zone=name) for name in names]


def _spread(max_skew: int = 1, *, min_domains: int = 1, selector: Selector | None = app("web"), key: str = ZONE) -> Constraints:  # noqa: B008
    return Constraints(spread=(SpreadConstraint(key, max_skew, True, selector, min_domains),))


def _pods(counts: dict[str, int], constraints: Constraints) -> list[PodSpec]:
    return [pod(f"{zone}-{i}", on=zone, workload="web", constraints=constraints) for zone, n in counts.items() for i in range(n)]


def test_e16_the_crowded_zone_is_refused() -> None:
    """Counts 3, 1, 1 with maxSkew 1: a would have 4 against 1."""
    wants = _spread()
    state = cluster(
        nodes=_zones("a", "b", "c"), pods=[*_pods({"a": 3, "b": 1, "c": 1}, wants), pod("p", workload="web", constraints=wants)]
    )
    assert allowed(state, "p") == {"b", "c"}
    assert why_not(state, "p", "a") == f"Topology spread: {ZONE}=a would have 4 pods against 1 in the emptiest domain, above maxSkew 1"


def test_e17_too_few_domains_make_the_minimum_zero() -> None:
    """Counts 1, 1, maxSkew 1 and minDomains 3: no node at all."""
    wants = _spread(min_domains=3)
    state = cluster(nodes=_zones("a", "b"), pods=[*_pods({"a": 1, "b": 1}, wants), pod("p", workload="web", constraints=wants)])
    assert allowed(state, "p") == set()


def test_e18_an_evicted_pod_can_only_return_to_the_zone_it_empties() -> None:
    """Counts 2 and 1, the pod of b evicted: b is 0 at once, so a would have 3 against 0."""
    wants = _spread()
    state = cluster(nodes=_zones("a", "b"), pods=_pods({"a": 2, "b": 1}, wants))
    assert allowed(state, "b-0") == {"b"}


def test_e19_an_evicted_pod_of_the_crowded_zone_may_go_anywhere() -> None:
    """Counts 3 and 2, a pod of a evicted: both zones stay within maxSkew 1."""
    wants = _spread()
    state = cluster(nodes=_zones("a", "b"), pods=_pods({"a": 3, "b": 2}, wants))
    assert allowed(state, "a-0") == {"a", "b"}
    assert allowed(state, "a-0", leaving=False) == {"b"}


def test_e20_a_pod_that_the_selector_does_not_match_adds_nothing() -> None:
    """Counts 5 and 1, maxSkew 4, the pod itself is another app: 5 + 0 - 1 = 4 is allowed."""
    wants = _spread(4)
    others = _pods({"a": 5, "b": 1}, Constraints())
    state = cluster(nodes=_zones("a", "b"), pods=[*others, pod("p", workload="other", constraints=wants)])
    assert allowed(state, "p") == {"a", "b"}
    strict = cluster(nodes=_zones("a", "b"), pods=[*others, pod("p", workload="other", constraints=_spread(3))])
    assert allowed(strict, "p") == {"b"}


def test_a_terminating_pod_does_not_count_for_spread() -> None:
    """Counts are of pods that stay."""
    wants = _spread()
    dying = [pod(f"d{i}", on="a", workload="web", terminating=True) for i in range(3)]
    state = cluster(nodes=_zones("a", "b"), pods=[*dying, pod("p", workload="web", constraints=wants)])
    assert allowed(state, "p") == {"a", "b"}


def test_a_node_without_the_topology_key_is_refused() -> None:
    """The sentence names the key."""
    state = cluster(nodes=[node("a", zone="a"), node("bare")], pods=[pod("p", workload="web", constraints=_spread())])
    assert allowed(state, "p") == {"a"}
    assert why_not(state, "p", "bare") == f"The node has no label {ZONE}, which a topology spread constraint needs"


def test_nodes_outside_the_pods_selection_take_no_part_in_the_minimum() -> None:
    """nodeAffinityPolicy Honor: the empty zone c is not selectable, so it does not hold the others down."""
    wants = Constraints(node_terms=_in_zones("a", "b"), spread=(SpreadConstraint(ZONE, 1, True, app("web")),))
    state = cluster(nodes=_zones("a", "b", "c"), pods=[*_pods({"a": 1, "b": 1}, wants), pod("p", workload="web", constraints=wants)])
    assert allowed(state, "p") == {"a", "b"}


def _in_zones(*names: str) -> tuple[NodeTerm, ...]:
    return (NodeTerm(expressions=(Requirement(ZONE, "In", names),)),)


def test_an_empty_spread_selector_counts_nobody() -> None:
    """``{}`` counts 0 pods, though the pod itself matches it."""
    wants = _spread(selector=Selector())
    state = cluster(nodes=_zones("a", "b"), pods=[*_pods({"a": 5}, Constraints()), pod("p", workload="web", constraints=wants)])
    assert allowed(state, "p") == {"a", "b"}


def test_match_label_keys_restrict_the_count_to_the_own_revision() -> None:
    """Pods of an older revision do not count."""
    wants = Constraints(spread=(SpreadConstraint(ZONE, 1, True, app("web"), match_label_keys=("rev", "absent")),))
    old = [pod(f"old-{i}", on="a", labels={"app": "web", "rev": "1"}) for i in range(3)]
    state = cluster(nodes=_zones("a", "b"), pods=[*old, pod("p", labels={"app": "web", "rev": "2"}, constraints=wants)])
    assert allowed(state, "p") == {"a", "b"}


def test_pods_of_other_namespaces_do_not_count_for_spread() -> None:
    """Spread looks at the namespace of the pod alone."""
    wants = _spread()
    far = [pod(f"far-{i}", on="a", namespace="far", workload="web") for i in range(3)]
    state = cluster(nodes=_zones("a", "b"), pods=[*far, pod("p", workload="web", constraints=wants)])
    assert allowed(state, "p") == {"a", "b"}


def test_e21_anti_affinity_of_another_pod_keeps_a_pod_without_terms_out() -> None:
    """X in zone a has required anti-affinity against web: zone a is closed, nodes without a zone pass."""
    against_web = Constraints(anti_affinity=(PodTerm(ZONE, app("web")),))
    state = cluster(
        nodes=[node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("bare")],
        pods=[pod("x", on="a1", workload="x", constraints=against_web), pod("p", workload="web")],
    )
    assert allowed(state, "p") == {"b1", "bare"}
    assert why_not(state, "p", "a2") == f"1 pods in {ZONE}=a have anti-affinity against the pod"


def test_e22_the_first_pod_of_a_group_may_go_to_any_node_with_the_key() -> None:
    """Affinity to its own app, and nobody of it is there yet."""
    together = Constraints(affinity=(PodTerm(ZONE, app("db")),))
    state = cluster(nodes=[*_zones("a", "b"), node("bare")], pods=[pod("p", workload="db", constraints=together)])
    assert allowed(state, "p") == {"a", "b"}


def test_e23_a_terminating_pod_still_pins_its_group_to_its_zone() -> None:
    """One terminating db pod in zone b: zone b only."""
    together = Constraints(affinity=(PodTerm(ZONE, app("db")),))
    state = cluster(
        nodes=[*_zones("a", "b"), node("bare")],
        pods=[pod("old", on="b", workload="db", terminating=True), pod("p", workload="db", constraints=together)],
    )
    assert allowed(state, "p") == {"b"}
    assert why_not(state, "p", "a") == f"No pod that the pod's affinity requires is in {ZONE}=a"
    assert why_not(state, "p", "bare") == f"The node has no label {ZONE}, which the pod's affinity needs"


def test_e24_one_pod_must_match_all_affinity_terms() -> None:
    """P matches the first term, Q the second: no single pod matches both, and the pod itself matches neither."""
    both = Constraints(affinity=(PodTerm(ZONE, app("p")), PodTerm(ZONE, app("q"))))
    state = cluster(
        nodes=_zones("a"),
        pods=[pod("one", on="a", workload="p"), pod("two", on="a", workload="q"), pod("x", workload="x", constraints=both)],
    )
    assert allowed(state, "x") == set()


def test_d3_a_pod_whose_anti_affinity_leaves_only_its_own_node_has_nowhere_to_go() -> None:
    """Every other node has a replica; its own has the one that leaves."""
    apart = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("web")),))
    state = cluster(
        nodes=[node("n1"), node("n2"), node("n3")],
        pods=[pod(f"web-{i}", on=f"n{i}", workload="web", constraints=apart) for i in (1, 2, 3)],
    )
    assert allowed(state, "web-1") == set()
    assert why_not(state, "web-1", "n2") == f"The pod's anti-affinity forbids {HOSTNAME}=n2: 1 matching pods are there"


def test_anti_affinity_passes_a_node_without_the_key() -> None:
    """No domain, nothing to share."""
    apart = Constraints(anti_affinity=(PodTerm(ZONE, app("web")),))
    state = cluster(nodes=[*_zones("a"), node("bare")], pods=[pod("w", on="a", workload="web"), pod("p", workload="x", constraints=apart)])
    assert allowed(state, "p") == {"bare"}


def test_a_finished_pod_is_not_seen() -> None:
    """Succeeded and Failed pods hold nothing: no port, no affinity, no slot."""
    apart = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("web")),))
    state = cluster(
        nodes=[node("n1", cpu=1)],
        pods=[
            pod("done", on="n1", workload="web", cpu=1, phase=Phase.SUCCEEDED, constraints=apart),
            pod("p", workload="web", constraints=apart),
        ],
    )
    assert allowed(state, "p") == {"n1"}


def test_a_term_looks_at_the_namespace_of_its_owner_unless_it_says_otherwise() -> None:
    """Own namespace by default; listed ones; or those whose labels a selector matches, an empty one matching all."""
    own = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("web")),))
    listed = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("web"), namespaces=("far",)),))
    labelled = Constraints(
        anti_affinity=(PodTerm(HOSTNAME, app("web"), namespace_selector=Selector((Requirement("team", "In", ("far",)),))),)
    )
    every = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("web"), namespace_selector=Selector()),))
    state = cluster(
        nodes=[node("n1"), node("n2")],
        pods=[
            pod("far", on="n1", namespace="far", workload="web"),
            *(
                pod(name, workload="x", constraints=c)
                for name, c in {"own": own, "listed": listed, "labelled": labelled, "every": every}.items()
            ),
        ],
        namespaces={"default": {}, "far": {"team": "far"}},
    )
    assert allowed(state, "own") == {"n1", "n2"}
    assert allowed(state, "listed") == {"n2"}
    assert allowed(state, "labelled") == {"n2"}
    assert allowed(state, "every") == {"n2"}


def test_equal_constraints_in_two_namespaces_hold_against_their_own_namespace_only() -> None:
    """Two holders share one value of constraints; each refuses pods of its own namespace."""
    apart = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("web")),))
    state = cluster(
        nodes=[node("n1"), node("n2")],
        pods=[
            pod("here", on="n1", workload="x", constraints=apart),
            pod("there", on="n2", namespace="far", workload="x", constraints=apart),
            pod("p", workload="web"),
            pod("q", namespace="far", workload="web"),
        ],
    )
    assert allowed(state, "p") == {"n2"}
    assert allowed(state, "q") == {"n1"}


def test_a_booked_replacement_is_a_neighbour_at_once() -> None:
    """Two replicas that must be apart cannot be booked onto one node."""
    apart = Constraints(anti_affinity=(PodTerm(HOSTNAME, app("web")),))
    state = cluster(
        nodes=[node(f"n{i}") for i in range(1, 5)],
        pods=[
            pod("web-1", on="n1", workload="web", constraints=apart),
            pod("web-2", on="n2", workload="web", constraints=apart),
            pod("p", workload="web"),
        ],
    )
    placements = Placements(state)
    assert allowed(state, "p", placements=placements) == {"n3", "n4"}
    placements.book(row_of(state, "web-1"), 2)
    assert allowed(state, "web-2", placements=placements) == {"n4"}
    assert allowed(state, "p", placements=placements) == {"n4"}


def test_a_booked_pod_leaves_the_spread_of_its_source_at_once() -> None:
    """After a move from a to b the counts are 1 and 2: the next pod of the group may enter a only."""
    wants = _spread()
    state = cluster(nodes=_zones("a", "b"), pods=[*_pods({"a": 2, "b": 1}, wants), pod("p", workload="web", constraints=wants)])
    placements = Placements(state)
    assert allowed(state, "p", placements=placements) == {"b"}
    placements.book(row_of(state, "a-0"), 1)
    assert allowed(state, "p", placements=placements) == {"a"}
