"""Lists, pages, selectors, watches and discovery of the embedded API server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import Http, deployment, node, pod, serving

Setup = tuple[World, EmbeddedCluster, Http]
PODS = "/api/v1/pods"


@pytest.fixture
def setup() -> Iterator[Setup]:
    world = World(seed=2)
    node(world, "n1")
    for number in range(7):
        pod(world, f"p{number}", namespace="a" if number < 5 else "b", on="n1", labels={"odd": str(number % 2), "app": "x"})
    with serving(world) as (cluster, client):
        yield world, cluster, client


def _names(body: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


def test_pages_share_one_version_and_hold_every_object_once(setup: Setup) -> None:
    """Writes between two pages are not seen by the second one."""
    world, _, client = setup
    first = client("GET", PODS, query={"limit": 3}).json()
    assert first["metadata"]["remainingItemCount"] == 4
    pod(world, "p0a", on="n1")
    second = client("GET", PODS, query={"limit": 9, "continue": first["metadata"]["continue"]}).json()
    assert _names(first) + _names(second) == [f"p{number}" for number in range(7)]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


def test_a_continue_token_grows_old(setup: Setup) -> None:
    """After five minutes of virtual time it is 410, with a token that starts an inconsistent list."""
    world, _, client = setup
    token = client("GET", PODS, query={"limit": 3}).json()["metadata"]["continue"]
    world.advance(400)
    reply = client("GET", PODS, query={"limit": 3, "continue": token})
    assert (reply.status, reply.json()["reason"]) == (410, "Expired")
    assert reply.json()["metadata"]["continue"]


def test_a_fault_expires_tokens_at_once(setup: Setup) -> None:
    """Only requests that carry a token are hit, once."""
    _, cluster, client = setup
    cluster.faults.expire(count=1)
    token = client("GET", PODS, query={"limit": 3}).json()["metadata"]["continue"]
    statuses = [client("GET", PODS, query={"limit": 3, "continue": token}).status for _ in range(2)]
    assert statuses == [410, 200]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"labelSelector": "odd=1"}, ["p1", "p3", "p5"]),
        ({"labelSelector": "odd!=1,app"}, ["p0", "p2", "p4", "p6"]),
        ({"labelSelector": "odd in (1),app notin (y,z)"}, ["p1", "p3", "p5"]),
        ({"labelSelector": "!odd"}, []),
        ({"fieldSelector": "metadata.name=p2"}, ["p2"]),
        ({"fieldSelector": "spec.nodeName=n1,metadata.namespace!=a"}, ["p5", "p6"]),
        ({"fieldSelector": "status.phase!=Running"}, []),
    ],
)
def test_selectors_choose(setup: Setup, query: dict[str, str], expected: list[str]) -> None:
    """Label and field selectors mean what they mean to kubectl."""
    assert _names(setup[2]("GET", PODS, query=query).json()) == expected


def test_bad_selectors_and_limits_are_400(setup: Setup) -> None:
    """A selector that cannot be read is refused, not ignored."""
    queries: list[dict[str, str]] = [{"labelSelector": "a in b"}, {"fieldSelector": "x"}, {"limit": "many"}, {"continue": "%%"}]
    assert [setup[2]("GET", PODS, query=query).status for query in queries] == [400, 400, 400, 400]


def test_metadata_only_lists_carry_no_spec(setup: Setup) -> None:
    """The Accept header asks for PartialObjectMetadataList."""
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    body = setup[2]("GET", "/api/v1/namespaces/b/pods", headers=accept).json()
    assert body["kind"] == "PartialObjectMetadataList"
    assert [set(item) for item in body["items"]] == [{"kind", "apiVersion", "metadata"}] * 2


def test_every_kind_has_a_list() -> None:
    """An empty world answers an empty list of the right kind for each."""
    from rebalancer.simulate.kinds import KINDS

    with serving(World()) as (_, client):
        kinds = [client("GET", f"{kind.prefix}/{kind.plural}").json()["kind"] for kind in KINDS]
    assert kinds == [f"{kind.kind}List" for kind in KINDS]


def test_version_discovery_and_unknown_paths(setup: Setup) -> None:
    """What clients ask for first is there; what is not served is 404."""
    client = setup[2]
    assert client("GET", "/version").json()["minor"] == "36"
    assert "policy" in {group["name"] for group in client("GET", "/apis").json()["groups"]}
    paths = ["/api/v1/gadgets", "/apis/x/v1/pods", "/api/v1/namespaces/a/pods/none", "/nothing"]
    assert [client("GET", path).status for path in paths] == [404] * 4


def test_scale_is_that_of_the_owner(setup: Setup) -> None:
    """GET on the scale subresource of a Deployment."""
    world, _, client = setup
    deployment(world, "web", 4)
    assert client("GET", "/apis/apps/v1/namespaces/a/deployments/web/scale").json()["spec"]["replicas"] == 4


def _watch(client: Http, **query: Any) -> list[dict[str, Any]]:
    reply = client("GET", PODS, query={"watch": 1, "timeoutSeconds": 1, **query})
    assert reply.status == 200
    return [json.loads(line) for line in reply.body.splitlines()]


def test_a_watch_tells_what_changed_since_a_version(setup: Setup) -> None:
    """ADDED, MODIFIED and DELETED, from the version of a list on, whatever happened to other kinds."""
    world, _, client = setup
    version = client("GET", PODS, query={"limit": 1}).json()["metadata"]["resourceVersion"]
    made = pod(world, "new", on="n1")
    world.replace("pods", {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}})
    node(world, "n2")
    world.remove("pods", "new", "a")
    events = _watch(client, resourceVersion=version)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "new"),
        ("MODIFIED", "new"),
        ("DELETED", "new"),
    ]


def test_a_watch_sees_what_happens_while_it_is_open(setup: Setup) -> None:
    """Events arrive before the time limit, and a bookmark at the end carries the newest version."""
    world, _, client = setup
    version = str(world.version)
    timer = threading.Timer(0.2, lambda: pod(world, "late", on="n1"))
    timer.start()
    events = _watch(client, resourceVersion=version, allowWatchBookmarks="true")
    timer.join()
    assert events[0]["object"]["metadata"]["name"] == "late"
    assert (events[-1]["type"], events[-1]["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(world.version))


def test_objects_that_leave_a_selection_are_deleted_for_the_watcher(setup: Setup) -> None:
    """A label change moves a pod out of one watch."""
    world, _, client = setup
    version = str(world.version)
    value = world.get("pods", "p1", "a")
    world.replace("pods", {**value, "metadata": {**value["metadata"], "labels": {}}})
    assert [event["type"] for event in _watch(client, resourceVersion=version, labelSelector="odd=1")] == ["DELETED"]


def test_a_forgotten_version_is_410_as_status_and_as_event(setup: Setup) -> None:
    """After a compaction a watch from an old version is refused; a fault puts the same into the stream."""
    world, cluster, client = setup
    pod(world, "new", on="n1")
    world.forget_changes()
    assert client("GET", PODS, query={"watch": 1, "resourceVersion": 5, "timeoutSeconds": 1}).status == 410
    from rebalancer.simulate.faults import Act, Fault

    cluster.faults.add(Fault(Act.WATCH_ERROR, path="watch=1", count=1))
    events = _watch(client, resourceVersion=world.version)
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]


def test_a_watch_without_a_version_begins_with_what_is_there(setup: Setup) -> None:
    """Synthetic ADDED events first."""
    assert [event["type"] for event in _watch(setup[2])] == ["ADDED"] * 7
