"""kube-scheduler's extender verbs, from bytes to bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.steer.dynamic import HotReading
from rebalancer.steer.extender import Steering, filter_nodes, prioritize_nodes
from rebalancer.steer.judging import DynamicJudge, Judge, OwnJudge
from rebalancer.steer.node_view import Bindings, side_by_side
from rebalancer.steer.own_score import Marks
from tests.steer.kit import NOW, REAL_NODE, crane, own, question, view

OWN = OwnJudge(Marks(target=np.full(4, 0.5), high=np.full(4, 0.7)))
NODES = view(
    {
        "idle": {**crane(*[0.0] * 6), **own(cpu=0.0, memory=0.0)},
        "hot": {**crane(*REAL_NODE), **own(cpu=0.95, memory=0.2, gpu=0.1)},
        "silent": {},
        "stale": {**crane(*REAL_NODE, at=NOW - 90000), **own(cpu=0.95, memory=0.95, expires_at=NOW)},
    }
)
ALL = ["idle", "hot", "silent", "stale", "stranger"]
JUDGES = [pytest.param(DynamicJudge(), id="dynamic"), pytest.param(OWN, id="own")]


def filtered(names: list[str], steering: Steering, **more: object) -> dict[str, object]:
    answer = filter_nodes(question(names, **more), steering=steering, now=NOW)  # type: ignore[arg-type]
    assert answer.status == 200
    return json.loads(answer.body)  # type: ignore[no-any-return]


def scored(names: list[str], steering: Steering, **more: object) -> dict[str, int]:
    answer = prioritize_nodes(question(names, **more), steering=steering, now=NOW)  # type: ignore[arg-type]
    assert answer.status == 200
    return {each["Host"]: each["Score"] for each in json.loads(answer.body)}


def test_filter_by_names_answers_in_names_with_the_words_of_the_original() -> None:
    """nodeCacheCapable; unknown, stale and strange nodes pass."""
    assert filtered(ALL, Steering(NODES, DynamicJudge())) == {
        "Nodes": None,
        "NodeNames": ["idle", "silent", "stale", "stranger"],
        "FailedNodes": {"hot": "Load[cpu_usage_max_avg_1h] of node[hot] is too high"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_filter_by_objects_gives_them_back_as_they_came() -> None:
    """Without nodeCacheCapable."""
    answer = filtered(["idle", "hot"], Steering(NODES, OWN), whole=True)
    assert answer["NodeNames"] is None
    assert answer["Nodes"] == {"items": [{"metadata": {"name": "idle", "labels": {"kept": "as is"}}}], "metadata": {}}
    assert answer["FailedNodes"] == {"hot": "cpu load 95 % of node hot is over 70 %"}


@pytest.mark.parametrize(
    "node",
    [
        b'{"metadata":{"name":"hot","uid":"x"},"spec":{}}',
        b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"hot"}}',
        b'{"spec":{"metadata":{"name":"idle"}},"metadata":{"uid":"x","name":"hot"}}',
        b' { "metadata" : { "name" : "hot" } } ',
        b'{"metadata":{"name":"h\\u006ft"}}',
    ],
)
def test_the_name_of_a_whole_node_is_found_wherever_it_stands(node: bytes) -> None:
    """At the beginning, as Go writes it, or elsewhere."""
    body = b'{"Pod":{},"Nodes":{"items":[' + node + b',{"metadata":{"name":"idle"}}]}}'
    answer = filter_nodes(body, steering=Steering(NODES, OWN), now=NOW)
    assert list(json.loads(answer.body)["FailedNodes"]) == ["hot"]


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("whole", [False, True])
def test_daemonset_pods_are_exempt_from_the_filter(judge: Judge, whole: bool) -> None:
    """Their node is given."""
    pod = {"metadata": {"name": "p", "ownerReferences": [{"kind": "DaemonSet", "name": "d"}]}}
    assert filtered(["hot"], Steering(NODES, judge, may_refuse_all=True), pod=pod, whole=whole)["FailedNodes"] == {}


@pytest.mark.parametrize("judge", JUDGES)
def test_no_pod_is_kept_from_every_node_unless_so_wished(judge: Judge) -> None:
    """If all are hot, the scores say which is the least so."""
    assert filtered(["hot"], Steering(NODES, judge))["NodeNames"] == ["hot"]
    assert filter_nodes(question(["hot"]), steering=Steering(NODES, judge), now=NOW).spared
    assert filtered(["hot"], Steering(NODES, judge, may_refuse_all=True))["NodeNames"] == []


@pytest.mark.parametrize(
    "steering",
    [Steering(None, DynamicJudge()), Steering(NODES, None), Steering(view({}), DynamicJudge()), Steering(NODES, OWN, oldest_view_s=-1)],
    ids=["no view", "no judge", "empty view", "old view"],
)
def test_who_knows_nothing_abstains(steering: Steering) -> None:
    """Every node is returned, for none would mean that none fits; all score alike."""
    assert filtered(ALL, steering)["NodeNames"] == ALL
    assert len(set(scored(ALL, steering).values())) == 1
    assert list(scored(ALL, steering)) == ALL


def test_prioritize_scores_every_node_that_was_sent() -> None:
    """A node that is left out would get 0."""
    assert scored(ALL, Steering(NODES, OWN)) == {"idle": 10, "hot": 0, "silent": 5, "stale": 5, "stranger": 5}
    assert scored(ALL, Steering(NODES, DynamicJudge())) == {"idle": 10, "hot": 2, "silent": 0, "stale": 0, "stranger": 0}
    assert scored(["idle", "hot"], Steering(NODES, OWN), whole=True) == {"idle": 10, "hot": 0}


def test_a_pod_that_asks_for_a_gpu_is_judged_by_gpus() -> None:
    """On a node that says nothing of its GPUs it is neutral."""
    pod = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}}]}}
    nodes = view({"busy": own(cpu=0, memory=0, gpu=0.9, gpu_memory=0), "free": own(cpu=0, memory=0, gpu=0, gpu_memory=0)})
    assert scored(["busy", "free"], Steering(nodes, OWN)) == {"busy": 10, "free": 10}
    assert scored(["busy", "free"], Steering(nodes, OWN), pod=pod) == {"busy": 0, "free": 10}


def test_a_quantity_that_cannot_be_read_stops_nobody() -> None:
    """The node is judged without it."""
    pod = {"spec": {"containers": [{"resources": {"requests": {"cpu": "many"}}}]}}
    assert scored(["idle"], Steering(NODES, OWN), pod=pod) == {"idle": 10}


MALFORMED = [
    (b"", "cannot be read"),
    (b"{", "cannot be read"),
    (b"[]", "cannot be read"),
    (b"\xff\xfe", "cannot be read"),
    (b"[" * 100_000, "cannot be read"),
    (b"{}", "has no Pod"),
    (b'{"Pod":{}}', "has neither NodeNames nor Nodes"),
    (b'{"Pod":{},"NodeNames":[1]}', "$.NodeNames[0]"),
    (b'{"Pod":{},"Nodes":{"items":[{}]}}', "metadata"),
]


@pytest.mark.parametrize(("body", "told"), MALFORMED)
def test_malformed_requests_are_answered_with_a_sentence(body: bytes, told: str) -> None:
    """Where kube-scheduler logs it: the field Error with status 200 for filter, a status for prioritize."""
    answer = filter_nodes(body, steering=Steering(NODES, OWN), now=NOW)
    assert answer.status == 200
    error = json.loads(answer.body)["Error"]
    assert error.startswith("rebalancer extender, filter: ")
    assert told in error
    assert "\n" not in error
    assert len(error) < 500
    answer = prioritize_nodes(body, steering=Steering(NODES, OWN), now=NOW)
    assert answer.status == 400
    assert told in json.loads(answer.body)["Error"]


@given(st.lists(st.sampled_from(ALL), unique=True), st.sampled_from([DynamicJudge(), OWN]), st.booleans())
def test_the_answer_is_a_partition_of_the_question(names: list[str], judge: Judge, whole: bool) -> None:
    """An unknown name would be an error to kube-scheduler, and a lost one would be lost to the pod."""
    answer = filtered(names, Steering(NODES, judge), whole=whole)
    kept = [each["metadata"]["name"] for each in answer["Nodes"]["items"]] if whole else answer["NodeNames"]  # type: ignore[index]
    assert isinstance(kept, list)
    assert sorted([*kept, *answer["FailedNodes"]]) == sorted(names)  # type: ignore[misc]
    assert not names or kept
    assert all(0 <= score <= 10 for score in scored(names, Steering(NODES, judge), whole=whole).values())


@given(st.lists(st.text()))
def test_names_that_are_laid_side_by_side_are_the_same_names(names: list[str]) -> None:
    """Whatever is in them."""
    assert side_by_side(names) == tuple(names)


@given(st.binary(max_size=200))
def test_no_body_is_too_odd_to_answer(body: bytes) -> None:
    """JSON comes back, whatever comes in."""
    assert json.loads(filter_nodes(body, steering=Steering(NODES, OWN), now=NOW).body)
    assert prioritize_nodes(body, steering=Steering(NODES, OWN), now=NOW).status in (200, 400)


def test_the_hot_value_can_be_counted_here_instead_of_read() -> None:
    """Two bindings in a minute cost a node a point by the code, and none by the product's text; what stands on the node does not count."""
    rows = {"idle": crane(*[0.0] * 6, hot=9), "calm": crane(*[0.0] * 6)}
    bindings = Bindings(node=np.array([1, 1, -1]), at=np.array([NOW - 5, NOW - 9, NOW - 1]))
    nodes = replace(view(rows), bindings=bindings)
    assert scored(list(rows), Steering(nodes, DynamicJudge())) == {"idle": 1, "calm": 10}
    assert scored(list(rows), Steering(nodes, DynamicJudge(hot=HotReading.CODE))) == {"idle": 10, "calm": 9}
    assert scored(list(rows), Steering(nodes, DynamicJudge(hot=HotReading.PRODUCT_TEXT))) == {"idle": 10, "calm": 10}
