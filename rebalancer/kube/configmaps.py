"""A ConfigMap as a small store of our own: read, and written back only if nobody wrote in between.

Labels, annotations and owners that others put on it survive. Its size is bounded by the API server (1 MiB), not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesNotFound
from rebalancer.kube.operations import object_path
from rebalancer.kube.transport import Answer

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

_SERVERS_OWN = ("managedFields", "creationTimestamp", "selfLink", "generation")


@dataclass(frozen=True, slots=True)
class StoredMap:
    """A ConfigMap as it was read. ``resource_version`` is the precondition of the next write; ``metadata`` goes back as it came."""

    namespace: str
    name: str
    data: Mapping[str, str]
    resource_version: str
    metadata: Mapping[str, object]


class _ConfigMap(msgspec.Struct):
    metadata: dict[str, object]
    data: dict[str, str] | None = None


def read_config_map(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> StoredMap | None:
    """The ConfigMap, or None if there is none. Raises KubernetesError."""
    try:
        answer = client.get(_path(namespace=namespace, name=name), deadline=deadline)
    except KubernetesNotFound:
        return None
    return _stored(answer, namespace=namespace, name=name)


def write_config_map(
    client: KubeClient,
    *,
    namespace: str,
    name: str,
    data: Mapping[str, str],
    previous: StoredMap | None,
    deadline: Deadline,
    labels: Mapping[str, str] | None = None,
) -> StoredMap:
    """Create it (``previous`` None) or replace the data of ``previous``, and return what is stored now.

    Raises KubernetesConflict if it exists already, or was written since ``previous`` was read; then read again and decide anew. After
    KubernetesUnreachable it is open whether the write took place; reading tells. ``labels`` are added.
    """
    metadata: dict[str, object] = dict(previous.metadata) if previous else {}
    kept = metadata.get("labels")
    merged = {**(kept if isinstance(kept, dict) else {}), **(labels or {})}
    if merged:
        metadata["labels"] = merged
    metadata |= {"name": name, "namespace": namespace}
    if previous:
        metadata["resourceVersion"] = previous.resource_version
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
    if previous:
        answer = client.request("PUT", _path(namespace=namespace, name=name), body=body, deadline=deadline, write=True)
    else:
        collection = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
        answer = client.request("POST", collection, body=body, deadline=deadline, write=True)
    return _stored(answer, namespace=namespace, name=name)


def _path(*, namespace: str, name: str) -> str:
    return object_path(api_version="v1", plural="configmaps", namespace=namespace, name=name)


def _stored(answer: Answer, *, namespace: str, name: str) -> StoredMap:
    found = answer.into(_ConfigMap)
    metadata = {key: value for key, value in found.metadata.items() if key not in _SERVERS_OWN}
    return StoredMap(
        namespace=namespace,
        name=name,
        data=found.data or {},
        resource_version=str(metadata.get("resourceVersion", "")),
        metadata=metadata,
    )
