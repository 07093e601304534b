"""Binders that act at the same time, answers that are lost, processes that end: each case by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from rebalancer.runtime.gpushare.binder import BindEnd
from rebalancer.steer.gpushare.register import parse_register
from tests.gpushare.store import Crash, Replica, Store


class Script:
    """Verdicts for the next requests of a kind; everything else passes."""

    def __init__(self, **verdicts: Sequence[str]) -> None:
        self.verdicts = {kind: list(each) for kind, each in verdicts.items()}

    def __call__(self, kind: str) -> str:
        waiting = self.verdicts.get(kind)
        return waiting.pop(0) if waiting else "pass"


def entries(store: Store, node: str = "n") -> list[str]:
    """The pods in the register."""
    found = parse_register(store.registers[node].data["binding"])
    assert found is not None
    return [entry.name for entry in found]


def test_in_the_common_case_two_requests_bind_a_pod() -> None:
    """The register, and the binding; the first pod of a node costs two reads more."""
    store = Store()
    replica = Replica(store)
    for name in ("a", "b"):
        store.create(name, 20)
        replica.hear(1)
    assert replica.bind("a").end is BindEnd.BOUND
    assert store.requests == Counter(read=2, write=1, bind=1)
    assert replica.bind("b").end is BindEnd.BOUND
    assert store.requests == Counter(read=2, write=2, bind=2)


def test_what_is_written_on_the_pod_is_what_was_chosen() -> None:
    """Device and amount, in the write that sets the node."""
    store = Store()
    store.create("a", 20)
    result = Replica(store).bind("a")
    assert (result.end, result.device) == (BindEnd.BOUND, 0)
    assert (store.pods["a"].node, store.pods["a"].device, store.pods["a"].amount) == ("n", "0", "20")


def test_two_replicas_see_each_other_though_no_watch_tells_them() -> None:
    """Each finds the other's write in its way, reads the node anew, and puts its pod beside."""
    store = Store(devices=1)
    first, second = Replica(store), Replica(store)
    for name, ask in (("a", 40), ("b", 40), ("c", 40), ("d", 20)):
        store.create(name, ask)
    assert [first.bind("a").end, second.bind("b").end] == [BindEnd.BOUND, BindEnd.BOUND]
    assert [first.bind("c").end, second.bind("c").end] == [BindEnd.NO_ROOM, BindEnd.NO_ROOM]
    assert first.bind("d").end is BindEnd.BOUND


def test_a_pod_that_has_left_makes_room_before_the_watch_tells() -> None:
    """Room is refused only after the node was read."""
    store = Store(devices=1)
    replica = Replica(store)
    store.create("a", 100)
    assert replica.bind("a").end is BindEnd.BOUND
    replica.hear(10)
    store.change("a", phase="Succeeded")
    store.create("b", 100)
    assert replica.bind("b").end is BindEnd.BOUND


def test_a_lost_answer_to_a_binding_is_found_out() -> None:
    """The pod tells."""
    store = Store()
    store.create("a", 20)
    assert Replica(store, Script(bind=["lost"])).bind("a").end is BindEnd.BOUND


@pytest.mark.parametrize("verdict", ["lost", "silent"])
def test_a_lost_answer_to_the_register_is_found_out(verdict: str) -> None:
    """It is read again, whether it was written or not."""
    store = Store()
    store.create("a", 20)
    assert Replica(store, Script(write=[verdict])).bind("a").end is BindEnd.BOUND
    assert entries(store) == ["a"]


def test_a_binding_that_may_still_come_keeps_its_room() -> None:
    """For everybody, until it has come."""
    store = Store(devices=1)
    first, second = Replica(store, Script(bind=["late"])), Replica(store)
    store.create("a", 60)
    store.create("b", 60)
    result = first.bind("a")
    assert (result.end, result.error) == (BindEnd.OPEN, "pod a/a is not bound to node n: no answer")
    assert [first.bind("b").end, second.bind("b").end] == [BindEnd.NO_ROOM, BindEnd.NO_ROOM]
    store.limbo.pop()()
    assert store.pods["a"].node == "n"
    assert second.bind("b").end is BindEnd.NO_ROOM


def test_a_binding_that_came_to_nothing_leaves_its_room_as_soon_as_the_pod_changes() -> None:
    """kube-scheduler notes on the pod that it was not bound; from then on it cannot be, by that request."""
    store = Store(devices=1)
    first, second = Replica(store, Script(bind=["late"])), Replica(store)
    store.create("a", 60)
    store.create("b", 60)
    assert first.bind("a").end is BindEnd.OPEN
    store.change("a")
    assert second.bind("b").end is BindEnd.BOUND
    store.limbo.pop()()
    assert store.pods["a"].node == ""


@pytest.mark.parametrize("kind", ["write", "bind"])
def test_what_a_dead_process_has_begun_is_made_void_after_a_while(kind: str) -> None:
    """By moving its pod on, so that nothing that is still on its way can take effect. A binding that was done counts for ever."""
    store = Store(devices=1)
    first, second = Replica(store, Script(**{kind: ["crash"]})), Replica(store)
    store.create("a", 60)
    store.create("b", 60)
    with pytest.raises(Crash):
        first.bind("a")
    assert second.bind("b").end is BindEnd.NO_ROOM
    store.now += 31
    assert second.bind("b").end is (BindEnd.BOUND if kind == "write" else BindEnd.NO_ROOM)
    assert store.requests["overtake"] == (kind == "write")


def test_a_restart_knows_what_the_process_before_it_had_begun() -> None:
    """From the register and the annotations, nothing else."""
    store = Store(devices=1)
    replica = Replica(store, Script(bind=["late"]))
    for name in ("a", "b", "c"):
        store.create(name, 40)
    assert replica.bind("a").end is BindEnd.OPEN
    replica.start()
    assert replica.bind("b").end is BindEnd.BOUND
    assert replica.bind("c").end is BindEnd.NO_ROOM
    store.limbo.pop()()


def test_a_binding_that_was_refused_is_struck_out() -> None:
    """Another replica need not wait."""
    store = Store(devices=1)
    first, second = Replica(store, Script(bind=["refuse"])), Replica(store)
    store.create("a", 60)
    store.create("b", 60)
    assert first.bind("a").end is BindEnd.FAILED
    assert entries(store) == []
    assert second.bind("b").end is BindEnd.BOUND


def test_a_refusal_does_not_strike_out_what_an_earlier_request_may_still_do() -> None:
    """The first request is on its way, the second one was refused: the room is kept."""
    store = Store(devices=1)
    first, second = Replica(store, Script(bind=["late", "refuse"])), Replica(store)
    store.create("a", 60)
    store.create("b", 60)
    assert [first.bind("a").end, first.bind("a").end] == [BindEnd.OPEN, BindEnd.FAILED]
    assert second.bind("b").end is BindEnd.NO_ROOM
    store.limbo.pop()()
    store.check()
    assert store.pods["a"].node == "n"


@pytest.mark.parametrize("other", [False, True])
def test_a_binding_that_is_tried_again_keeps_its_device(other: bool) -> None:
    """Best fit would take another one by now, but the first request may still come; whoever tries again knows by the register."""
    store = Store(devices=2)
    replica = Replica(store)
    for name, ask in (("q", 50), ("r", 60)):
        store.create(name, ask)
        assert replica.bind(name).end is BindEnd.BOUND
    assert [store.pods["q"].device, store.pods["r"].device] == ["0", "1"]
    store.create("p", 50)
    first = Replica(store, Script(bind=["late"]))
    assert first.bind("p").end is BindEnd.OPEN
    store.change("q", phase="Succeeded")
    store.change("r", phase="Succeeded")
    store.create("t", 50)
    store.change("t", node="n", device="1", amount="50")
    store.create("s", 60)
    again = Replica(store) if other else first
    again.gate = Script(bind=["silent"])
    assert again.bind("p").end is BindEnd.OPEN
    assert Replica(store).bind("s").end is BindEnd.NO_ROOM
    store.limbo.pop()()
    assert store.pods["p"].device == "0"


def test_a_repeated_binding_is_not_in_the_way_of_itself() -> None:
    """Its own entry is no reason to refuse it."""
    store = Store(devices=1)
    replica = Replica(store, Script(bind=["silent"]))
    store.create("a", 100)
    assert [replica.bind("a").end, replica.bind("a").end] == [BindEnd.OPEN, BindEnd.BOUND]


def test_a_stale_picture_of_the_pod_costs_one_more_try() -> None:
    """The API server refuses the version that is known; the pod is read, and bound."""
    store = Store()
    replica = Replica(store)
    store.create("a", 20)
    replica.hear(1)
    store.change("a")
    assert replica.bind("a").end is BindEnd.BOUND
    assert store.requests["bind"] == 2


def test_a_request_that_is_repeated_after_it_was_done_succeeds() -> None:
    """kube-scheduler has lost the answer; the pod is where it wants it."""
    store = Store()
    store.create("a", 20)
    replica = Replica(store)
    assert [replica.bind("a").end for _ in range(2)] == [BindEnd.BOUND] * 2
    assert store.requests["bind"] == 1


def test_pods_that_cannot_be_bound_are_named() -> None:
    """Gone, another one by now, elsewhere, leaving."""
    store = Store(nodes=("n", "m"))
    replica = Replica(store)
    assert replica.bind("a").error == "pod a/a is not bound to node n: it is gone"
    store.create("a", 20)
    assert replica.bind("a", uid="other").error == "pod a/a is not bound to node n: it is gone"
    assert replica.bind("a", "m").end is BindEnd.BOUND
    assert replica.bind("a").error == "pod a/a is not bound to node n: it is bound to node m already"
    store.create("b", 20)
    store.change("b", leaving=True)
    assert replica.bind("b").error == "pod a/b is not bound to node n: it is being deleted"


def test_requests_that_never_fit_are_named() -> None:
    """Larger than a device; a node that shares none."""
    store = Store(nodes=("n",))
    replica = Replica(store)
    store.create("a", 101)
    result = replica.bind("a")
    assert (result.end, result.error) == (BindEnd.NO_ROOM, "pod a/a is not bound to node n: Insufficient GPU Memory in one device")
    result = replica.bind("a", "cpu")
    assert (result.end, result.error) == (
        BindEnd.IMPOSSIBLE,
        "pod a/a is not bound to node cpu: The node cpu is not for GPU share, need skip",
    )


def test_a_register_that_was_changed_by_hand_binds_nothing() -> None:
    """What it held is not known, and nothing is overwritten."""
    store = Store()
    store.create("a", 20)
    store.write("n", {"node": "n", "binding": "oops"}, None)
    result = Replica(store).bind("a")
    assert result.end is BindEnd.FAILED
    assert "ConfigMap ns/register-n, which keeps bindings apart, has been changed by hand: delete it" in result.error
    assert store.registers["n"].data["binding"] == "oops"


def test_a_binding_that_nobody_hears_of_is_asked_about() -> None:
    """The news was lost; the sweep finds the pod bound, and what it holds is counted once."""
    store = Store(devices=1)
    replica = Replica(store)
    store.create("a", 60)
    assert replica.bind("a").end is BindEnd.BOUND
    replica.hear(10, lose=True)
    assert len(replica.book.pending("n")) == 1
    store.now += 6
    replica.binder.sweep()
    assert replica.book.pending("n") == ()
    ledger = replica.book.ledger("n")
    assert ledger is not None
    assert ledger.used == (60,)


def test_registers_of_nodes_that_are_gone_are_deleted() -> None:
    """But not while a binding may still come."""
    store = Store(nodes=("n", "m"), devices=1)
    replica, late = Replica(store), Replica(store, Script(bind=["late"]))
    store.create("a", 60)
    store.create("b", 60)
    assert replica.bind("a", "n").end is BindEnd.BOUND
    assert late.bind("b", "m").end is BindEnd.OPEN
    assert replica.binder.purge() == 0
    for node in store.nodes:
        replica.book.take_node(node, None)
    assert replica.binder.purge() == 1
    assert list(store.registers) == ["m"]
    store.now += 31
    assert replica.binder.purge() == 1


def test_a_register_that_was_deleted_is_made_anew() -> None:
    """By whoever still knows it."""
    store = Store(devices=1)
    replica = Replica(store)
    store.create("a", 60)
    store.create("b", 60)
    assert replica.bind("a").end is BindEnd.BOUND
    del store.registers["n"]
    assert replica.bind("b").end is BindEnd.NO_ROOM
    store.create("c", 40)
    assert replica.bind("c").end is BindEnd.BOUND
    assert entries(store) == ["c"]
