"""Small pieces for tests of the embedded cluster: an HTTP client without opinions, and objects in one line each."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.kubelet import running_status
from rebalancer.simulate.pods import with_condition
from rebalancer.simulate.world import World

Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Json:
        return json.loads(self.body)


class Http:
    """One kept-alive connection to a server."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)

    def __call__(
        self, method: str, path: str, body: object = None, *, query: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        target = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        self._connection.request(method, target, body=data, headers=headers or {})
        with self._connection.getresponse() as response:
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def close(self) -> None:
        self._connection.close()


@contextmanager
def serving(world: World, **options: Any) -> Iterator[tuple[EmbeddedCluster, Http]]:
    """The embedded cluster of a world, and a client of its API server."""
    with EmbeddedCluster(world, **options) as cluster:
        client = Http(cluster.api_url)
        try:
            yield cluster, client
        finally:
            client.close()


def node(
    world: World, name: str, *, cpu: str = "8", memory: str = "32Gi", pods: str = "110", labels: Json | None = None, **spec: Any
) -> Json:
    amounts = {"cpu": cpu, "memory": memory, "pods": pods}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": f"10.9.0.{world.count('nodes') + 1}"}],
    }
    all_labels = {"kubernetes.io/hostname": name, **(labels or {})}
    return world.create("nodes", {"metadata": {"name": name, "labels": all_labels}, "spec": spec, "status": status})


def pod_value(name: str, *, namespace: str = "a", cpu: str = "", memory: str = "", labels: Json | None = None, **spec: Any) -> Json:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container = {"name": "main", "image": "x", "resources": {"requests": requests} if requests else {}}
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}, "status": {"phase": "Pending"}}


def pod(world: World, name: str, *, on: str = "", ready: bool | None = True, owner: Json | None = None, **rest: Any) -> Json:
    """A pod; bound and running where ``on`` names a node (``ready`` None: bound, not started)."""
    value = pod_value(name, **rest)
    if owner is not None:
        value["metadata"]["ownerReferences"] = [owner]
    if on:
        value["spec"]["nodeName"] = on
        if ready is not None:
            value["status"] = running_status(value, world.now, host_ip="", pod_ip="")
            if not ready:
                value = with_condition(value, "Ready", "False", world.now)
    return world.create("pods", value)


def template(labels: Json, *, cpu: str = "100m", **spec: Any) -> Json:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def owner_of(value: Json) -> Json:
    return {
        "apiVersion": value["apiVersion"],
        "kind": value["kind"],
        "name": value["metadata"]["name"],
        "uid": value["metadata"]["uid"],
        "controller": True,
    }


def deployment(world: World, name: str, replicas: int, *, namespace: str = "a", **spec: Any) -> Json:
    """A Deployment with its ReplicaSet; returns the ReplicaSet."""
    selector = {"matchLabels": {"app": name}}
    made = template({"app": name}, **spec)
    body = {"replicas": replicas, "selector": selector, "template": made}
    parent = world.create("deployments", {"metadata": {"name": name, "namespace": namespace}, "spec": body})
    metadata = {"name": f"{name}-rs", "namespace": namespace, "labels": {"app": name}, "ownerReferences": [owner_of(parent)]}
    return world.create("replicasets", {"metadata": metadata, "spec": body})


def stateful_set(world: World, name: str, replicas: int, *, namespace: str = "a", **spec: Any) -> Json:
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template({"app": name}), **spec}
    return world.create("statefulsets", {"metadata": {"name": name, "namespace": namespace}, "spec": body})


def budget(world: World, name: str, selector: Json | None = None, *, namespace: str = "a", **spec: Any) -> Json:
    value = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector or {}, **spec}}
    return world.create("poddisruptionbudgets", value)


def eviction(name: str, *, uid: str = "", **options: Any) -> Json:
    body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if uid:
        options["preconditions"] = {"uid": uid}
    return {**body, "deleteOptions": options} if options else body


def evict(client: Http, name: str, *, namespace: str = "a", query: dict[str, Any] | None = None, **options: Any) -> Reply:
    return client("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction(name, **options), query=query)


def status_of(world: World, name: str, *, namespace: str = "a") -> Json:
    return world.get("poddisruptionbudgets", name, namespace)["status"]
