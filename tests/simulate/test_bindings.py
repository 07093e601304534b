"""The binding subresource of the embedded API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Http, node, serving

Setup = tuple[World, EmbeddedCluster, Http]
PATH = "/api/v1/namespaces/a/pods/p/binding"


@pytest.fixture
def setup() -> Iterator[Setup]:
    world = World(seed=2)
    node(world, "n1")
    metadata = {"name": "p", "namespace": "a", "annotations": {"kept": "1", "changed": "1"}}
    world.create(
        "pods",
        {
            "metadata": metadata,
            "spec": {"containers": [{"name": "c"}], "schedulerName": "another"},
            "status": {"phase": "Pending", "nominatedNodeName": "n2"},
        },
    )
    with serving(world) as (cluster, client):
        yield world, cluster, client


def binding(node: str = "n1", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": node}}


def test_a_binding_sets_the_node_and_the_annotations_in_one_write(setup: Setup) -> None:
    """And the condition; the nomination goes."""
    world, _, client = setup
    before = int(world.get("pods", "p", "a")["metadata"]["resourceVersion"])
    reply = client("POST", PATH, binding(annotations={"changed": "2", "new": "3"}))
    assert (reply.status, reply.json()["status"]) == (201, "Success")
    pod = world.get("pods", "p", "a")
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["annotations"] == {"kept": "1", "changed": "2", "new": "3"}
    assert int(pod["metadata"]["resourceVersion"]) == before + 1
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]
    assert "nominatedNodeName" not in pod["status"]


def test_uid_and_version_are_preconditions(setup: Setup) -> None:
    """409 for every other one; right ones bind."""
    world, _, client = setup
    metadata = world.get("pods", "p", "a")["metadata"]
    for wrong in ({"uid": "other"}, {"resourceVersion": "1"}, {"uid": metadata["uid"], "resourceVersion": "1"}):
        reply = client("POST", PATH, binding(**wrong))
        assert (reply.status, "Precondition failed" in reply.json()["message"]) == (409, True)
    assert client("POST", PATH, binding(uid=metadata["uid"], resourceVersion=metadata["resourceVersion"])).status == 201


def test_a_pod_is_bound_once(setup: Setup) -> None:
    """Even to the same node."""
    client = setup[2]
    assert [client("POST", PATH, binding()).status for _ in range(2)] == [201, 409]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "is being deleted"),
        ({"spec": {"schedulingGates": [{"name": "x"}]}}, "non-empty .spec.schedulingGates"),
    ],
)
def test_a_pod_that_must_not_be_bound_is_a_conflict(setup: Setup, change: dict[str, Any], words: str) -> None:
    """Leaving, or gated."""
    world, _, client = setup
    pod = world.get("pods", "p", "a")
    world.replace("pods", {**pod, **{part: {**pod[part], **fields} for part, fields in change.items()}})
    reply = client("POST", PATH, binding())
    assert (reply.status, words in reply.json()["message"]) == (409, True)


def test_bindings_that_make_no_sense_change_nothing(setup: Setup) -> None:
    """Another name, another kind of target, no target, no pod, a dry run."""
    world, _, client = setup
    replies = [
        client("POST", PATH, {**binding(), "metadata": {"name": "q"}}),
        client("POST", PATH, {**binding(), "target": {"kind": "Rack", "name": "n1"}}),
        client("POST", PATH, {"metadata": {"name": "p"}}),
        client("POST", PATH.replace("/p/", "/q/"), {**binding(), "metadata": {"name": "q"}}),
        client("POST", PATH, binding(), query={"dryRun": "All"}),
    ]
    assert [reply.status for reply in replies] == [400, 500, 500, 404, 201]
    assert "nodeName" not in world.get("pods", "p", "a")["spec"]


def test_the_right_to_bind_can_be_taken_away(setup: Setup) -> None:
    """create pods/binding."""
    _, cluster, client = setup
    cluster.api.rights.deny("create", "pods/binding")
    assert client("POST", PATH, binding()).status == 403
