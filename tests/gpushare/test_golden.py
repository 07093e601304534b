"""The golden cases of the gpushare extender, to the byte."""

from __future__ import annotations

import json

import pytest

from rebalancer.steer.gpushare.allocations import bind_annotations
from rebalancer.steer.gpushare.binding import BindArgs, bind_answer, read_bind_args
from rebalancer.steer.gpushare.choice import choose_device
from rebalancer.steer.gpushare.devices import Devices, devices_of
from rebalancer.steer.gpushare.filtering import Unreadable, filter_nodes
from rebalancer.steer.gpushare.inspecting import inspect
from tests.gpushare.kit import ASK, EACH, NOW, filter_question, gpu_pod, held, ledger, lost

N1 = ledger("n1", held("a", 0, EACH), held("b", 1, 12207))
N2 = ledger("n2", held("a", 0, 12207), held("b", 1, 12207))
N3 = ledger("n3", held("a", 0, ASK), held("b", 1, EACH))
MOST_FREE = {each.node: each.most_free for each in (N1, N2, N3)}
FOUR = ledger("n", held("a", 0, 4069), held("b", 1, ASK), held("c", 2, 12207), devices=4)


def test_a_node_has_the_memory_of_its_devices_together() -> None:
    """2 devices of 16276 MiB are 32552."""
    devices = devices_of({"aliyun.com/gpu-mem": "32552", "aliyun.com/gpu-count": "2"})
    assert devices == Devices(count=2, memory=32552)
    assert devices.each == 16276


def test_filter_passes_the_node_whose_one_device_has_room() -> None:
    """N1 has 4069 in all, N2 has 4069 + 4069 on two devices, N3 has 8138 on GPU0."""
    answer = filter_nodes(filter_question(["n1", "n2", "n3", "cpu"], gpu_pod("p", ASK)), most_free=MOST_FREE)
    assert answer.body == (
        b'{"Nodes":null,"NodeNames":["n3"],"FailedNodes":{"n1":"Insufficient GPU Memory in one device",'
        b'"n2":"Insufficient GPU Memory in one device","cpu":"The node cpu is not for GPU share, need skip"},'
        b'"FailedAndUnresolvableNodes":{},"Error":""}'
    )
    assert (answer.nodes, answer.refused) == (4, 3)


def test_filter_gives_whole_nodes_back_as_they_came() -> None:
    """Without nodeCacheCapable."""
    answer = json.loads(filter_nodes(filter_question(["n2", "n3"], gpu_pod("p", ASK), whole=True), most_free=MOST_FREE).body)
    assert answer["NodeNames"] is None
    assert answer["Nodes"]["items"] == [{"metadata": {"name": "n3", "labels": {"kept": "as is"}}}]


def test_bind_takes_the_device_that_is_filled_best() -> None:
    """Free 12207, 8138, 4069, 16276; asked 8138: GPU1."""
    assert [FOUR.free(device) for device in range(4)] == [12207, 8138, 4069, 16276]
    assert choose_device(FOUR, ASK) == 1


def test_of_two_equal_devices_the_first_is_taken() -> None:
    """The lowest number on a tie."""
    assert choose_device(ledger("n", held("a", 0, 100), held("b", 1, 200), held("c", 2, 200)), 50) is not None
    assert choose_device(ledger("n", held("a", 0, 100), held("b", 1, 200), held("c", 2, 200), devices=3), 50) == 1


def test_what_is_written_at_a_binding() -> None:
    """Five annotations, all decimal strings; the time in nanoseconds."""
    assert bind_annotations(device=1, of_pod=ASK, of_device=EACH, at=NOW) == {
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_DEV": "16276",
        "ALIYUN_COM_GPU_MEM_POD": "8138",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767323045000000000",
    }


def test_inspect_to_the_byte() -> None:
    """One pod on the first of two devices."""
    assert inspect([ledger("n1", held("p", 0, ASK))]) == (
        b'{"nodes":[{"name":"n1","totalGPU":32552,"usedGPU":8138,'
        b'"devs":[{"id":0,"totalGPU":16276,"usedGPU":8138,"pods":[{"name":"p","namespace":"default","usedGPU":8138}]},'
        b'{"id":1,"totalGPU":16276,"usedGPU":0,"pods":[]}]}]}'
    )
    assert inspect([]) == b'{"nodes":[]}'


def test_inspect_names_what_it_cannot_place() -> None:
    """The memory is in the figure of the node, on no device, and the error says where it counts."""
    answer = json.loads(inspect([ledger("n1", held("p", 0, ASK), lost("q", 100))], also=("first",)))
    assert answer["nodes"][0]["usedGPU"] == ASK + 100
    assert [device["usedGPU"] for device in answer["nodes"][0]["devs"]] == [ASK, 0]
    assert answer["error"] == "first; pod default/q has no annotation ALIYUN_COM_GPU_MEM_IDX; its 100 count on every device of n1"


def test_bind_answers() -> None:
    """An error has status 500 and a sentence."""
    assert bind_answer() == (200, b'{"Error":""}')
    assert bind_answer("no room") == (500, b'{"Error":"no room"}')


def test_bind_reads_what_kube_scheduler_sends() -> None:
    """Four names."""
    body = b'{"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n1"}'
    assert read_bind_args(body) == BindArgs(namespace="ns", name="p", uid="u", node="n1")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "of 0 bytes cannot be read"),
        (b"not json", "cannot be read"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"PodName":7}', "PodName"),
        (b'{"PodName":"p","PodNamespace":"ns","PodUID":"u"}', "the request has no Node"),
        (b"[" * 100_000, "cannot be read"),
    ],
)
def test_a_bind_request_that_makes_no_sense_is_named(body: bytes, words: str) -> None:
    """In one sentence."""
    with pytest.raises(Unreadable, match=words):
        read_bind_args(body)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"{}", b"null", b'{"Pod":{}}', b'{"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":[{}]}}', b"[" * 100_000],
)
def test_a_filter_request_that_makes_no_sense_gets_a_sentence(body: bytes) -> None:
    """Status 200 by the protocol, with nothing but the error."""
    answer = json.loads(filter_nodes(body, most_free=MOST_FREE).body)
    assert answer["Error"].startswith("rebalancer gpushare, filter: the request ")
    assert answer["NodeNames"] is None


def test_before_the_cluster_is_known_every_node_passes() -> None:
    """The verb bind decides."""
    assert json.loads(filter_nodes(filter_question(["a", "b"], gpu_pod("p", ASK)), most_free=None).body)["NodeNames"] == ["a", "b"]


def test_a_pod_that_asks_for_nothing_goes_anywhere() -> None:
    """Its limit is 0, so no device is needed."""
    assert json.loads(filter_nodes(filter_question(["n1", "cpu"], gpu_pod("p", 0)), most_free=MOST_FREE).body)["FailedNodes"] == {}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (gpu_pod("p", 10, 20), "the pod asks for aliyun.com/gpu-mem in 2 containers, of which the device plugin can serve one"),
        (gpu_pod("p", early=10), "the pod asks for aliyun.com/gpu-mem in an init container, which the device plugin cannot serve"),
    ],
)
def test_what_no_device_plugin_can_serve_is_refused_for_good(pod: dict[str, object], words: str) -> None:
    """No preemption would help, and the event of the pod says why."""
    answer = json.loads(filter_nodes(filter_question(["n3"], pod), most_free=MOST_FREE).body)
    assert answer["NodeNames"] == []
    assert answer["FailedAndUnresolvableNodes"]["n3"].startswith(words)
    assert answer["FailedNodes"] == {}


def test_a_pod_that_is_asked_about_again_does_not_stand_in_its_own_way() -> None:
    """What is being bound for it already is its own."""
    body = filter_question(["n3"], {**gpu_pod("p", ASK), "metadata": {"name": "p", "uid": "u"}})
    assert json.loads(filter_nodes(body, most_free={"n3": 0}).body)["NodeNames"] == []
    assert json.loads(filter_nodes(body, most_free={"n3": 0}, own={"u": {"n3": ASK}}).body)["NodeNames"] == ["n3"]
