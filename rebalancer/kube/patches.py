"""The two small marks that are left on objects: annotations, and one soft taint on a node.

An annotation is a merge patch of single keys, which disturbs no other writer. Taints are one atomic list on the node, so they are read,
changed and written back with the version that was read: a writer in between makes the write fail, and it is done again from what is there
then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError
from rebalancer.kube.operations import node_path
from rebalancer.kube.retries import Backoff

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

FIELD_MANAGER = "rebalancer"
MERGE_PATCH = "application/merge-patch+json"
SOFT_EFFECT = "PreferNoSchedule"
TAINT_ATTEMPTS = 5

_RACE = Backoff(first_s=0.05, factor=2.0, ceiling_s=1.0)

_TaintWire = dict[str, object]
"""A taint as it is on the wire; unknown fields of foreign taints must survive the round trip."""


@dataclass(frozen=True, slots=True)
class SoftTaint:
    """A taint of effect PreferNoSchedule: it steers, and moves nothing."""

    key: str
    value: str = ""


class _Metadata(msgspec.Struct):
    resourceVersion: str  # noqa: N815 - the name on the wire


class _Spec(msgspec.Struct):
    taints: list[_TaintWire] | None = None


class _Node(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


def annotate(
    client: KubeClient,
    path: str,
    annotations: Mapping[str, str | None],
    *,
    deadline: Deadline,
    field_manager: str = FIELD_MANAGER,
    uid: str = "",
) -> bool:
    """Set annotations of the object at ``path``; None removes one. True if a patch was sent.

    With ``uid`` a new object of the same name is left alone: KubernetesConflict. Raises KubernetesNotFound and the other KubernetesErrors.
    """
    if not annotations:
        return False
    metadata: dict[str, object] = {"annotations": dict(annotations)}
    if uid:
        metadata["uid"] = uid
    try:
        _patch(client, path, {"metadata": metadata}, field_manager=field_manager, deadline=deadline)
    except KubernetesConflict:
        raise
    except KubernetesError as error:
        # The server refuses a change of the uid as an invalid object.
        if uid and error.status == 422:
            raise KubernetesConflict(error.message, remedy="read the object again and decide anew", status=422) from error
        raise
    return True


def add_soft_taint(client: KubeClient, node: str, taint: SoftTaint, *, deadline: Deadline) -> bool:
    """See that ``node`` has the taint with this value. False if it had. Raises KubernetesError."""
    wanted: _TaintWire = {"key": taint.key, "effect": SOFT_EFFECT, **({"value": taint.value} if taint.value else {})}

    def change(taints: list[_TaintWire]) -> list[_TaintWire]:
        ours = [index for index, old in enumerate(taints) if _is_ours(old, key=taint.key)]
        if not ours:
            return [*taints, wanted]
        if len(ours) == 1 and (taints[ours[0]].get("value") or "") == taint.value:
            return taints
        return [old for old in taints if not _is_ours(old, key=taint.key)] + [wanted]

    return _change_taints(client, node, change, deadline=deadline)


def remove_soft_taint(client: KubeClient, node: str, key: str, *, deadline: Deadline) -> bool:
    """See that ``node`` has no soft taint of ``key``; harder effects of the same key are not ours. False if it had none."""
    return _change_taints(client, node, lambda taints: [old for old in taints if not _is_ours(old, key=key)], deadline=deadline)


def _is_ours(taint: _TaintWire, *, key: str) -> bool:
    return taint.get("key") == key and taint.get("effect") == SOFT_EFFECT


def _change_taints(client: KubeClient, node: str, change: Callable[[list[_TaintWire]], list[_TaintWire]], *, deadline: Deadline) -> bool:
    path = node_path(node)
    for attempt in range(1, TAINT_ATTEMPTS + 1):
        seen = client.get(path, deadline=deadline).into(_Node)
        before = seen.spec.taints or []
        after = change(before)
        if after == before:
            return False
        body = {"metadata": {"resourceVersion": seen.metadata.resourceVersion}, "spec": {"taints": after or None}}
        try:
            _patch(client, path, body, field_manager=FIELD_MANAGER, deadline=deadline)
        except KubernetesConflict:
            if attempt == TAINT_ATTEMPTS or not deadline.wait(_RACE.delay(attempt, chance=0.0)):
                raise
            continue
        return True
    raise AssertionError("unreachable: the last attempt returns or raises")


def _patch(client: KubeClient, path: str, body: object, *, field_manager: str, deadline: Deadline) -> None:
    query = (("fieldManager", field_manager),)
    answer = client.request("PATCH", path, query=query, body=body, content_type=MERGE_PATCH, deadline=deadline, write=True)
    answer.into(dict)  # what stands before an API server may answer with success to anything
