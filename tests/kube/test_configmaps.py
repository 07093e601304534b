"""A ConfigMap as a store: no write goes over the write of another."""

from __future__ import annotations

import pytest

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict
from rebalancer.kube.client import KubeClient
from rebalancer.kube.configmaps import read_config_map, write_config_map
from tests.support.scripted_api import Reply, ScriptedApi, status

COLLECTION = "/api/v1/namespaces/ops/configmaps"
ONE = f"{COLLECTION}/rebalancer-state"


def stored(*, version: str = "7", data: dict[str, str] | None = None, **metadata: object) -> Reply:
    body = {
        "kind": "ConfigMap",
        "metadata": {"name": "rebalancer-state", "namespace": "ops", "uid": "u", "resourceVersion": version, **metadata},
        "data": data,
    }
    return Reply(body=body)


def test_a_map_that_is_not_there_is_none(client: KubeClient, deadline: Deadline) -> None:
    """The first start."""
    assert read_config_map(client, namespace="ops", name="rebalancer-state", deadline=deadline) is None


def test_a_map_without_data_is_empty(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """As a chart may create it."""
    api.on("GET", ONE, stored(data=None))
    found = read_config_map(client, namespace="ops", name="rebalancer-state", deadline=deadline)
    assert found is not None
    assert (found.data, found.resource_version) == ({}, "7")


def test_creating_sends_no_version(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """And returns the version for the next write."""
    api.on("POST", COLLECTION, stored(version="1", data={"a": "b"}))
    written = write_config_map(
        client, namespace="ops", name="rebalancer-state", data={"a": "b"}, previous=None, labels={"app": "x"}, deadline=deadline
    )
    assert written.resource_version == "1"
    assert api.asked[0].json == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "rebalancer-state", "namespace": "ops", "labels": {"app": "x"}},
        "data": {"a": "b"},
    }


def test_replacing_carries_the_version_and_what_others_put_on_it(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Helm's labels and owners survive; old keys of the data go."""
    owners = [{"kind": "Deployment", "name": "rebalancer"}]
    api.on("GET", ONE, stored(data={"old": "1"}, labels={"helm": "yes"}, ownerReferences=owners, managedFields=[{"manager": "helm"}]))
    api.on("PUT", ONE, stored(version="8", data={"new": "2"}))
    previous = read_config_map(client, namespace="ops", name="rebalancer-state", deadline=deadline)
    written = write_config_map(
        client, namespace="ops", name="rebalancer-state", data={"new": "2"}, previous=previous, labels={"app": "x"}, deadline=deadline
    )
    assert written.resource_version == "8"
    assert api.requests("PUT")[0].json == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "rebalancer-state",
            "namespace": "ops",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"helm": "yes", "app": "x"},
            "ownerReferences": owners,
        },
        "data": {"new": "2"},
    }


def test_a_write_in_between_is_a_conflict(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """It is raised once, never written over."""
    api.on("GET", ONE, stored(data={}))
    api.on("PUT", ONE, status(409, "the object has been modified"))
    previous = read_config_map(client, namespace="ops", name="rebalancer-state", deadline=deadline)
    with pytest.raises(KubernetesConflict, match="configmaps ops/rebalancer-state"):
        write_config_map(client, namespace="ops", name="rebalancer-state", data={}, previous=previous, deadline=deadline)
    assert len(api.requests("PUT")) == 1


def test_a_map_that_somebody_created_first_is_a_conflict(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Two replicas start at once."""
    api.on("POST", COLLECTION, status(409, "already exists", reason="AlreadyExists"))
    with pytest.raises(KubernetesConflict):
        write_config_map(client, namespace="ops", name="rebalancer-state", data={}, previous=None, deadline=deadline)
