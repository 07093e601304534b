"""Room that planned moves have reserved: whose it is, who is kept off it, and that it keeps nobody from running."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.state.tables import WorkloadRef
from rebalancer.steer.extender import Chosen, Steering, filter_nodes, prioritize_nodes
from rebalancer.steer.judging import DynamicJudge, Judge, OwnJudge, PodAsk
from rebalancer.steer.lineage import Lineage, lineage
from rebalancer.steer.node_view import NodeView, node_view
from rebalancer.steer.own_score import Marks
from rebalancer.steer.reservations import HOLD_S, Arrival, Reservation, Reservations
from tests.steer.kit import NOW, crane, own, question, view

OWN = OwnJudge(Marks(target=np.full(4, 0.5), high=np.full(4, 0.7)))
JUDGES = [pytest.param(DynamicJudge(), id="dynamic"), pytest.param(OWN, id="own")]
WEB = WorkloadRef("Deployment", "shop", "web")
CORES = 8.0


def with_capacity(nodes: NodeView, cores: float = CORES) -> NodeView:
    capacity = np.tile([cores, 32e9, math.nan, math.nan], (len(nodes.names), 1))
    return node_view(nodes.names, crane=nodes.crane, own=nodes.own, made_at=nodes.made_at, capacity=capacity)


def loaded(**cpu: float) -> NodeView:
    nodes = {name: {**crane(load, load, load, 0, 0, 0), **own(cpu=load, memory=0)} for name, load in cpu.items()}
    return with_capacity(view(nodes))


def reservation(key: str, node: str, *, cores: float = 4.0, since: float = NOW - 10, controller: str = "rs-1") -> Reservation:
    return Reservation(key, WEB, controller, "shop", node, since, {"cpu": cores, "memory": 1e9})


def reserved(*planned: Reservation, now: float = NOW) -> Reservations:
    return Reservations().with_planned(planned, now=now)


def pod(uid: str = "new", *, controller: str = "rs-1", name: str = "web-5d4f", namespace: str = "shop") -> dict[str, object]:
    """A pod of the ReplicaSet ``name``, as kube-scheduler sends it."""
    owner = {"kind": "ReplicaSet", "name": name, "uid": controller, "controller": True}
    labels = {"pod-template-hash": name.rpartition("-")[2]}
    return {"metadata": {"name": f"{name}-x", "namespace": namespace, "uid": uid, "labels": labels, "ownerReferences": [owner]}}


def arrival(uid: str, node: str, *, at: float = NOW, controller: str = "rs-1") -> Arrival:
    return Arrival(Lineage(uid, "shop", controller, WEB), node, at)


STRANGER = pod("other", controller="rs-9", name="api-77aa")


def kept(names: list[str], steering: Steering, asking: Mapping[str, object], *, now: float = NOW) -> list[str]:
    answer = json.loads(filter_nodes(question(names, pod=asking), steering=steering, now=now).body)
    return list(answer["NodeNames"])


def scored(names: list[str], steering: Steering, asking: Mapping[str, object], *, now: float = NOW) -> dict[str, int]:
    answer = prioritize_nodes(question(names, pod=asking), steering=steering, now=now)
    return {each["Host"]: each["Score"] for each in json.loads(answer.body)}


@pytest.mark.parametrize("judge", JUDGES)
def test_a_replacement_is_sent_to_its_planned_node_and_nowhere_else(judge: Judge) -> None:
    """Though another one is idler: anything but the lowest score there would be outvoted by the scheduler's own points."""
    steering = Steering(loaded(idle=0.0, planned=0.4, other=0.2), judge, reservations=reserved(reservation("old", "planned")))
    assert scored(["idle", "planned", "other"], steering, pod()) == {"idle": 0, "planned": 10, "other": 0}


@pytest.mark.parametrize("judge", JUDGES)
def test_others_see_the_reserved_room_as_used_in_the_score(judge: Judge) -> None:
    """Half of the node is spoken for."""
    nodes = loaded(idle=0.1, planned=0.1)
    without = scored(["idle", "planned"], Steering(nodes, judge), STRANGER)
    found = scored(["idle", "planned"], Steering(nodes, judge, reservations=reserved(reservation("old", "planned"))), STRANGER)
    assert found["idle"] == without["idle"] == without["planned"]
    assert found["planned"] < without["planned"]


@pytest.mark.parametrize("judge", JUDGES)
def test_others_see_the_reserved_room_as_used_in_the_filter(judge: Judge) -> None:
    """A node that would be too hot with what is to come is refused to them, and to the replacement it is not."""
    steering = Steering(loaded(idle=0.1, planned=0.4), judge, reservations=reserved(reservation("old", "planned")))
    assert kept(["idle", "planned"], steering, STRANGER) == ["idle"]
    assert kept(["idle", "planned"], steering, pod()) == ["idle", "planned"]


@pytest.mark.parametrize("judge", JUDGES)
def test_the_planned_node_is_never_refused_to_the_replacement(judge: Judge) -> None:
    """The plan has weighed it; refusing it now would only send the pod elsewhere."""
    both = reserved(reservation("old", "planned"), reservation("too", "planned", controller="rs-2"))
    steering = Steering(loaded(idle=0.1, planned=0.68, hot=0.9), judge, reservations=both)
    assert kept(["idle", "planned", "hot"], steering, pod()) == ["idle", "planned"]


def test_where_the_planned_node_is_no_candidate_the_scores_are_the_usual_ones() -> None:
    """The scheduler has ruled it out: the next best will do."""
    steering = Steering(loaded(idle=0.0, planned=0.2, other=0.5), OWN, reservations=reserved(reservation("old", "planned")))
    assert scored(["idle", "other"], steering, pod()) == {"idle": 10, "other": 5}


def test_a_reservation_ends() -> None:
    """After its time, when a pod of the workload was seen bound, and when the controller takes the move off."""
    nodes = loaded(idle=0.0, planned=0.2)
    book = reserved(reservation("old", "planned", since=NOW - 10))
    assert scored(["idle", "planned"], Steering(nodes, OWN, reservations=book), pod(), now=NOW + 289)["planned"] == 10
    for over, now in (
        (book, NOW + 290),
        (book.with_arrivals([arrival("first", "idle")]), NOW),
        (book.with_planned([], now=NOW), NOW),
    ):
        steering = Steering(nodes, OWN, reservations=over)
        assert scored(["idle", "planned"], steering, pod(), now=now) == scored(["idle", "planned"], Steering(nodes, OWN), pod(), now=now)
        assert over.open(now=now) == 0


@pytest.mark.parametrize(
    "asking",
    [
        pod(controller="rs-2", name="web-6c5b"),
        pod(name="whatever"),
    ],
    ids=["a newer ReplicaSet of the Deployment", "the same controller by its uid"],
)
def test_whose_replacement_a_pod_may_be(asking: Mapping[str, object]) -> None:
    """By the controller's uid, else by the workload that the names tell."""
    steering = Steering(loaded(idle=0.0, planned=0.2), OWN, reservations=reserved(reservation("old", "planned")))
    assert scored(["idle", "planned"], steering, asking) == {"idle": 0, "planned": 10}


@pytest.mark.parametrize(
    "asking",
    [
        STRANGER,
        pod(namespace="elsewhere"),
        {"metadata": {"name": "bare", "namespace": "shop", "uid": "u"}},
        pod(controller="rs-3", name="web-extra-5d4f"),
    ],
    ids=["another workload", "another namespace", "a bare pod", "a name that only begins alike"],
)
def test_whose_replacement_a_pod_is_not(asking: Mapping[str, object]) -> None:
    """It goes where there is room."""
    steering = Steering(loaded(idle=0.0, planned=0.2), OWN, reservations=reserved(reservation("old", "planned")))
    assert scored(["idle", "planned"], steering, asking)["idle"] == 10


def test_the_root_of_a_replica_sets_pods_is_told_by_their_hash() -> None:
    """A ReplicaSet of nobody's stays one; other kinds are their own root."""

    def root(kind: str, name: str, template_hash: str = "") -> tuple[str, str]:
        labels = {"pod-template-hash": template_hash} if template_hash else {}
        found = lineage(uid="u", namespace="a", kind=kind, name=name, controller_uid="c", labels=labels)
        return found.workload.kind, found.workload.name

    assert root("ReplicaSet", "web-front-5d4f", "5d4f") == ("Deployment", "web-front")
    assert root("ReplicaSet", "web-front-5d4f") == ("ReplicaSet", "web-front-5d4f")
    assert root("ReplicaSet", "-5d4f", "5d4f") == ("ReplicaSet", "-5d4f")
    assert root("StatefulSet", "db", "5d4f") == ("StatefulSet", "db")


def test_two_replacements_of_one_workload_take_one_each() -> None:
    """What an answer counts on is held for the pod that asked; the same pod asking again gets the same answer."""
    nodes, names = loaded(idle=0.0, one=0.2, two=0.2), ["idle", "one", "two"]
    book = reserved(reservation("a", "one", since=NOW - 20), reservation("b", "two", since=NOW - 10))
    first = prioritize_nodes(question(names, pod=pod("p1")), steering=Steering(nodes, OWN, reservations=book), now=NOW).chosen
    assert first == Chosen("a", "p1")
    held = book.with_hold("a", pod_uid="p1", now=NOW)
    assert held is not None
    assert scored(names, Steering(nodes, OWN, reservations=held), pod("p2")) == {"idle": 0, "one": 0, "two": 10}
    assert scored(names, Steering(nodes, OWN, reservations=held), pod("p1"))["one"] == 10
    assert held.with_hold("a", pod_uid="p2", now=NOW) is None
    assert scored(names, Steering(nodes, OWN, reservations=held), pod("p2"), now=NOW + HOLD_S)["one"] == 10


def test_a_pod_that_came_uses_up_the_reservation_that_was_held_for_it() -> None:
    """Else that of the node it went to, else the oldest; one pod never uses two."""
    book = reserved(
        *(reservation(key, node, since=NOW - 30 + at) for at, (key, node) in enumerate([("a", "one"), ("b", "two"), ("c", "six")]))
    )
    held = book.with_hold("c", pod_uid="p", now=NOW)
    assert held is not None
    assert held.with_arrivals([arrival("p", "two")]).used == {"c": "p"}
    assert book.with_arrivals([arrival("p", "two"), arrival("p", "two")]).used == {"b": "p"}
    assert book.with_arrivals([arrival("p", "elsewhere")]).used == {"a": "p"}
    assert book.with_arrivals([arrival("p", "one", at=NOW - 31)]).used == {}
    assert book.with_arrivals([arrival("p", "one")]).choice(arrival("p", "one").pod, ["two"], now=NOW) is None


def test_what_is_used_and_held_outlives_the_next_reading_of_the_moves() -> None:
    """The controller writes its moves anew with each eviction."""
    book = reserved(reservation("a", "one"), reservation("b", "two")).with_arrivals([arrival("p", "one")])
    held = book.with_hold("b", pod_uid="q", now=NOW)
    assert held is not None
    again = held.with_planned([reservation("a", "one"), reservation("b", "two"), reservation("c", "six")], now=NOW)
    assert again.used == {"a": "p"}
    assert set(again.held) == {"b"}
    assert again.open(now=NOW) == 2


def test_a_clock_that_is_ahead_makes_no_reservation_last_longer() -> None:
    """It lasts from when it was first seen."""
    book = reserved(reservation("a", "one", since=NOW + 86400))
    again = book.with_planned([reservation("a", "one", since=NOW + 86400)], now=NOW + 299)
    assert (again.open(now=NOW + 299), again.open(now=NOW + 300)) == (1, 0)


def test_a_daemonset_pod_is_no_replacement() -> None:
    """Its node is given, and passes."""
    owner = {"kind": "DaemonSet", "name": "d", "uid": "rs-1", "controller": True}
    asking = {"metadata": {"name": "d-1", "namespace": "shop", "uid": "u", "ownerReferences": [owner]}}
    steering = Steering(loaded(planned=0.6), OWN, reservations=reserved(reservation("old", "planned")), may_refuse_all=True)
    assert kept(["planned"], steering, asking) == ["planned"]
    assert prioritize_nodes(question(["planned"], pod=asking), steering=steering, now=NOW).chosen is None


def test_what_is_unknown_reserves_nothing() -> None:
    """A node of unknown capacity, a signal without a number, a node that the view does not have."""
    nodes = view({"bare": own(cpu=0.1, memory=0.1)})
    room = reserved(reservation("a", "bare")).room(nodes, now=NOW)
    assert room is not None
    assert not np.any(room.shares)
    assert reserved(reservation("a", "gone")).room(nodes, now=NOW) is None
    nothing = Reservation("a", WEB, "rs-1", "shop", "planned", NOW)
    room = reserved(nothing).room(loaded(planned=0.1), now=NOW)
    assert room is not None
    assert not np.any(room.shares)


NODES = [f"n{number}" for number in range(6)]
LOADS = st.lists(st.floats(0, 1.5), min_size=6, max_size=6)
PLANNED = st.lists(
    st.builds(
        reservation,
        st.sampled_from("abcdefgh"),
        st.sampled_from([*NODES, "gone"]),
        cores=st.floats(0, 1e6) | st.just(math.nan),
        since=st.floats(NOW - 400, NOW + 400),
        controller=st.sampled_from(["rs-1", "rs-2"]),
    ),
    max_size=8,
    unique_by=lambda each: each.key,
)
ASKED = st.lists(st.sampled_from([*NODES, "strange"]), unique=True, min_size=1)
PODS = st.sampled_from([pod(), pod(controller="rs-2", name="web-77"), STRANGER, {"metadata": {"name": "bare"}}])


@given(LOADS, PLANNED, ASKED, PODS, st.sampled_from([DynamicJudge(), OWN]))
def test_no_pod_is_refused_everywhere_because_of_reservations(
    loads: list[float], planned: list[Reservation], asked: list[str], asking: dict[str, object], judge: Judge
) -> None:
    """Even where the filter may refuse all: what passes nowhere with them passes nowhere without them."""
    nodes, book = loaded(**dict(zip(NODES, loads, strict=True))), reserved(*planned)
    passed = kept(asked, Steering(nodes, judge, may_refuse_all=True, reservations=book), asking)
    assert passed or not kept(asked, Steering(nodes, judge, may_refuse_all=True), asking)


@given(LOADS, PLANNED, ASKED, PODS, st.sampled_from([DynamicJudge(), OWN]))
def test_a_reservation_raises_nothing_but_the_planned_node(
    loads: list[float], planned: list[Reservation], asked: list[str], asking: dict[str, object], judge: Judge
) -> None:
    """In range for every input; one node at most gets the most, and for strangers no node gets better."""
    nodes, book = loaded(**dict(zip(NODES, loads, strict=True))), reserved(*planned)
    answer = prioritize_nodes(question(asked, pod=asking), steering=Steering(nodes, judge, reservations=book), now=NOW)
    found = {each["Host"]: each["Score"] for each in json.loads(answer.body)}
    assert set(found) == set(asked)
    assert all(0 <= score <= 10 for score in found.values())
    if answer.chosen is not None:
        assert sorted(found.values()) == [0] * (len(asked) - 1) + [10]
    elif "strange" not in asked:  # it scores as the median of the others
        plain = scored(asked, Steering(nodes, judge), asking)
        assert all(found[name] <= plain[name] for name in asked)


@given(PLANNED, st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), st.sampled_from(NODES), st.sampled_from(["rs-1", "rs-2", "rs-3"]))))
def test_a_pod_uses_up_one_reservation_and_a_reservation_is_for_one_pod(
    planned: list[Reservation], came: list[tuple[str, str, str]]
) -> None:
    """In whatever order the news come, and however often."""
    book = reserved(*planned)
    for uid, node, controller in came:
        book = book.with_arrivals([arrival(uid, node, controller=controller)])
    assert len(set(book.used.values())) == len(book.used) <= min(len(planned), len({uid for uid, _, _ in came}))


@given(LOADS, PLANNED)
def test_series_and_numbers_that_are_unknown_stay_so(loads: list[float], planned: list[Reservation]) -> None:
    """Reserved room is added to what is known, and makes nothing known."""
    bare = with_capacity(view({name: crane(load, *[math.nan] * 5) for name, load in zip(NODES, loads, strict=True)}))
    rows, pod = bare.rows_of(NODES), PodAsk()
    found = replace(bare, room=reserved(*planned).room(bare, now=NOW))
    assert DynamicJudge().verdict(found, rows, pod, now=NOW).known.all()
    assert not OWN.verdict(found, rows, pod, now=NOW).known.any()
    assert (OWN.scores(found, rows, pod, now=NOW) == 5).all()
    load_alone = replace(bare, crane=replace(bare.crane, usage=np.full_like(bare.crane.usage, math.nan)))
    found = replace(load_alone, room=reserved(*planned).room(bare, now=NOW))
    assert not DynamicJudge().verdict(found, rows, pod, now=NOW).known.any()
