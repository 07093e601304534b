"""Who wrote an annotation of a node: what the API server itself remembers of it, in ``metadata.managedFields``.

A list of metadata alone, for it is asked seldom: at a start, when values appear that we did not write, and before anything is removed.
A field belongs to whoever changed it last; a second writer of the same value is named beside the first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.kube.lists import Resource, list_all

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient


class _AnnotationFields(msgspec.Struct, gc=False, rename={"annotations": "f:annotations"}):
    annotations: dict[str, msgspec.Raw] | None = None


class _Fields(msgspec.Struct, gc=False, rename={"metadata": "f:metadata"}):
    metadata: _AnnotationFields | None = None


class _Managed(msgspec.Struct, gc=False, rename={"fields": "fieldsV1"}):
    manager: str = ""
    fields: _Fields | None = None


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    managed_fields: list[_Managed] | None = None


class _Node(msgspec.Struct, gc=False):
    metadata: _Meta


_NODES: Final = Resource(name="nodes", path="/api/v1/nodes", item=_Node, metadata_only=True)


@dataclass(frozen=True, slots=True)
class AnnotatedNode:
    """A node that carries some of the annotations that were asked about. ``writers``: key -> who wrote it; empty where that is not told."""

    name: str
    labels: Mapping[str, str]
    values: Mapping[str, str]
    writers: Mapping[str, frozenset[str]]

    def written_by(self, manager: str) -> tuple[str, ...]:
        return tuple(key for key, writers in self.writers.items() if manager in writers)


def annotated_nodes(client: KubeClient, keys: Collection[str], *, deadline: Deadline) -> list[AnnotatedNode]:
    """The nodes that carry any of ``keys``. Raises what `list_all` raises."""
    wanted = frozenset(keys)
    found: list[AnnotatedNode] = []
    for node in list_all(client, _NODES, deadline=deadline).items:
        meta = node.metadata
        values = {key: value for key, value in (meta.annotations or {}).items() if key in wanted}
        if values:
            found.append(AnnotatedNode(meta.name, meta.labels or {}, values, _writers(meta, values)))
    return found


def _writers(meta: _Meta, keys: Collection[str]) -> Mapping[str, frozenset[str]]:
    writers: dict[str, set[str]] = {key: set() for key in keys}
    for managed in meta.managed_fields or ():
        fields = managed.fields.metadata if managed.fields is not None else None
        for name in (fields.annotations or {}) if fields is not None else ():
            if (key := name.removeprefix("f:")) in writers:
                writers[key].add(managed.manager)
    return {key: frozenset(names) for key, names in writers.items()}
