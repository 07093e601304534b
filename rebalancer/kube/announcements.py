"""An announcement of placement hints: a small custom object, read, replaced only if nobody wrote in between, and deleted.

``awaited`` maps controllers to the time until which their pods are gated and to the evicted pods that wait for a replacement. What is in
it, and when, is decided elsewhere; the definition of the kind is part of what an operator installs for hints.
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

GROUP = "rebalancer.dev"
API_VERSION = "rebalancer.dev/v1alpha1"
KIND = "HintAnnouncement"
PLURAL = "hintannouncements"


class AwaitedWire(msgspec.Struct, frozen=True):
    """``until``: RFC 3339. ``pods``: uids."""

    until: str = ""
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredAnnouncement:
    """As it was read. ``version`` is the precondition of the next write."""

    awaited: Mapping[str, AwaitedWire]
    version: str


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Wire(msgspec.Struct):
    metadata: _Meta
    awaited: dict[str, AwaitedWire] | None = None


def read_announcement(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> StoredAnnouncement | None:
    """None if there is none, or no such kind. Raises KubernetesError."""
    try:
        return _stored(client.get(_path(namespace=namespace, name=name), deadline=deadline))
    except KubernetesNotFound:
        return None


def write_announcement(
    client: KubeClient,
    *,
    namespace: str,
    name: str,
    awaited: Mapping[str, AwaitedWire],
    previous: StoredAnnouncement | None,
    deadline: Deadline,
) -> StoredAnnouncement:
    """Create it (``previous`` None) or replace ``previous``, and return what is stored now.

    Raises KubernetesConflict if it exists already, or was written since; KubernetesNotFound if it is gone, or the kind is not installed.
    """
    metadata = {"name": name, "namespace": namespace, **({"resourceVersion": previous.version} if previous else {})}
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "awaited": dict(awaited)}
    plain = msgspec.to_builtins(body)
    if previous:
        return _stored(client.request("PUT", _path(namespace=namespace, name=name), body=plain, deadline=deadline, write=True))
    collection = f"/apis/{API_VERSION}/namespaces/{quote(namespace, safe='')}/{PLURAL}"
    return _stored(client.request("POST", collection, body=plain, deadline=deadline, write=True))


def delete_announcement(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> bool:
    """See that there is none. False if there was none. Raises KubernetesError."""
    try:
        client.request("DELETE", _path(namespace=namespace, name=name), deadline=deadline, write=True)
    except KubernetesNotFound:
        return False
    return True


def _path(*, namespace: str, name: str) -> str:
    return object_path(api_version=API_VERSION, plural=PLURAL, namespace=namespace, name=name)


def _stored(answer: Answer) -> StoredAnnouncement:
    found = answer.into(_Wire)
    return StoredAnnouncement(awaited=found.awaited or {}, version=found.metadata.resource_version)
