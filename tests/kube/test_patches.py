"""Annotations and soft taints: only ours change, races are done again, and nothing is sent when nothing changes."""

from __future__ import annotations

import pytest

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesNotFound, KubernetesUnreachable
from rebalancer.kube.client import KubeClient
from rebalancer.kube.operations import node_path, object_path, pod_path
from rebalancer.kube.patches import TAINT_ATTEMPTS, SoftTaint, TaintChange, annotate, set_soft_taints
from tests.support.scripted_api import Reply, ScriptedApi, status

NODE = "/api/v1/nodes/node-1"
HOT = SoftTaint(key="rebalancer.dev/hot", value="cpu")
WARM = SoftTaint(key="rebalancer.dev/warm")
OWN = (HOT.key, WARM.key)
OURS = {"key": "rebalancer.dev/hot", "value": "cpu", "effect": "PreferNoSchedule"}
FOREIGN = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z", "future": {"a": 1}}
OURS_TOO = {"key": "rebalancer.dev/warm", "effect": "PreferNoSchedule"}
HARD = {"key": "rebalancer.dev/hot", "effect": "NoSchedule"}
PUT, TAKEN, NOTHING = TaintChange(put=(HOT.key,)), TaintChange(taken=(HOT.key,)), TaintChange()


def node(*taints: dict[str, object], version: str = "7") -> Reply:
    spec: dict[str, object] = {"taints": list(taints)} if taints else {}
    return Reply(body={"kind": "Node", "metadata": {"name": "node-1", "resourceVersion": version}, "spec": spec})


def put(client: KubeClient, deadline: Deadline, *wanted: SoftTaint) -> TaintChange:
    return set_soft_taints(client, "node-1", wanted, own=OWN, deadline=deadline)


def patched(api: ScriptedApi) -> list[dict[str, object]]:
    return [asked.json for asked in api.requests("PATCH", NODE)]


def test_a_taint_is_added_beside_those_of_others_with_the_version_that_was_read(
    api: ScriptedApi, client: KubeClient, deadline: Deadline
) -> None:
    """Foreign taints go back as they came, unknown fields included."""
    api.on("GET", NODE, node(FOREIGN))
    api.on("PATCH", NODE, node())
    assert put(client, deadline, HOT) == PUT
    assert patched(api) == [{"metadata": {"resourceVersion": "7"}, "spec": {"taints": [FOREIGN, OURS]}}]
    assert api.requests("PATCH")[0].headers["content-type"] == "application/merge-patch+json"
    assert api.requests("PATCH")[0].query == {"fieldManager": "rebalancer"}


def test_a_taint_that_is_there_is_not_patched(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Idempotent: one read, no write."""
    api.on("GET", NODE, node(FOREIGN, OURS))
    assert put(client, deadline, HOT) == NOTHING
    assert api.requests("PATCH") == []


def test_another_value_of_our_taint_is_replaced(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """There is one taint of our key and effect afterwards; a harder one of the same key stays."""
    api.on("GET", NODE, node({**OURS, "value": "memory"}, HARD))
    api.on("PATCH", NODE, node())
    assert put(client, deadline, HOT) == PUT
    assert patched(api)[0]["spec"] == {"taints": [HARD, OURS]}


def test_a_taint_is_removed_and_only_ours(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Another effect of the same key was set by somebody else."""
    api.on("GET", NODE, node(HARD, OURS, FOREIGN))
    api.on("PATCH", NODE, node())
    assert put(client, deadline) == TAKEN
    assert patched(api)[0]["spec"] == {"taints": [HARD, FOREIGN]}


def test_the_last_taint_is_removed_as_a_null_list(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The field goes away altogether."""
    api.on("GET", NODE, node(OURS))
    api.on("PATCH", NODE, node())
    assert put(client, deadline) == TAKEN
    assert patched(api)[0]["spec"] == {"taints": None}


def test_a_taint_that_is_not_there_is_not_removed(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Clean-up after a crash may run on every node."""
    api.on("GET", NODE, node(FOREIGN))
    assert put(client, deadline) == NOTHING
    assert api.requests("PATCH") == []


def test_both_taints_of_a_node_come_in_one_patch(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """No scheduler ever sees the node with one of them; what was there of others keeps its place."""
    api.on("GET", NODE, node(FOREIGN, HARD))
    api.on("PATCH", NODE, node())
    assert put(client, deadline, HOT, WARM) == TaintChange(put=(HOT.key, WARM.key))
    assert patched(api) == [{"metadata": {"resourceVersion": "7"}, "spec": {"taints": [FOREIGN, HARD, OURS, OURS_TOO]}}]


def test_one_goes_and_the_other_comes_in_one_patch(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A node that has cooled from hot to warm, or that an earlier version tainted."""
    api.on("GET", NODE, node(OURS, FOREIGN))
    api.on("PATCH", NODE, node())
    assert put(client, deadline, WARM) == TaintChange(put=(WARM.key,), taken=(HOT.key,))
    assert [body["spec"] for body in patched(api)] == [{"taints": [FOREIGN, OURS_TOO]}]


def test_of_two_taints_the_one_that_is_missing_is_added(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The one that is right stays where it is."""
    api.on("GET", NODE, node(OURS_TOO, FOREIGN))
    api.on("PATCH", NODE, node())
    assert put(client, deadline, HOT, WARM) == PUT
    assert [body["spec"] for body in patched(api)] == [{"taints": [OURS_TOO, FOREIGN, OURS]}]


def test_a_writer_in_between_makes_it_start_from_what_is_there_then(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The taint that another controller added meanwhile survives."""
    api.on("GET", NODE, node(version="7"), node(FOREIGN, version="8"))
    api.on("PATCH", NODE, status(409, "the object has been modified"), node())
    assert put(client, deadline, HOT) == PUT
    assert patched(api) == [
        {"metadata": {"resourceVersion": "7"}, "spec": {"taints": [OURS]}},
        {"metadata": {"resourceVersion": "8"}, "spec": {"taints": [FOREIGN, OURS]}},
    ]


def test_a_race_that_somebody_else_ended_for_us_is_no_change(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Another replica set the same taint: nothing is left to do."""
    api.on("GET", NODE, node(), node(OURS))
    api.on("PATCH", NODE, status(409, "the object has been modified"))
    assert put(client, deadline, HOT) == NOTHING


def test_a_race_without_end_is_given_up(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Bounded, with the conflict as the error."""
    api.on("GET", NODE, node())
    api.on("PATCH", NODE, status(409, "the object has been modified"))
    with pytest.raises(KubernetesConflict):
        put(client, deadline, HOT)
    assert len(api.requests("PATCH")) == TAINT_ATTEMPTS


def test_a_node_that_is_gone_is_said(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Scaled down meanwhile."""
    with pytest.raises(KubernetesNotFound, match="nodes node-1"):
        put(client, deadline, HOT)


POD = pod_path(namespace="shop", name="web-1")


def test_annotations_are_set_and_removed_by_key(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A merge patch of these keys and no others; None removes."""
    api.on("PATCH", POD, Reply(body={"kind": "Pod"}))
    assert annotate(client, POD, {"rebalancer.dev/candidate": "{}", "rebalancer.dev/class": None}, deadline=deadline) is True
    asked = api.asked[0]
    assert asked.json == {"metadata": {"annotations": {"rebalancer.dev/candidate": "{}", "rebalancer.dev/class": None}}}
    assert asked.query == {"fieldManager": "rebalancer"}
    assert asked.headers["content-type"] == "application/merge-patch+json"


def test_no_annotations_means_no_patch(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Nothing to change, nothing sent."""
    assert annotate(client, POD, {}, deadline=deadline) is False
    assert api.asked == []


@pytest.mark.parametrize("code", [409, 422])
def test_a_new_pod_of_the_same_name_is_left_alone(api: ScriptedApi, client: KubeClient, deadline: Deadline, code: int) -> None:
    """The UID goes along, and the server's refusal of it is a conflict."""
    api.on("PATCH", POD, status(code, "metadata.uid: field is immutable"))
    with pytest.raises(KubernetesConflict):
        annotate(client, POD, {"a": "b"}, uid="uid-1", deadline=deadline)
    assert api.asked[0].json["metadata"] == {"annotations": {"a": "b"}, "uid": "uid-1"}


def test_an_invalid_annotation_is_no_conflict(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """422 without a UID is the server's verdict on what was written."""
    api.on("PATCH", POD, status(422, "metadata.annotations: Invalid value"))
    with pytest.raises(KubernetesError, match="Invalid value") as raised:
        annotate(client, POD, {"a b": "c"}, deadline=deadline)
    assert raised.value.status == 422


def test_paths_of_workloads_and_nodes() -> None:
    """Groups, namespaces, and names that need quoting."""
    assert node_path("node-1") == NODE
    assert object_path(api_version="apps/v1", plural="deployments", namespace="shop", name="web") == (
        "/apis/apps/v1/namespaces/shop/deployments/web"
    )
    assert object_path(api_version="v1", plural="nodes", name="a/b?c") == "/api/v1/nodes/a%2Fb%3Fc"


def test_a_success_that_no_api_server_said_is_none(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A proxy that says OK to anything has put no taint."""
    api.on("GET", "/api/v1/nodes/node-1", node())
    api.on("PATCH", "/api/v1/nodes/node-1", Reply(body=b"OK", content_type="text/plain"))
    with pytest.raises(KubernetesUnreachable, match="no valid JSON"):
        put(client, deadline, HOT)
