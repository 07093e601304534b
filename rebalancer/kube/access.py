"""Who we are to the API server and what it lets us do: asked before the first cycle, not found out in the middle of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.kube.operations import object_path

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """``major`` and ``minor`` without the suffixes that distributions add (``29+`` is 29); ``git_version`` as the server says it."""

    major: int
    minor: int
    git_version: str


class _ReviewStatus(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _ReviewStatus


class _VersionWire(msgspec.Struct):
    major: str
    minor: str
    gitVersion: str  # noqa: N815 - the name on the wire


class _Metadata(msgspec.Struct):
    uid: str


class _Object(msgspec.Struct):
    metadata: _Metadata


def can_i(
    client: KubeClient,
    *,
    verb: str,
    resource: str,
    deadline: Deadline,
    group: str = "",
    subresource: str = "",
    namespace: str = "",
    name: str = "",
) -> bool:
    """Whether our own user may do this. No namespace means all of them. Raises KubernetesError if it cannot be asked."""
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace, "name": name}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    return client.review(REVIEWS, body=body, deadline=deadline).into(_Review).status.allowed


def server_version(client: KubeClient, *, deadline: Deadline) -> ServerVersion:
    """The version of the API server; -1 for a number that it does not give. Raises KubernetesError."""
    said = client.get("/version", deadline=deadline).into(_VersionWire)
    return ServerVersion(major=_number(said.major), minor=_number(said.minor), git_version=said.gitVersion)


def cluster_uid(client: KubeClient, *, deadline: Deadline) -> str:
    """The UID of the namespace kube-system, which is born and dies with the cluster. Raises KubernetesError."""
    path = object_path(api_version="v1", plural="namespaces", name="kube-system")
    return client.get(path, deadline=deadline).into(_Object).metadata.uid


def _number(text: str) -> int:
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return int(digits) if digits else -1
