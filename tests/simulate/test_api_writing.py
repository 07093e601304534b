"""Creating, replacing, patching and applying at the embedded API server, with its locking, rights and validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Http, deployment, node, pod, serving

Setup = tuple[World, EmbeddedCluster, Http]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
NODE = "/api/v1/nodes/n1"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture
def setup() -> Iterator[Setup]:
    world = World(seed=2)
    node(world, "n1", taints=[{"key": "other", "effect": "NoSchedule"}])
    pod(world, "p", on="n1", labels={"app": "x"})
    with serving(world) as (cluster, client):
        yield world, cluster, client


def _lease(holder: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "l", **metadata}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}


def test_a_lease_is_created_once_and_replaced_only_from_its_newest_version(setup: Setup) -> None:
    """409 AlreadyExists on the second POST, 409 Conflict on a PUT from an old version."""
    client = setup[2]
    made = client("POST", LEASES, _lease("one"))
    assert made.status == 201
    again = client("POST", LEASES, _lease("two"))
    assert (again.status, again.json()["reason"]) == (409, "AlreadyExists")
    version = made.json()["metadata"]["resourceVersion"]
    replies = [client("PUT", f"{LEASES}/l", _lease(holder, resourceVersion=version)) for holder in ("two", "three")]
    assert [reply.status for reply in replies] == [200, 409]
    assert replies[1].json()["reason"] == "Conflict"
    assert client("GET", f"{LEASES}/l").json()["spec"]["holderIdentity"] == "two"


def test_a_merge_patch_sets_and_removes(setup: Setup) -> None:
    """null removes a key; what is not named stays."""
    client = setup[2]
    client("PATCH", NODE, {"metadata": {"annotations": {"rebalancer.dev/load": "1", "other": "2"}}}, headers=MERGE)
    body = client("PATCH", NODE, {"metadata": {"annotations": {"rebalancer.dev/load": None}}}, headers=MERGE).json()
    assert body["metadata"]["annotations"] == {"other": "2"}


def test_a_merge_patch_with_an_old_version_is_a_conflict(setup: Setup) -> None:
    """resourceVersion in the patch is a precondition."""
    world, _, client = setup
    old = world.get("nodes", "n1")["metadata"]["resourceVersion"]
    codes = [
        client("PATCH", NODE, {"metadata": {"resourceVersion": old, "labels": {"turn": turn}}}, headers=MERGE).status
        for turn in ("one", "two")
    ]
    assert codes == [200, 409]


def test_a_json_patch_is_carried_out_only_when_its_test_holds(setup: Setup) -> None:
    """The taint list is replaced when it is the one that was read, and refused with 422 otherwise."""
    world, _, client = setup
    old = world.get("nodes", "n1")["spec"]["taints"]
    new = [*old, {"key": "rebalancer.dev/hot", "value": "cpu", "effect": "PreferNoSchedule"}]
    patch = [{"op": "test", "path": "/spec/taints", "value": old}, {"op": "replace", "path": "/spec/taints", "value": new}]
    assert [client("PATCH", NODE, patch, headers=JSON_PATCH).status for _ in range(2)] == [200, 422]
    assert world.get("nodes", "n1")["spec"]["taints"] == new


def test_a_strategic_patch_merges_taints_by_key_and_effect(setup: Setup) -> None:
    """The taint of somebody else survives; $patch: delete takes one away."""
    world, _, client = setup
    mine = {"key": "rebalancer.dev/hot", "effect": "PreferNoSchedule"}
    client("PATCH", NODE, {"spec": {"taints": [mine]}}, headers=STRATEGIC)
    assert [t["key"] for t in world.get("nodes", "n1")["spec"]["taints"]] == ["other", "rebalancer.dev/hot"]
    client("PATCH", NODE, {"spec": {"taints": [{**mine, "$patch": "delete"}]}}, headers=STRATEGIC)
    assert [t["key"] for t in world.get("nodes", "n1")["spec"]["taints"]] == ["other"]


def test_applying_again_without_a_field_removes_it(setup: Setup) -> None:
    """Server-side apply owns what it set, and nothing else."""
    world, _, client = setup
    path = "/api/v1/namespaces/a/pods/p"
    query = {"fieldManager": "rebalancer", "force": "true"}

    def apply(**annotations: str) -> dict[str, Any]:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": annotations}}
        return client("PATCH", path, body, query=query, headers=APPLY).json()

    client("PATCH", path, {"metadata": {"annotations": {"mine": "0"}}}, headers=MERGE)
    apply(**{"rebalancer.dev/candidate": "1", "rebalancer.dev/class": "web"})
    body = apply(**{"rebalancer.dev/class": "web"})
    assert body["metadata"]["annotations"] == {"mine": "0", "rebalancer.dev/class": "web"}
    assert world.get("pods", "p", "a")["metadata"]["labels"] == {"app": "x"}


def test_two_managers_clash_unless_forced(setup: Setup) -> None:
    """A field of another manager with another value is 409; force takes it over."""
    client = setup[2]

    def apply(manager: str, value: str, force: bool) -> int:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "annotations": {"k": value}}}
        return client("PATCH", NODE, body, query={"fieldManager": manager, "force": str(force).lower()}, headers=APPLY).status

    assert [apply("one", "a", False), apply("two", "b", False), apply("two", "b", True)] == [200, 409, 200]


def test_a_patch_of_the_object_leaves_its_status_alone(setup: Setup) -> None:
    """Only the status subresource writes status."""
    world, _, client = setup
    client("PATCH", "/api/v1/namespaces/a/pods/p", {"status": {"phase": "Failed"}}, headers=MERGE)
    assert world.get("pods", "p", "a")["status"]["phase"] == "Running"
    client("PATCH", "/api/v1/namespaces/a/pods/p/status", {"status": {"nominatedNodeName": "n1"}}, headers=MERGE)
    assert world.get("pods", "p", "a")["status"]["nominatedNodeName"] == "n1"


def test_generations_follow_the_spec_and_not_the_labels(setup: Setup) -> None:
    """Only a change of the spec counts."""
    world, _, client = setup
    deployment(world, "web", 2)
    path = "/apis/apps/v1/namespaces/a/deployments/web"
    patches: list[dict[str, Any]] = [{"metadata": {"labels": {"x": "y"}}}, {"spec": {"replicas": 3}}]
    assert [client("PATCH", path, p, headers=MERGE).json()["metadata"]["generation"] for p in patches] == [1, 2]


def test_a_dry_run_stores_nothing(setup: Setup) -> None:
    """The answer shows what would be; the store does not."""
    world, _, client = setup
    client("PATCH", NODE, {"metadata": {"labels": {"x": "y"}}}, query={"dryRun": "All"}, headers=MERGE)
    client("POST", LEASES, _lease("one"), query={"dryRun": "All"})
    assert "x" not in world.get("nodes", "n1")["metadata"]["labels"]
    assert world.count("leases") == 0


def test_objects_that_the_real_server_refuses_are_422(setup: Setup) -> None:
    """Bad taint values, bad annotation keys, an Event without its required fields."""
    client = setup[2]
    taint = {"spec": {"taints": [{"key": "rebalancer.dev/hot", "value": "91 %", "effect": "PreferNoSchedule"}]}}
    event = {"metadata": {"generateName": "e"}, "type": "Normal", "reason": "Rebalanced"}
    replies = [
        client("PATCH", NODE, taint, headers=MERGE),
        client("PATCH", NODE, {"metadata": {"annotations": {"not a key": "x"}}}, headers=MERGE),
        client("POST", "/apis/events.k8s.io/v1/namespaces/a/events", event),
    ]
    assert [reply.status for reply in replies] == [422, 422, 422]


def test_a_complete_event_is_accepted(setup: Setup) -> None:
    """events.k8s.io/v1 with everything that it needs gets a name of its own."""
    event = {
        "metadata": {"generateName": "rebalanced-"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Rebalanced",
        "action": "Evict",
        "reportingController": "rebalancer.dev/controller",
        "reportingInstance": "rebalancer-0",
        "regarding": {"kind": "Pod", "namespace": "a", "name": "p"},
        "note": "moved",
    }
    reply = setup[2]("POST", "/apis/events.k8s.io/v1/namespaces/a/events", event)
    assert reply.status == 201
    assert reply.json()["metadata"]["name"].startswith("rebalanced-")


def test_rights_are_enforced_and_reviewed_alike(setup: Setup) -> None:
    """What is denied is 403 on the request, and not allowed in the access review."""
    _, cluster, client = setup
    cluster.api.rights.deny("create", "pods/eviction")

    def allowed(verb: str, resource: str, subresource: str = "") -> bool:
        attributes = {"verb": verb, "resource": resource, "subresource": subresource, "namespace": "a"}
        body = {"spec": {"resourceAttributes": attributes}}
        return client("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).json()["status"]["allowed"]

    refused = client("POST", "/api/v1/namespaces/a/pods/p/eviction", {"metadata": {"name": "p"}})
    assert (refused.status, allowed("create", "pods", "eviction"), allowed("list", "pods")) == (403, False, True)


def test_a_wrong_token_is_401(setup: Setup) -> None:
    """With a token set, a request without it is not let in."""
    _, cluster, client = setup
    cluster.api.rights.token = "secret"
    codes = [client("GET", "/version", headers=headers).status for headers in ({}, {"Authorization": "Bearer secret"})]
    assert codes == [401, 200]
