"""The two small marks that are left on objects: annotations, and soft taints on a node.

An annotation is a merge patch of single keys, which disturbs no other writer. Taints are one atomic list on the node, so they are read,
changed and written back with the version that was read: a writer in between makes the write fail, and it is done again from what is there
then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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


@dataclass(frozen=True, slots=True)
class TaintChange:
    """Keys that a node did not have, and keys that it has no more. False when nothing was patched."""

    put: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.taken)


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


def set_soft_taints(
    client: KubeClient, node: str, wanted: Collection[SoftTaint], *, own: Collection[str], deadline: Deadline
) -> TaintChange:
    """See that of the soft taints whose keys are in ``own``, ``node`` has exactly the ``wanted`` ones; all of it in one patch or none.

    Harder effects of the same keys are not ours. Raises KubernetesConflict when other writers won every attempt, and the other
    KubernetesErrors.
    """
    path = node_path(node)
    for attempt in range(1, TAINT_ATTEMPTS + 1):
        seen = client.get(path, deadline=deadline).into(_Node)
        change, after = _changed(seen.spec.taints or [], wanted, own=own)
        if not change:
            return change
        body = {"metadata": {"resourceVersion": seen.metadata.resourceVersion}, "spec": {"taints": after or None}}
        try:
            _patch(client, path, body, field_manager=FIELD_MANAGER, deadline=deadline)
        except KubernetesConflict:
            if attempt == TAINT_ATTEMPTS or not deadline.wait(_RACE.delay(attempt, chance=0.0)):
                raise
            continue
        return change
    raise AssertionError("unreachable: the last attempt returns or raises")


def _changed(before: list[_TaintWire], wanted: Collection[SoftTaint], *, own: Collection[str]) -> tuple[TaintChange, list[_TaintWire]]:
    """What changes, and the whole list afterwards: ours that are right and those of others stay where they are."""
    asked = {taint.key: taint.value for taint in wanted}
    kept: list[_TaintWire] = []
    right: set[str] = set()
    taken: list[str] = []
    for taint in before:
        key = str(taint.get("key"))
        if key not in own or taint.get("effect") != SOFT_EFFECT:
            kept.append(taint)
        elif key in asked and key not in right and (taint.get("value") or "") == asked[key]:
            kept.append(taint)
            right.add(key)
        else:
            taken.append(key)
    put = [taint for taint in wanted if taint.key not in right]
    new: list[_TaintWire] = [{"key": t.key, "effect": SOFT_EFFECT, **({"value": t.value} if t.value else {})} for t in put]
    new_keys = tuple(taint.key for taint in put)
    return TaintChange(put=new_keys, taken=tuple(key for key in taken if key not in new_keys)), [*kept, *new]


def _patch(client: KubeClient, path: str, body: object, *, field_manager: str, deadline: Deadline) -> None:
    query = (("fieldManager", field_manager),)
    answer = client.request("PATCH", path, query=query, body=body, content_type=MERGE_PATCH, deadline=deadline, write=True)
    answer.into(dict)  # what stands before an API server may answer with success to anything
