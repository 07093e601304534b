"""Whose pod it is: what tells that a pod may be the replacement of another one.

A replacement has a new name and a new uid; what it shares with the pod that it replaces is its controller. After a roll-out even that is
another ReplicaSet, of the same Deployment. Owners are not looked up here, so the Deployment is known by what its controller always does:
it names a ReplicaSet after itself and the label ``pod-template-hash`` of its pods, with a dash between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.state.tables import WorkloadRef

_HASH_LABEL = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Lineage:
    """``workload``: the root owner as far as names tell it, as in `state.tables`."""

    uid: str
    namespace: str
    controller_uid: str
    workload: WorkloadRef


def lineage(*, uid: str, namespace: str, kind: str, name: str, controller_uid: str, labels: Mapping[str, str]) -> Lineage:
    """Of a pod whose controller is the ``kind`` called ``name``."""
    return Lineage(uid, namespace, controller_uid, _root(kind, namespace, name, labels))


def _root(kind: str, namespace: str, name: str, labels: Mapping[str, str]) -> WorkloadRef:
    ending = f"-{labels.get(_HASH_LABEL, '')}"
    if kind == "ReplicaSet" and len(ending) > 1 and name.endswith(ending) and len(name) > len(ending):
        return WorkloadRef("Deployment", namespace, name.removesuffix(ending))
    return WorkloadRef(kind, namespace, name)
