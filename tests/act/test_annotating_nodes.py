"""Patches of load annotations: one a node, in their order and their time, told once when they fail; and whose annotations are whose."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from rebalancer.act.annotating_nodes import AnnotatingNodes, Kind, PatchResult
from rebalancer.act.annotation_owners import ASK_AGAIN_S, AnnotationOwners
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.policy.model import Pool, Spec
from rebalancer.policy.quantities import LabelSelector
from rebalancer.steer.annotation_work import CRANE_KEYS, NodePatch
from rebalancer.steer.own_annotation import LOAD
from tests.support.scripted_api import Reply, ScriptedApi, page, status

CPU = "cpu_usage_avg_5m"
VALUE = "0.30000,2026-01-02T11:04:05Z"
OTHER = "0.90000,2026-01-02T11:04:05Z"


def patch(name: str, values: dict[str, str | None] | None = None, *, row: int = 0) -> NodePatch:
    return NodePatch(row, name, {CPU: VALUE} if values is None else values, 0.0)


def serve(api: ScriptedApi, *names: str) -> None:
    for name in names:
        api.on("PATCH", f"/api/v1/nodes/{name}", Reply(body={"metadata": {"name": name}}))


def node(name: str, *, labels: dict[str, str] | None = None, **writers: str | None) -> dict[str, Any]:
    """A node whose annotations (``load``, ``cpu``) were written by somebody each; None: nobody knows."""
    keys = {"load": LOAD, "cpu": CPU}
    managed = [
        {
            "manager": manager,
            "operation": "Update",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{keys[key]}": {}}}},
        }
        for key, manager in writers.items()
        if manager is not None
    ]
    managed.append({"manager": "kubelet", "fieldsV1": {"f:status": {"f:conditions": {}}}})
    return {
        "metadata": {"name": name, "labels": labels or {}, "annotations": {keys[key]: VALUE for key in writers}, "managedFields": managed}
    }


def patched(api: ScriptedApi) -> dict[str, dict[str, Any]]:
    return {asked.path.rpartition("/")[2]: asked.json["metadata"]["annotations"] for asked in api.requests("PATCH")}  # type: ignore[index]


def test_each_node_gets_one_merge_patch_by_the_field_manager_rebalancer(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """With all its values at once."""
    serve(api, "a", "b")
    both = {LOAD: "{}", CPU: VALUE, "mem_usage_avg_5m": None}
    done = AnnotatingNodes(client).write([patch("a", both), patch("b", {CPU: None})], deadline=deadline)
    assert patched(api) == {"a": both, "b": {CPU: None}}
    assert {asked.query["fieldManager"] for asked in api.requests("PATCH")} == {"rebalancer"}
    assert {asked.headers["content-type"] for asked in api.requests("PATCH")} == {"application/merge-patch+json"}
    assert done.counts == {
        (Kind.OWN, PatchResult.WRITTEN): 1,
        (Kind.CRANE, PatchResult.WRITTEN): 1,
        (Kind.CRANE, PatchResult.REMOVED): 1,
    }
    assert done.notes == ()
    assert done.left == 0


def test_a_node_that_is_gone_needs_nothing(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """An autoscaler may take one at any time."""
    serve(api, "there")
    done = AnnotatingNodes(client, threads=1).write([patch("gone"), patch("there")], deadline=deadline)
    assert done.counts == {(Kind.CRANE, PatchResult.GONE): 1, (Kind.CRANE, PatchResult.WRITTEN): 1}
    assert done.notes == ()


@pytest.mark.parametrize(
    "reply", [status(403, "nodes is forbidden", reason="Forbidden"), status(422, "denied by the fence", reason="Invalid")]
)
def test_what_would_be_refused_for_every_node_is_tried_and_told_once(
    api: ScriptedApi, client: KubeClient, deadline: Deadline, reply: Reply
) -> None:
    """A missing right, or the fence; the next cycle tries again and says nothing new."""
    for name in "abc":
        api.on("PATCH", f"/api/v1/nodes/{name}", reply)
    annotating = AnnotatingNodes(client, threads=1)
    patches = [patch(name) for name in "abc"]
    done = annotating.write(patches, deadline=deadline)
    assert len(api.requests("PATCH")) == 1
    assert done.counts == {(Kind.CRANE, PatchResult.REFUSED): 1, (Kind.CRANE, PatchResult.LEFT): 2}
    (note,) = done.notes
    assert note.startswith("load annotations of 3 nodes could not be written, the first: ")
    assert "fence of the chart" in note or "patch" in note
    assert annotating.write(patches, deadline=deadline).notes == ()


def test_a_failure_is_told_again_once_something_has_succeeded_in_between(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """It is news then."""
    broken, fine = status(500, "etcd is slow"), Reply(body={"metadata": {"name": "a"}})
    api.on("PATCH", "/api/v1/nodes/a", broken, broken, fine, broken)
    annotating = AnnotatingNodes(client)
    notes = [annotating.write([patch("a")], deadline=deadline).notes for _ in range(4)]
    assert [len(each) for each in notes] == [1, 0, 0, 1]


def test_a_server_that_is_not_well_is_left_alone(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """After eight failures in a row the rest waits for the next cycle."""
    names = [f"n{number}" for number in range(30)]
    for name in names:
        api.on("PATCH", f"/api/v1/nodes/{name}", status(500, "no"))
    done = AnnotatingNodes(client, threads=1).write([patch(name) for name in names], deadline=deadline)
    assert done.counts == {(Kind.CRANE, PatchResult.FAILED): 8, (Kind.CRANE, PatchResult.LEFT): 22}


def test_a_server_that_asks_for_quiet_gets_it(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """429: nothing more in this cycle."""
    api.on("PATCH", "/api/v1/nodes/a", status(429, "slow down", headers={"Retry-After": "1"}))
    serve(api, "b")
    done = AnnotatingNodes(client, threads=1).write([patch("a"), patch("b")], deadline=deadline)
    assert len(api.requests("PATCH")) == 1
    assert done.left == 2


def test_what_the_time_does_not_allow_is_left_in_the_order_given(api: ScriptedApi, client: KubeClient) -> None:
    """Two patches a second, of which the first two may follow each other at once."""
    names = [f"n{number}" for number in range(9)]
    serve(api, *names)
    done = AnnotatingNodes(client, per_second=2.0, threads=1).write([patch(name) for name in names], deadline=Deadline.after(0.3))
    assert list(patched(api)) == names[:2]
    assert done.left == 7
    assert done.notes == ()


def test_a_stop_leaves_the_rest(api: ScriptedApi, client: KubeClient) -> None:
    """And raises nothing."""
    stop = threading.Event()
    stop.set()
    done = AnnotatingNodes(client).write([patch("a")], deadline=Deadline.after(5, stop=stop))
    assert done.left == 1
    assert api.requests("PATCH") == []


# ---- clean-up


def test_clean_up_takes_off_ours_and_leaves_what_somebody_else_wrote(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Our own key is ours whoever wrote it; crane's are ours where the API server says so."""
    nodes = [
        node("a", load="rebalancer", cpu="rebalancer"),
        node("b", load="kubectl", cpu="crane-controller"),
        node("c", cpu=None),
        node("d"),
    ]
    api.on("GET", "/api/v1/nodes", page(nodes))
    serve(api, "a", "b", "c")
    notes = AnnotatingNodes(client).clean_up(deadline=deadline)
    assert patched(api) == {"a": {LOAD: None, CPU: None}, "b": {LOAD: None}}
    assert notes == ("load annotations taken off 2 nodes", "crane annotations of 2 nodes stay: crane-controller, kubectl wrote them")


def test_clean_up_touches_only_the_pools_of_the_policy_and_what_this_process_wrote(
    api: ScriptedApi, client: KubeClient, deadline: Deadline
) -> None:
    """The others may be another controller's."""
    nodes = [node(name, labels={"pool": pool}, load="rebalancer") for name, pool in (("a", "gpu"), ("b", "cpu"), ("c", "cpu"))]
    api.on("GET", "/api/v1/nodes", page(nodes))
    serve(api, "a", "b", "c")
    pool = Pool(name="gpu", node_selector=LabelSelector(match_labels={"pool": "gpu"}), signals=Spec().pools[0].signals)
    annotating = AnnotatingNodes(client)
    annotating.put.add("c")
    annotating.clean_up(deadline=deadline, pools=(pool,))
    assert patched(api).keys() == {"a", "c"}


def test_clean_up_says_what_it_had_no_time_for(api: ScriptedApi, client: KubeClient) -> None:
    """They go stale by themselves."""
    api.on("GET", "/api/v1/nodes", page([node(f"n{number}", load="rebalancer") for number in range(5)]))
    serve(api, *(f"n{number}" for number in range(5)))
    notes = AnnotatingNodes(client, per_second=2.0, threads=1).clean_up(deadline=Deadline.after(0.4))
    assert notes == ("load annotations taken off 2 nodes", "load annotations of 3 nodes are left; they go stale by themselves")


def test_clean_up_that_cannot_see_the_nodes_fails_loudly(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """ "Nothing was there" must not be said by somebody who could not look."""
    api.on("GET", "/api/v1/nodes", status(403, "nodes is forbidden", reason="Forbidden"))
    with pytest.raises(KubernetesError):
        AnnotatingNodes(client).clean_up(deadline=deadline)


# ---- whose they are


def judge(
    owners: AnnotationOwners, present: dict[str, dict[str, str]], deadline: Deadline, *, at: float = 0.0
) -> tuple[list[bool], tuple[str, ...]]:
    names = tuple(present)
    ours, notes = owners.judge(names, tuple(present.values()), rows=np.ones(len(names), dtype=np.bool_), at=at, deadline=deadline)
    return ours.tolist(), notes


def test_nodes_without_cranes_keys_are_free_and_nobody_is_asked(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The usual case at a first start."""
    assert judge(AnnotationOwners(client), {"a": {}, "b": {LOAD: "{}"}}, deadline) == ([True, True], ())
    assert api.asked == []


def test_what_this_process_wrote_is_known_by_its_text(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Also when the look is a moment older than the last patch."""
    owners = AnnotationOwners(client)
    owners.wrote([patch("a")], ({},))
    owners.wrote([patch("a", {CPU: OTHER})], ({CPU: VALUE},))
    assert judge(owners, {"a": {CPU: OTHER}}, deadline)[0] == [True]
    assert judge(owners, {"a": {CPU: VALUE}}, deadline)[0] == [True]
    assert api.asked == []


def test_after_a_restart_the_api_server_is_asked_once_for_all_nodes(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """What the process before wrote is ours."""
    api.on("GET", "/api/v1/nodes", page([node("a", cpu="rebalancer"), node("b", cpu="rebalancer")]))
    owners = AnnotationOwners(client)
    present = {"a": {CPU: VALUE}, "b": {CPU: VALUE}}
    assert judge(owners, present, deadline) == ([True, True], ())
    assert judge(owners, present, deadline) == ([True, True], ())
    assert len(api.requests("GET")) == 1


def test_another_writer_is_left_alone_and_told_once(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Its new values are no news, nor is another node of its."""
    api.on("GET", "/api/v1/nodes", page([node("a", cpu="crane-controller"), node("b", cpu="crane-controller")]))
    owners = AnnotationOwners(client)
    ours, notes = judge(owners, {"a": {CPU: VALUE}, "c": {}}, deadline)
    assert ours == [False, True]
    assert len(notes) == 1
    assert notes[0].startswith("crane annotations of a are written by crane-controller and left alone; ")
    assert f"kubectl annotate nodes --all {CRANE_KEYS[0]}- " in notes[0]
    assert judge(owners, {"a": {CPU: OTHER}, "c": {}}, deadline) == ([False, True], ())
    assert judge(owners, {"a": {CPU: OTHER}, "b": {CPU: OTHER}}, deadline, at=ASK_AGAIN_S) == ([False, False], ())
    assert len(api.requests("GET")) == 2


def test_a_writer_that_takes_over_is_found_out_by_its_text(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """We wrote, it wrote after us: from then on it is its node."""
    api.on("GET", "/api/v1/nodes", page([node("a", cpu="crane-controller")]))
    owners = AnnotationOwners(client)
    owners.wrote([patch("a")], ({},))
    assert judge(owners, {"a": {CPU: OTHER}}, deadline)[0] == [False]


def test_a_node_is_ours_again_when_the_other_writers_annotations_are_gone(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """As the note advises."""
    api.on("GET", "/api/v1/nodes", page([node("a", cpu="crane-controller")]))
    owners = AnnotationOwners(client)
    assert judge(owners, {"a": {CPU: VALUE}}, deadline)[0] == [False]
    assert judge(owners, {"a": {}}, deadline)[0] == [True]


def test_a_server_that_does_not_say_who_wrote_leaves_the_node_alone(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Not to know is no reason to overwrite."""
    api.on("GET", "/api/v1/nodes", status(500, "no"))
    ours, notes = judge(AnnotationOwners(client), {"a": {CPU: VALUE}}, deadline)
    assert ours == [False]
    assert notes[0].startswith("it cannot be told who wrote the crane annotations of 1 nodes, so they are left alone: ")
