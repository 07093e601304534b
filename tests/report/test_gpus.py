"""The view of GPUs: numbers of devices and of the pods on them, what is unknown, what is estimated, and what was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalancer.errors import UsageError
from rebalancer.plan.gpu_report import gpu_report
from rebalancer.policy.gpu import Gpu
from rebalancer.report.gpu_facts import node_gpu_facts, pod_gpu_facts
from rebalancer.report.gpus import Chosen, DeviceReport, GpusReport, gpus_report
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gpu import Scheme
from tests.support.builder import cluster, node, pod
from tests.support.gpu_use import measured, taken, used
from tests.support.gpus import gpu, memory_of, part, replica, whole

GIB = 2.0**30


def world() -> ClusterState:
    """One shared device with a pod that takes too much, one held whole, one cut in replicas; a pod on nobody knows which."""
    state = cluster(
        nodes=[
            node("big", gpus=[gpu("80Gi", model="H100"), gpu("80Gi", model="H100")]),
            node("cut", gpus=[gpu("24Gi", model="L4", scheme=Scheme.TIME_SLICING, replicas=4)]),
            node("shared", gpus=[gpu("24Gi", model="L4", scheme=Scheme.GPUSHARE, handed_out="24Gi")]),
            node("vague", gpus=[gpu("16Gi"), gpu("16Gi")]),
            node("plain"),
        ],
        pods=[
            pod("train", on="big", gpu=whole(), holds={0: 1.0}),
            pod("slice", on="cut", gpu=replica(4), holds={0: part(compute=0.25)}),
            pod("greedy", on="shared", gpu=memory_of("2Gi"), holds={0: part(memory="2Gi")}),
            pod("modest", on="shared", gpu=memory_of("8Gi"), holds={0: part(memory="8Gi")}),
            pod("somewhere", on="vague", gpu=whole()),
            pod("web", on="plain"),
        ],
    )
    devices = {
        ("big", 0): used(busy=0.9, memory="60Gi", total="80Gi"),
        ("big", 1): used(busy=0.0, memory="1Gi", total="80Gi"),
        ("cut", 0): used(busy=0.4, memory="3Gi", total="24Gi", doubt="its utilisation says 40 % and its engine 0 %"),
        ("shared", 0): used(busy=0.5, memory="20Gi", total="24Gi", ailment="its last XID error is 79"),
    }
    pods = {
        "train": taken(busy=0.9, memory="60Gi"),
        "greedy": taken(busy=0.3, memory="11Gi"),
        "modest": taken(busy=0.2, memory="9Gi", estimated=True),
    }
    made = measured(state, devices, pods)
    names = {made.pods.names[row]: place for place, row in enumerate(made.gpus.pod.tolist())}
    addresses = [""] * len(names)
    addresses[names["greedy"]] = "10.1.0.9"
    return replace(made, gpus=replace(made.gpus, addresses=tuple(addresses)))


def report(**chosen: str) -> GpusReport:
    state = world()
    return gpus_report(state=state, holders=gpu_report(state, Gpu()), chosen=Chosen(**chosen))


def device(node: str, place: int = 0) -> DeviceReport:
    return [one for one in report().devices if one.node == node][place]


def test_a_device_says_what_is_used_and_what_was_given_away_of_its_memory() -> None:
    """Three different numbers."""
    shared = device("shared")
    assert (shared.memory_used_bytes, shared.memory_allocated_bytes, shared.memory_bytes) == (20 * GIB, 10 * GIB, 24 * GIB)


def test_what_is_given_away_whole_is_all_of_it_and_a_free_device_gives_nothing() -> None:
    """80 GiB and 0."""
    assert [device("big", place).memory_allocated_bytes for place in (0, 1)] == [80 * GIB, 0]


def test_memory_that_is_not_divided_has_no_number() -> None:
    """Replicas of a device limit nothing: null, not 0."""
    assert device("cut").memory_allocated_bytes is None
    assert device("cut").pods[0].compute == 0.25


def test_g2_where_a_pod_is_on_some_device_none_of_them_is_called_free() -> None:
    """Nothing is known of what is given away on that node, and the pod is named."""
    assert [one.memory_allocated_bytes for one in report().devices if one.node == "vague"] == [None, None]
    assert [(pod.name, pod.node) for pod in report().unplaced] == [("somewhere", "vague")]


def test_what_was_not_measured_is_null_and_said_so() -> None:
    """No sample: unmeasured, and a question mark in the table."""
    vague = device("vague")
    assert (vague.busy, vague.memory_used_bytes, vague.condition) == (None, None, "unmeasured")
    line = next(line for line in render(report(node="vague"), Format.TABLE, Page()).splitlines() if line.startswith("vague, 0"))
    assert line.split()[3:7] == ["plain", "?", "?", "?"]


def test_doubts_and_ailments_stand_beside_the_device() -> None:
    """As a word for programs and as a sentence for people."""
    assert (device("cut").condition, device("shared").condition) == ("doubted", "ailing")
    text = render(report(), Format.TABLE, Page())
    assert "doubted: its utilisation says 40 % and its engine 0 %" in text
    assert "ailing: its last XID error is 79" in text


def test_an_estimated_share_is_marked() -> None:
    """In the document, in the table, and with a sentence that says what the mark means."""
    pods = {pod.name: pod.estimated for pod in device("shared").pods}
    assert pods == {"greedy": False, "modest": True}
    text = render(report(node="shared"), Format.TABLE, Page())
    assert "~20 %" in text
    assert "not measured of the pod" in text


def test_g14_a_pod_that_uses_more_than_it_asked_for_is_told_so_in_its_place() -> None:
    """2 GiB asked, 11 used."""
    greedy = next(pod for pod in device("shared").pods if pod.name == "greedy")
    assert "asked for 2.0 GiB of the device and uses 11.0 GiB" in greedy.findings[0]


@pytest.mark.parametrize(
    ("chosen", "nodes"),
    [
        ({}, ["big", "big", "cut", "shared", "vague", "vague"]),
        ({"node": "big"}, ["big", "big"]),
        ({"pod": "train"}, ["big"]),
        ({"pod": "default/slice", "node": "cut"}, ["cut"]),
        ({"address": "10.1.0.9"}, ["shared"]),
        ({"pod": "somewhere"}, []),
    ],
)
def test_one_can_ask_for_the_devices_of_a_node_a_pod_and_an_address(chosen: dict[str, str], nodes: list[str]) -> None:
    """All that is given has to hold; with the pod come all who share its device."""
    assert [one.node for one in report(**chosen).devices] == nodes


def test_all_who_share_a_device_are_shown_with_the_pod_that_was_asked_for() -> None:
    """Its neighbours are why one asks."""
    assert [pod.name for pod in report(address="10.1.0.9").devices[0].pods] == ["greedy", "modest"]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"node": "plain"}, "node plain has no GPU"),
        ({"node": "bog"}, "there is no node bog"),
        ({"pod": "web"}, "pod default/web asks for no GPU"),
        ({"pod": "greeedy"}, "there is no pod greeedy"),
        ({"address": "10.9.9.9"}, "no pod with GPUs has the address 10.9.9.9"),
    ],
)
def test_asking_for_what_has_no_gpu_is_a_mistake_with_a_sentence(chosen: dict[str, str], words: str) -> None:
    """It is not an empty table."""
    with pytest.raises(UsageError, match=words):
        report(**chosen)


def test_a_state_without_addresses_says_that_it_has_none() -> None:
    """An anonymous snapshot cannot be asked by address."""
    state = world()
    bare = replace(state, gpus=replace(state.gpus, addresses=()))
    with pytest.raises(UsageError, match="holds no addresses"):
        gpus_report(state=bare, holders=None, chosen=Chosen(address="10.1.0.9"))


def test_a_cluster_without_gpus_has_an_empty_view() -> None:
    """And a sentence in it."""
    state = cluster(nodes=[node("n1")], pods=[pod("p", on="n1")])
    empty = gpus_report(state=state, holders=None)
    assert empty.devices == ()
    assert "No node of this cluster tells of a GPU" in render(empty, Format.TABLE, Page())


def test_csv_has_a_row_a_pod_and_one_for_a_device_without() -> None:
    """Unknown cells are empty."""
    lines = render(report(), Format.CSV, Page()).splitlines()
    assert len(lines) == 1 + 4 + 3
    assert [line.split(",")[11:13] for line in lines if line.startswith("big,1")] == [["", ""]]


def test_explaining_a_node_tells_its_devices() -> None:
    """Model, scheme, use, and who is on it; and who is nobody knows where."""
    state = world()
    (fact,) = node_gpu_facts(state, state.node_index["shared"])
    assert (
        "L4, scheme gpushare; ailing: its last XID error is 79; 50 % busy, of its memory 20.0 GiB used and 10.0 GiB given" in fact.sentence
    )
    assert "default/modest (about 20 %, 9.0 GiB)" in fact.sentence
    assert "nobody says on which of them default/somewhere is" in node_gpu_facts(state, state.node_index["vague"])[-1].sentence
    assert node_gpu_facts(state, state.node_index["plain"]) == []


def test_explaining_a_pod_tells_its_part_of_the_device() -> None:
    """What it was given and what it takes, and with whom."""
    state = world()
    rows = {name: row for row, name in enumerate(state.pods.names)}
    (fact,) = pod_gpu_facts(state, rows["greedy"])
    assert "the pod was given 2.0 GiB of its memory (allocated); it keeps it 30 % busy and uses 11.0 GiB" in fact.sentence
    assert "with 1 other pod" in fact.sentence
    assert pod_gpu_facts(state, rows["web"]) == []
    assert "nobody says which" in pod_gpu_facts(state, rows["somewhere"])[0].sentence
