"""The simulated scheduler against the worked examples of the real one: filters E7 to E24, scores E25 to E31 as far as they apply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rebalancer.simulate.node_match import term_matches, tolerated
from rebalancer.simulate.pods import delete_pod
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.scheduler import Scheduler, nodes_to_find
from rebalancer.simulate.scheduling_filters import feasible
from rebalancer.simulate.scheduling_scores import (
    balanced_allocation,
    least_allocated,
    node_affinity_score,
    pod_affinity_score,
    spread_score,
    taint_score,
    total_score,
)
from rebalancer.simulate.scheduling_snapshot import Demands, Snapshot, take_snapshot
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Json, deployment, node, owner_of, pod, pod_value

ZONE = "topology.kubernetes.io/zone"


def _incoming(name: str = "new", **rest: Any) -> Json:
    value = pod_value(name, **rest)
    value["metadata"]["uid"] = "incoming"
    return value


def _feasible(world: World, value: Json) -> list[str]:
    demands = Demands()
    snapshot = take_snapshot(world, demands)
    mask = feasible(snapshot, value, demands.of(value))
    return [name for name, fine in zip(snapshot.names, mask, strict=True) if fine]


def _scene(world: World, value: Json) -> tuple[Snapshot, Any, Any]:
    demands = Demands()
    snapshot = take_snapshot(world, demands)
    return snapshot, demands.of(value), np.arange(snapshot.size)


def _term(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("labels", "term", "expected"),
    [
        ({"gen": "9"}, _term("gen", "Gt", "8"), True),
        ({"gen": "9"}, _term("gen", "Gt", "9"), False),
        ({"gen": "v9"}, _term("gen", "Gt", "8"), False),
        ({"gen": "v9"}, _term("gen", "NotIn", "v8"), True),
        ({}, _term("gpu", "NotIn", "a100"), True),
        ({}, _term("gpu", "DoesNotExist"), True),
        ({"zone": "a"}, {}, False),
    ],
)
def test_e7_to_e9_node_selector_terms(labels: dict[str, str], term: Json, expected: bool) -> None:
    """Gt needs two integers, NotIn and DoesNotExist hold without the label, an empty term matches nothing."""
    assert term_matches(term, labels, "n") is expected


def test_e10_terms_are_ored_and_their_expressions_anded() -> None:
    """Neither term of the example holds on a node in zone a without a disk label."""
    world = World()
    node(world, "n1", labels={"zone": "a"})
    both = {"matchExpressions": [*_term("zone", "In", "a")["matchExpressions"], {"key": "disk", "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [_term("zone", "In", "b"), both]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert _feasible(world, _incoming(affinity=affinity)) == []


def test_e11_host_ports_clash_by_address_protocol_and_port() -> None:
    """The wildcard address clashes with every address of the same protocol and port."""
    world = World()
    node(world, "n1")

    def ports(address: str, protocol: str) -> Json:
        value = _incoming()
        value["spec"]["containers"][0]["ports"] = [{"hostIP": address, "hostPort": 8080, "protocol": protocol, "containerPort": 80}]
        return value

    taken = ports("10.0.0.1", "TCP")
    world.create("pods", {**taken, "metadata": {"name": "old", "namespace": "a"}, "spec": {**taken["spec"], "nodeName": "n1"}})
    verdicts = [bool(_feasible(world, ports(*triple))) for triple in (("0.0.0.0", "TCP"), ("10.0.0.2", "TCP"), ("10.0.0.1", "UDP"))]
    assert verdicts == [False, True, True]


@pytest.mark.parametrize(("cpu", "fits"), [("500m", True), ("501m", False)])
def test_e12_requests_fit_to_the_millicore(cpu: str, fits: bool) -> None:
    """3500m of 4000m are taken."""
    world = World()
    node(world, "n1", cpu="4")
    pod(world, "old", on="n1", cpu="3500m")
    assert bool(_feasible(world, _incoming(cpu=cpu))) is fits


def test_e13_an_over_committed_node_takes_pods_that_ask_for_no_cpu() -> None:
    """Only resources that are requested are looked at."""
    world = World()
    node(world, "n1", cpu="4")
    pod(world, "old", on="n1", cpu="5")
    assert _feasible(world, _incoming(memory="1Gi")) == ["n1"]


def test_e15_the_number_of_pods_is_a_resource() -> None:
    """A full node takes nobody, whatever they ask for."""
    world = World()
    node(world, "n1", pods="1")
    pod(world, "old", on="n1")
    assert _feasible(world, _incoming()) == []


def _zones(world: World, **counts: int) -> None:
    for zone, count in counts.items():
        node(world, f"n-{zone}", labels={ZONE: zone})
        for number in range(count):
            pod(world, f"{zone}{number}", on=f"n-{zone}", labels={"app": "w"})


def _spread(skew: int, *, app: str = "w", **rest: Any) -> list[Json]:
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **rest}]


@pytest.mark.parametrize(
    ("counts", "constraint", "labels", "expected"),
    [
        ({"a": 3, "b": 1, "c": 1}, _spread(1), {"app": "w"}, ["n-b", "n-c"]),
        ({"a": 1, "b": 1}, _spread(1, minDomains=3), {"app": "w"}, []),
        ({"a": 5, "b": 1}, _spread(4), {"app": "other"}, ["n-a", "n-b"]),
    ],
    ids=["e16", "e17", "e20"],
)
def test_e16_e17_e20_hard_spread(counts: dict[str, int], constraint: list[Json], labels: Json, expected: list[str]) -> None:
    """The skew is counted with the pod itself where it matches, against the emptiest domain."""
    world = World()
    _zones(world, **counts)
    assert _feasible(world, _incoming(labels=labels, topologySpreadConstraints=constraint)) == expected


@pytest.mark.parametrize(("counts", "gone", "expected"), [({"a": 2, "b": 1}, "b0", ["n-b"]), ({"a": 3, "b": 2}, "a0", ["n-a", "n-b"])])
def test_e18_e19_an_evicted_pod_no_longer_counts_for_spread(counts: dict[str, int], gone: str, expected: list[str]) -> None:
    """The moment of the eviction decides where the replacement may go."""
    world = World()
    _zones(world, **counts)
    delete_pod(world, world.get("pods", gone, "a"))
    assert _feasible(world, _incoming(labels={"app": "w"}, topologySpreadConstraints=_spread(1))) == expected


def _required(kind: str, app: str) -> Json:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_e21_anti_affinity_of_those_that_are_there_keeps_others_out() -> None:
    """The incoming pod needs no terms of its own; a node without the label passes."""
    world = World()
    _zones(world, a=0, b=0)
    node(world, "plain")
    pod(world, "x", on="n-a", labels={"app": "x"}, affinity=_required("podAntiAffinity", "web"))
    assert _feasible(world, _incoming(labels={"app": "web"})) == ["n-b", "plain"]


def test_e22_e23_the_first_of_a_group_goes_anywhere_and_the_second_to_the_first() -> None:
    """A terminating partner still holds its zone."""
    world = World()
    _zones(world, a=0, b=0)
    value = _incoming(labels={"app": "db"}, affinity=_required("podAffinity", "db"))
    assert _feasible(world, value) == ["n-a", "n-b"]
    delete_pod(world, pod(world, "db-0", on="n-b", labels={"app": "db"}))
    assert _feasible(world, value) == ["n-b"]


def test_e24_one_pod_must_match_all_affinity_terms() -> None:
    """Two pods that match one term each are not a partner."""
    world = World()
    _zones(world, a=0)
    for app in ("p", "q"):
        pod(world, app, on="n-a", labels={app: "1"})
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {app: "1"}}} for app in ("p", "q")]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert _feasible(world, _incoming(affinity=affinity)) == []


def test_tolerations_match_by_effect_key_and_value() -> None:
    """One Exists without a key tolerates everything; Gt and Lt match nothing."""
    taint = {"key": "k", "value": "5", "effect": "NoSchedule"}
    cases: list[tuple[Json, bool]] = [
        ({"operator": "Exists"}, True),
        ({"key": "k", "value": "5"}, True),
        ({"key": "k", "value": "6"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "operator": "Gt", "value": "1"}, False),
    ]
    assert [tolerated(taint, [toleration]) for toleration, _ in cases] == [expected for _, expected in cases]


def test_e25_e26_least_allocated() -> None:
    """Room by share of each resource, with what scores assume for a pod that asks for nothing."""
    world = World()
    node(world, "n1", cpu="8", memory="32Gi")
    node(world, "n2", cpu="4", memory="8Gi")
    pod(world, "one", on="n1", cpu="3", memory="8Gi")
    pod(world, "two", on="n2", cpu="2", memory="4Gi")
    snapshot, demand, rows = _scene(world, _incoming(cpu="1", memory="2Gi"))
    assert least_allocated(snapshot, demand, rows[:1]).tolist() == [59]
    snapshot, demand, rows = _scene(world, _incoming())
    assert least_allocated(snapshot, demand, rows[1:]).tolist() == [47]


def test_e27_balanced_allocation_judges_the_change() -> None:
    """75 is no change; the four nodes of the example."""
    world = World()
    for name, cpu, memory in (("a", 4000, 10000), ("b", 6000, 10000), ("c", 10000, 20000), ("d", 10000, 20000)):
        node(world, name, cpu=f"{cpu}m", memory=str(memory))
    pod(world, "c", on="c", cpu="3000m", memory="0")
    pod(world, "d", on="d", cpu="3000m", memory="5000")
    snapshot, demand, rows = _scene(world, _incoming(cpu="3000m", memory="5000"))
    assert balanced_allocation(snapshot, demand, rows).tolist() == [68, 75, 73, 74]


def test_e28_soft_taints_are_scored_in_reverse() -> None:
    """0, 1 and 3 taints that are not tolerated: 100, 67, 0; without any, 100 for all."""
    world = World()
    for name, count in (("a", 0), ("b", 1), ("c", 3)):
        node(world, name, taints=[{"key": f"k{number}", "effect": "PreferNoSchedule"} for number in range(count)])
    snapshot, _, rows = _scene(world, _incoming())
    assert taint_score(snapshot, _incoming(), rows).tolist() == [100, 67, 0]
    assert taint_score(snapshot, _incoming(tolerations=[{"operator": "Exists"}]), rows).tolist() == [100, 100, 100]


def test_preferred_node_affinity_is_normalised_to_the_best() -> None:
    """Raw 80, 20, 0 become 100, 25, 0."""
    world = World()
    for name, disk in (("a", "fast"), ("b", "slow"), ("c", "none")):
        node(world, name, labels={"disk": disk})
    preferred = [{"weight": weight, "preference": _term("disk", "In", disk)} for weight, disk in ((80, "fast"), (20, "slow"))]
    value = _incoming(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
    snapshot, _, rows = _scene(world, value)
    assert node_affinity_score(snapshot, value, rows).tolist() == [100, 25, 0]


def test_e29_default_spread_and_one_own_constraint() -> None:
    """The system's defaults on three nodes, then counts 4, 2, 0 in three zones."""
    world = World()
    owner = owner_of(deployment(world, "w", 3))
    for name, zone, count in (("n1", "a", 2), ("n2", "a", 0), ("n3", "b", 1)):
        node(world, name, labels={ZONE: zone})
        for number in range(count):
            pod(world, f"{name}-{number}", on=name, labels={"app": "w"}, owner=owner)
    value = _incoming(labels={"app": "w"})
    value["metadata"]["ownerReferences"] = [owner]
    snapshot, _, rows = _scene(world, value)
    assert spread_score(snapshot, value, rows).tolist() == [75, 100, 100]

    world = World()
    _zones(world, a=4, b=2, c=0)
    value = _incoming(labels={"app": "w"}, topologySpreadConstraints=[{**_spread(1)[0], "whenUnsatisfiable": "ScheduleAnyway"}])
    snapshot, _, rows = _scene(world, value)
    assert spread_score(snapshot, value, rows).tolist() == [0, 50, 100]


def test_pod_affinity_is_stretched_between_the_worst_and_the_best() -> None:
    """Raw -10, 0, 30 become 0, 25, 100."""
    world = World()
    for zone in "abc":
        node(world, f"n-{zone}", labels={ZONE: zone})
    pod(world, "bad", on="n-a", labels={"app": "bad"})
    pod(world, "good", on="n-c", labels={"app": "good"})

    def preferred(weight: int, app: str) -> list[Json]:
        return [{"weight": weight, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}}]

    kind = "preferredDuringSchedulingIgnoredDuringExecution"
    value = _incoming(affinity={"podAffinity": {kind: preferred(30, "good")}, "podAntiAffinity": {kind: preferred(10, "bad")}})
    snapshot, _, rows = _scene(world, value)
    assert pod_affinity_score(snapshot, value, rows).tolist() == [0, 25, 100]


def test_e30_the_sum_of_all_scores() -> None:
    """632, 322 and 489 for the three nodes of the example (pod affinity by a partner on the second)."""
    world = World()
    node(world, "n1", cpu="8", memory="32Gi", labels={"p": "80", ZONE: "a"})
    node(world, "n2", cpu="8", memory="32Gi", labels={"p": "0", ZONE: "b"}, taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    node(world, "n3", cpu="4", memory="16Gi", labels={"p": "20", ZONE: "c"})
    pod(world, "one", on="n1", cpu="3", memory="8Gi")
    pod(world, "two", on="n2", cpu="1", memory="24Gi", labels={"app": "partner"})
    pod(world, "three", on="n3", cpu="300m", memory="0")
    pod(world, "four", on="n3", cpu="100m", memory="1Gi")
    demands = Demands()
    kind = "preferredDuringSchedulingIgnoredDuringExecution"
    nodes = [{"weight": int(weight), "preference": _term("p", "In", weight)} for weight in ("80", "20")]
    partner = {"weight": 10, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "partner"}}}}
    value = _incoming(cpu="1", memory="2Gi", affinity={"nodeAffinity": {kind: nodes}, "podAffinity": {kind: [partner]}})
    snapshot = take_snapshot(world, demands)
    snapshot.nonzero["cpu"][2], snapshot.nonzero["memory"][2] = 500.0, 2.0 * 2**30
    assert total_score(snapshot, value, demands.of(value), np.arange(3)).tolist() == [632, 322, 489]


def test_e31_ties_fall_to_any_of_the_best_and_the_same_seed_chooses_the_same() -> None:
    """Equal nodes are all drawn sooner or later; a seed repeats itself."""

    def placements(seed: int) -> list[str]:
        world = bare_world(seed=seed)
        for number in range(4):
            node(world, f"n{number}")
        for number in range(12):
            pod(world, f"p{number}")
            world.settle()
        return [p["spec"]["nodeName"] for p in world.objects("pods")]

    assert placements(1) == placements(1)
    assert len({placements(seed)[0] for seed in range(30)}) == 4


@pytest.mark.parametrize(
    ("size", "found"), [(99, 99), (100, 100), (250, 120), (500, 230), (1000, 420), (3125, 781), (5000, 500), (5625, 281), (10000, 500)]
)
def test_how_many_nodes_are_looked_at(size: int, found: int) -> None:
    """The table of section 5 of the scheduler's rules."""
    assert nodes_to_find(size) == found


def test_a_pod_without_a_place_waits_and_is_placed_when_there_is_one() -> None:
    """It says Unschedulable, and a new node wakes it."""
    world = bare_world()
    node(world, "small", cpu="1")
    pod(world, "big", cpu="2")
    world.advance(5)
    value = world.get("pods", "big", "a")
    assert [c["reason"] for c in value["status"]["conditions"]] == ["Unschedulable"]
    node(world, "large", cpu="4")
    world.advance(30)
    assert world.get("pods", "big", "a")["spec"]["nodeName"] == "large"


def test_higher_priority_is_placed_first_and_gated_pods_not_at_all() -> None:
    """One place, two pods; a third one has a scheduling gate."""
    world = bare_world()
    pod(world, "low", cpu="1")
    pod(world, "high", cpu="1", priority=10)
    pod(world, "gated", schedulingGates=[{"name": "g"}])
    node(world, "n1", cpu="1")
    world.settle()
    placed = [p["metadata"]["name"] for p in world.objects("pods") if p["spec"].get("nodeName")]
    assert placed == ["high"]


def test_a_nominated_node_is_taken_whatever_the_scores() -> None:
    """When it passes the filters."""
    world = World()
    node(world, "empty")
    node(world, "full", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    value = _incoming()
    value["status"]["nominatedNodeName"] = "full"
    scheduler = Scheduler(world)
    snapshot = take_snapshot(world, Demands())
    assert scheduler.choose(snapshot, value) == snapshot.index["full"]
