"""From which version to watch what is not listed: for followers to whom only what happens from now on is news."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.lists import Resource
from rebalancer.kube.watch_events import version_number

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

T = TypeVar("T", bound=msgspec.Struct)

_ONE = (("limit", "1"),)
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _ListHead(msgspec.Struct, frozen=True):
    metadata: _ListMeta


def version_now(client: KubeClient, resource: Resource[T], *, deadline: Deadline) -> int:
    """The version of a list of at most one object, which is that of the list of all. Raises KubernetesError."""
    answer = client.get(resource.path, query=(*resource.query, *_ONE), accept=_METADATA, deadline=deadline)
    told = answer.into(_ListHead).metadata.resource_version
    version = version_number(told)
    if version is None:
        raise KubernetesError(f"{client.server} tells no usable resourceVersion for {resource.name}")
    return version
