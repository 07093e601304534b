"""No device over its memory, ever: whatever fails, in whichever order several binders act."""

from __future__ import annotations

import random
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.errors import KubernetesError
from rebalancer.runtime.gpushare.binder import BindEnd
from tests.gpushare.store import Crash, Replica, Store

NAMES = ["p0", "p1", "p2", "p3"]
ASKS = [60, 100, 50, 30, 20]
STEPS = (
    ["bind"] * 8
    + ["arrive"] * 3
    + ["hear", "hear", "lose", "relist", "sweep", "wait", "delete", "finish", "touch", "create", "restart", "purge"]
)
FAULTS = ["pass"] * 6 + ["act"] * 6 + ["late"] * 2 + ["refuse", "silent", "lost", "crash"]
DEPTH = 3


class Course:
    """A random course of events over a few replicas, one inside the other at every request."""

    def __init__(self, seed: int, *, replicas: int, nodes: int, devices: int) -> None:
        self.random = random.Random(seed)
        self.store = Store(nodes=tuple(f"n{i}" for i in range(nodes)), devices=devices)
        self.busy: list[int] = []
        self.replicas = [Replica(self.store, self.gate_of(i)) for i in range(replicas)]
        self.calm = False
        self.left = 60
        """Of faults and interruptions, so that a course ends."""

    def gate_of(self, index: int):  # type: ignore[no-untyped-def]
        def gate(kind: str) -> str:
            if self.calm or self.left <= 0:
                return "pass"
            self.left -= 1
            verdict = self.random.choice(FAULTS)
            if verdict == "act":
                if len(self.busy) < DEPTH:
                    self.step()
                return "pass"
            return "silent" if verdict == "late" and kind != "bind" else verdict

        return gate

    def step(self) -> None:
        what = self.random.choice(STEPS)
        name = self.random.choice(NAMES)
        free = [i for i in range(len(self.replicas)) if i not in self.busy]
        store = self.store
        if what == "create" and name not in store.pods:
            store.create(name, self.random.choice(ASKS))
        elif what == "arrive" and store.limbo:
            store.limbo.pop(self.random.randint(0, len(store.limbo) - 1))()
        elif what == "wait":
            store.now += 40
        elif what in ("delete", "finish", "touch") and name in store.pods:
            self.change(what, name)
        elif free:
            self.act(what, name, self.random.choice(free))

    def change(self, what: str, name: str) -> None:
        if what == "delete":
            self.store.delete(name)
        elif what == "touch":
            self.store.change(name)
        elif self.store.pods[name].node:
            self.store.change(name, phase="Succeeded")

    def act(self, what: str, name: str, index: int) -> None:
        replica = self.replicas[index]
        self.busy.append(index)
        try:
            if what == "bind":
                replica.bind(name, self.random.choice(self.store.nodes))
            elif what == "sweep":
                replica.binder.sweep()
            elif what == "purge":
                node = self.random.choice(self.store.nodes)
                known = replica.book.node(node)
                replica.book.take_node(node, None)
                with suppress(KubernetesError):
                    replica.binder.purge()
                replica.book.take_node(node, known)
            elif what == "relist":
                replica.relist()
            elif what == "restart":
                replica.start()
            elif what in ("hear", "lose"):
                replica.hear(self.random.randint(1, 3), lose=what == "lose")
        except Crash:
            replica.start()
        finally:
            self.busy.pop()

    def heal(self) -> None:
        """Nothing fails any more, everything arrives, and some time passes."""
        self.calm = True
        while self.store.limbo:
            self.store.limbo.pop()()
        self.store.now += 60
        for replica in self.replicas:
            replica.relist()
            replica.binder.sweep()
            replica.hear(1000)


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([2, 2, 3, 1]), st.sampled_from([1, 1, 2]), st.sampled_from([1, 1, 2]))
def test_no_device_is_filled_beyond_its_memory(seed: int, replicas: int, nodes: int, devices: int) -> None:
    """Property: the store checks it at every write; afterwards what fits is bound, and all replicas know the same."""
    course = Course(seed, replicas=replicas, nodes=nodes, devices=devices)
    for name in NAMES:
        course.store.create(name, course.random.choice(ASKS))
    for _ in range(course.random.randint(2, 25)):
        course.step()
    course.heal()
    store = course.store
    for node in store.nodes:
        free = max(store.each - store.used(node, device) for device in range(store.devices))
        if free > 0:
            store.create("fits", free)
            asked = course.random.randint(0, replicas - 1)
            result = course.replicas[asked].bind("fits", node)
            assert result.end is BindEnd.BOUND, result
            store.delete("fits")
        store.create("large", free + 1)
        assert course.replicas[-1].bind("large", node).end is BindEnd.NO_ROOM
        store.delete("large")
    truth = [[store.used(node, device) for device in range(store.devices)] for node in store.nodes]
    for replica in [*course.replicas, Replica(store)]:
        replica.hear(1000)
        ledgers = [replica.book.ledger(node) for node in store.nodes]
        assert [list(ledger.used) for ledger in ledgers if ledger] == truth
        assert all(ledger.somewhere == 0 for ledger in ledgers if ledger)
