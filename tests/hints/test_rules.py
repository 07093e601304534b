"""Which pod is whose replacement, which nodes it is offered, and what the announcement says: rules, over everything that may come."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.runtime.hint_board import HintBoard
from rebalancer.runtime.leadership import Term
from rebalancer.runtime.memory import OpenMove
from rebalancer.state.history import PastEviction
from rebalancer.steer.hinting import (
    AwaitedMove,
    GatedPod,
    announcement,
    awaiting,
    node_order,
    owner_label,
)
from rebalancer.units import parse_time

CONTROLLERS = ("rs-1", "rs-2", "sts-1", "")
KINDS = {"rs-1": "ReplicaSet", "rs-2": "ReplicaSet", "sts-1": "StatefulSet", "": ""}
NODES = ("node-a", "node-b", "node-c")


@st.composite
def moves(draw: st.DrawFn) -> list[AwaitedMove]:
    count = draw(st.integers(0, 6))
    return [
        AwaitedMove(
            pod_uid=f"old-{number}",
            namespace=draw(st.sampled_from(("shop", "bank"))),
            pod=f"pod-{draw(st.integers(0, 3))}",
            controller_uid=draw(st.sampled_from(CONTROLLERS)),
            evicted_at=draw(st.floats(0, 100)),
            nodes=tuple(draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=4))),
        )
        for number in range(count)
    ]


@st.composite
def pods(draw: st.DrawFn) -> list[GatedPod]:
    count = draw(st.integers(0, 8))
    return [
        GatedPod(
            namespace=draw(st.sampled_from(("shop", "bank"))),
            name=f"pod-{draw(st.integers(0, 3))}",
            uid=f"new-{number}",
            controller_uid=(controller := draw(st.sampled_from(CONTROLLERS))),
            controller_kind=KINDS[controller],
            created_at=draw(st.floats(0, 120)),
        )
        for number in range(count)
    ]


def opened(move: AwaitedMove) -> OpenMove:
    eviction = PastEviction(
        at=move.evicted_at,
        pod_uid=move.pod_uid,
        namespace=move.namespace,
        pod=move.pod,
        workload=None,
        controller_uid=move.controller_uid,
        tenant=None,
        source="node-x",
        destination=move.nodes[0],
    )
    return OpenMove(eviction, move.nodes[1:], predicted_gain=0.0, source_before={}, predicted_source_after={})


def board_of(awaited: list[AwaitedMove], *, waiting: frozenset[str] | None = None) -> HintBoard:
    board, term = HintBoard(), Term(lambda term: "", reserve_s=0.0)
    board.begin(term, waiting)
    board.show([opened(move) for move in awaited], hot=())
    return board


@given(moves(), pods())
def test_one_move_is_used_by_one_pod(awaited: list[AwaitedMove], gated: list[GatedPod]) -> None:
    """However many pods come, and in whatever order; and each of its own workload, created after the eviction."""
    board = board_of(awaited)
    taken = [(pod, move) for pod in gated if (move := board.take(pod)) is not None]
    assert max(Counter(move.pod_uid for _, move in taken).values(), default=0) <= 1
    for pod, move in taken:
        assert pod.controller_uid == move.controller_uid != ""
        assert pod.namespace == move.namespace
        assert pod.created_at >= move.evicted_at - 2.0
        assert pod.controller_kind != "StatefulSet" or pod.name == move.pod


@given(moves(), pods())
def test_no_pod_goes_without_while_a_move_awaits_it(awaited: list[AwaitedMove], gated: list[GatedPod]) -> None:
    """What is refused a move fits none of those that are left."""
    board = board_of(awaited)
    left = list(awaited)
    for pod in gated:
        move = board.take(pod)
        if move is None:
            assert awaiting(pod, left) is None
        else:
            left.remove(next(each for each in left if each.pod_uid == move.pod_uid))
    assert {move.pod_uid for move in board.announced()} == {move.pod_uid for move in left}


@given(moves())
def test_a_new_leader_goes_on_where_the_announcement_of_the_old_one_stands(awaited: list[AwaitedMove]) -> None:
    """Moves that it does not await any more were hinted already, and are not hinted twice."""
    waiting = frozenset(move.pod_uid for number, move in enumerate(awaited) if number % 2)
    board = board_of(awaited, waiting=waiting)
    assert {move.pod_uid for move in board.announced()} == waiting


@given(moves(), st.integers(0, 4_000_000_000))
def test_the_announcement_names_each_controller_once_with_a_time_and_its_pods(awaited: list[AwaitedMove], until: int) -> None:
    """The time is for the admission policy, the pods are for whoever leads next."""
    data = announcement(awaited, until=float(until))
    named = [move for move in awaited if move.controller_uid]
    assert set(data) == {move.controller_uid for move in named}
    assert all(parse_time(each.until) == until for each in data.values())
    assert {pod for each in data.values() for pod in each.pods} == {move.pod_uid for move in named}


@given(moves(), st.sets(st.sampled_from(NODES)))
def test_hot_nodes_are_never_offered(awaited: list[AwaitedMove], hot: set[str]) -> None:
    """The rest in the order of the plan, each once."""
    for move in awaited:
        offered = node_order(move, hot)
        assert not set(offered) & hot
        assert set(offered) == set(move.nodes) - hot
        assert list(offered) == sorted(offered, key=move.nodes.index)


@given(
    st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True),
    st.from_regex(r"[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?", fullmatch=True),
)
def test_the_label_is_always_one_that_the_server_takes(namespace: str, lease: str) -> None:
    """At most 63 characters, and an alphanumeric one at each end."""
    label = owner_label(namespace=namespace, lease=lease)
    assert 0 < len(label) <= 63
    assert label[0].isalnum()
    assert label[-1].isalnum()
