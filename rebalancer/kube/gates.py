"""Pods that wait at a scheduling gate of ours: how they are listed and watched, how they get a node proposed, how the gate is opened.

Both writes carry the uid of the pod that was seen, so that a successor of the same name is never touched. Which gate, which label and
which node is decided elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesNotFound
from rebalancer.kube.lists import Resource
from rebalancer.kube.operations import node_path, pod_path
from rebalancer.kube.patches import FIELD_MANAGER, MERGE_PATCH
from rebalancer.kube.wire import ConditionWire, MetaWire

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
WATCH_NAME = "gated pods"
"""What metrics and messages call the watch of these pods."""


class GateWire(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class GatedSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    scheduling_gates: tuple[GateWire, ...] | None = None


class GatedPodWire(msgspec.Struct, frozen=True, gc=False):
    """A pod, whose it is and what holds it; the rest of it does not matter here."""

    metadata: MetaWire
    spec: GatedSpecWire = GatedSpecWire()

    def held_by(self, gate: str) -> bool:
        return any(each.name == gate for each in self.spec.scheduling_gates or ())


class _NodeMeta(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _NodeSpec(msgspec.Struct):
    unschedulable: bool | None = None


class _NodeStatus(msgspec.Struct):
    conditions: tuple[ConditionWire, ...] | None = None


class _Node(msgspec.Struct):
    metadata: _NodeMeta
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


def gated_pods(selector: str) -> Resource[GatedPodWire]:
    """Pods by their label; ``selector`` is a label selector of Kubernetes, empty for all pods."""
    query = (("labelSelector", selector),) if selector else ()
    return Resource(name=WATCH_NAME, path="/api/v1/pods", item=GatedPodWire, query=query)


def nominate(client: KubeClient, *, namespace: str, name: str, uid: str, node: str, deadline: Deadline) -> None:
    """Let kube-scheduler try ``node`` first: ``status.nominatedNodeName``, which it takes whatever the scores when the pod fits there.

    Raises KubernetesNotFound, KubernetesConflict (another pod of the name) and the other KubernetesErrors.
    """
    body = {"metadata": {"uid": uid}, "status": {"nominatedNodeName": node}}
    _patch(client, f"{pod_path(namespace=namespace, name=name)}/status", body, content_type=MERGE_PATCH, deadline=deadline)


class _WaitingSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str | None = None


class _WaitingStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    nominated_node_name: str | None = None


class WaitingPodWire(msgspec.Struct, frozen=True, gc=False):
    """A pod that waits for a node: which one it has, or has been proposed."""

    metadata: MetaWire
    spec: _WaitingSpec = _WaitingSpec()
    status: _WaitingStatus = _WaitingStatus()


def read_waiting(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> WaitingPodWire | None:
    """The pod of that name as it is now; None when there is none. Raises KubernetesError."""
    try:
        return client.request("GET", pod_path(namespace=namespace, name=name), deadline=deadline).into(WaitingPodWire)
    except KubernetesNotFound:
        return None


def open_gate(client: KubeClient, *, namespace: str, name: str, uid: str, gate: str, label: str, deadline: Deadline) -> None:
    """Take the gate and the label off the pod in one patch; other gates and labels stay. ``uid`` empty: whichever pod has the name.

    A strategic merge, since a list of gates in a merge patch would take those of others along. Raises as `nominate`; a pod without the
    gate is no error.
    """
    metadata: dict[str, object] = {"labels": {label: None}}
    if uid:
        metadata["uid"] = uid
    body = {"metadata": metadata, "spec": {"schedulingGates": [{"name": gate, "$patch": "delete"}]}}
    _patch(client, pod_path(namespace=namespace, name=name), body, content_type=STRATEGIC_PATCH, deadline=deadline)


def read_gated(client: KubeClient, *, namespace: str, name: str, deadline: Deadline) -> GatedPodWire | None:
    """The pod of that name as it is now; None when there is none. Raises KubernetesError."""
    try:
        return client.request("GET", pod_path(namespace=namespace, name=name), deadline=deadline).into(GatedPodWire)
    except KubernetesNotFound:
        return None


def takes_pods(client: KubeClient, node: str, *, deadline: Deadline) -> bool:
    """Whether the node, which exists, is Ready, not cordoned and not on its way out. Raises KubernetesNotFound and KubernetesError."""
    found = client.request("GET", node_path(node), deadline=deadline).into(_Node)
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in found.status.conditions or ())
    return ready and not found.spec.unschedulable and found.metadata.deletion_timestamp is None


def _patch(client: KubeClient, path: str, body: object, *, content_type: str, deadline: Deadline) -> None:
    query = (("fieldManager", FIELD_MANAGER),)
    try:
        answer = client.request("PATCH", path, query=query, body=body, content_type=content_type, deadline=deadline, write=True)
    except KubernetesError as error:
        # The server refuses a change of the uid as an invalid object.
        if error.status == 422 and not isinstance(error, KubernetesConflict):
            raise KubernetesConflict(
                error.message, remedy="another pod has the name, or the pod is bound; look again", status=422
            ) from error
        raise
    answer.into(dict)  # what stands before an API server may answer with success to anything
