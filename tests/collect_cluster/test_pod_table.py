"""Columns that are kept from one read to the next are those that a fresh read gives, whatever happened to the pods in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import ClusterObjects, node_directory
from rebalancer.collect.pod_columns import rows_in_use
from rebalancer.collect.pod_table import PodTable
from rebalancer.kube.wire import NodeWire
from rebalancer.kube.wire_pods import PodWire
from tests.collect_cluster.objects import NOW, Json, container, decoded, node, owner, pod, same_state, samples

NODES = ("n1", "n2")

looks = st.fixed_dictionaries(
    {
        "on": st.sampled_from([None, "n1", "n2", "gone"]),
        "cpu": st.sampled_from(["100m", "2", "nonsense"]),
        "app": st.sampled_from(["web", "db"]),
        "owner": st.sampled_from([None, "rs-1", "rs-2"]),
        "claim": st.sampled_from([None, "data"]),
        "word": st.sampled_from([None, "training", "no such class"]),
        "phase": st.sampled_from([None, "Succeeded"]),
        "selector": st.sampled_from([None, {"disk": "ssd"}]),
        "ready": st.booleans(),
        "name": st.sampled_from(["a", "b", "c"]),
        "namespace": st.sampled_from(["default", "default-x"]),
    }
)


def wire(number: int, version: int, look: Mapping[str, Any]) -> Json:
    spec: Json = {"nodeSelector": look["selector"]} if look["selector"] else {}
    if look["claim"]:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": look["claim"]}}]
    annotations = {"rebalancer.dev/class": look["word"]} if look["word"] else {}
    made = pod(
        f"{look['name']}-{number}",  # two objects never have one name at a time
        namespace=look["namespace"],
        on=look["on"],
        containers=[container(cpu=look["cpu"])],
        owner=owner("ReplicaSet", look["owner"]) if look["owner"] else None,
        phase=look["phase"],
        ready=look["ready"],
        spec=spec,
        labels={"app": look["app"]},
        annotations=annotations,
    )
    return {**made, "metadata": {**made["metadata"], "uid": f"uid-{number}", "resourceVersion": str(version)}}


class Pods(RuleBasedStateMachine):
    """Pods come, change and go; one table has seen all of it, and a new one sees the result alone."""

    def __init__(self) -> None:
        super().__init__()
        self.table = PodTable()
        self.there: dict[int, Json] = {}
        self.clock = 0

    @rule(number=st.integers(0, 5), look=looks)
    def put(self, number: int, look: Mapping[str, Any]) -> None:
        self.clock += 1
        self.there[number] = wire(number, self.clock, look)

    @rule(number=st.integers(0, 5))
    def remove(self, number: int) -> None:
        self.there.pop(number, None)

    @invariant()
    def the_state_is_that_of_a_fresh_read(self) -> None:
        objects = ClusterObjects(
            cluster="uid", nodes=decoded(NodeWire, *(node(name) for name in NODES)), pods=decoded(PodWire, *self.there.values())
        )
        kept = replace(objects, columns=self.table.read(objects.pods))
        assert node_directory(kept) == node_directory(objects)
        same_state(assemble(kept, samples(), at=NOW), assemble(objects, samples(), at=NOW))


Pods.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestPods = Pods.TestCase


def test_a_pod_that_has_not_changed_is_not_read_again() -> None:
    """Its words are taken from the newest list all the same, so that the older one can go."""
    look = {
        "on": "n1", "cpu": "1", "app": "web", "owner": "rs-1", "claim": None, "word": None, "phase": None, "selector": None,
        "ready": True, "name": "a", "namespace": "default",
    }  # fmt: skip
    table = PodTable()
    table.read(decoded(PodWire, wire(1, 7, look)))
    again = decoded(PodWire, wire(1, 7, {**look, "cpu": "2"}))
    columns = table.read(again)
    assert columns.requests.matrices(np.array([0]), ("cpu", "memory", "pods")).request[0, 0] == 1.0
    assert columns.uids[0] is again[0].metadata.uid


def test_a_pod_without_a_version_is_always_read() -> None:
    """Nothing says that it is the same."""
    table = PodTable()
    first = table.read(decoded(PodWire, {**pod("x", on="n1"), "metadata": {"name": "x", "namespace": "default", "uid": "u"}}))
    second = table.read(decoded(PodWire, {**pod("x", on="n2"), "metadata": {"name": "x", "namespace": "default", "uid": "u"}}))
    assert [each.node_names[each.numbers[0][0]] for each in (first, second)] == ["n1", "n2"]


def test_shared_values_that_nobody_has_any_more_are_let_go() -> None:
    """A cluster whose pods always carry new labels does not fill the memory."""
    table = PodTable()
    for turn in range(6):
        wires = [{**pod(f"p{number}", on="n1", labels={"job": f"{turn}-{number}"})} for number in range(1_500)]
        for number, each in enumerate(wires):
            each["metadata"] = {**each["metadata"], "uid": f"{turn}-{number}", "resourceVersion": "1"}
        columns = table.read(decoded(PodWire, *wires))
        assert len(columns.uids) == 1_500
        assert len(columns.label_sets) <= 2 * 1_500 + 1_000 + 1_500


@given(st.lists(st.integers(-1, 6), max_size=30))
def test_rows_in_use_are_in_the_order_of_the_first_pods(numbers: list[int]) -> None:
    """Each number that some pod has is one row, and each row knows its first pod."""
    found = rows_in_use(np.array(numbers, dtype=np.int64), 7)
    firsts = list(dict.fromkeys(number for number in numbers if number >= 0))
    assert found.numbers.tolist() == firsts
    assert found.first.tolist() == [numbers.index(number) for number in firsts]
    assert found.rows.tolist() == [firsts.index(number) if number >= 0 else -1 for number in numbers]
