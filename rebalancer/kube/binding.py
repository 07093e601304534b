"""Binding one pod to one node, and reading the answer exactly.

A binding is a single write: the API server sets the node and copies the annotations of the Binding to the pod at once, so a pod is never
seen with one and without the other, and there is nothing to take back when it fails. The uid and the resourceVersion of the pod go along
as preconditions: a binding that was sent for a pod as it once was can never take effect on what has become of it, however late it
arrives.

Source of the rules: `BindingREST` in `pkg/registry/core/pod/storage/storage.go` of Kubernetes 1.36.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesConflict, KubernetesError, KubernetesNotFound
from rebalancer.kube.failures import NotSent, leaves_open
from rebalancer.kube.operations import pod_path
from rebalancer.kube.patches import FIELD_MANAGER, MERGE_PATCH
from rebalancer.kube.retries import Backoff, retry

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient


class BindingOutcome(enum.Enum):
    """What came of a request. A closed set."""

    BOUND = "bound"
    GONE = "gone"
    """No pod of that name is there."""
    CONFLICT = "conflict"
    """The pod is another one by now, or in another state, or bound: reading it tells."""
    REFUSED = "refused"
    """It was not sent, or not accepted: the pod is not bound by it, now or later."""
    OPEN = "open"
    """It may have taken place, or may yet."""


@dataclass(frozen=True, slots=True)
class Binding:
    """``message``: one sentence for everything but BOUND."""

    outcome: BindingOutcome
    message: str = ""


def bind_pod(
    client: KubeClient,
    *,
    namespace: str,
    name: str,
    uid: str,
    version: str,
    node: str,
    annotations: Mapping[str, str],
    deadline: Deadline,
) -> Binding:
    """Bind the pod ``uid`` in its ``version`` (resourceVersion) to ``node``, with ``annotations``. Sent once. Raises Interrupted alone."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version, "annotations": dict(annotations)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"{pod_path(namespace=namespace, name=name)}/binding"
    try:
        client.request("POST", path, body=body, deadline=deadline, write=True).into(dict)
    except KubernetesNotFound as error:
        return Binding(BindingOutcome.GONE, error.message)
    except KubernetesConflict as error:
        return Binding(BindingOutcome.CONFLICT, error.message)
    except NotSent as error:
        return Binding(BindingOutcome.REFUSED, str(error))
    except KubernetesError as error:
        return Binding(BindingOutcome.OPEN if leaves_open(error) else BindingOutcome.REFUSED, str(error))
    return Binding(BindingOutcome.BOUND)


def overtake(client: KubeClient, *, namespace: str, name: str, version: str, key: str, deadline: Deadline) -> bool:
    """Move a pod on from ``version``, so that a binding which may still be on its way to it comes to nothing. True if that is done.

    The annotation ``key`` is set and taken away again: an API server makes no new version of an object in which nothing changes. False when
    the pod is no longer in that version, or gone: then it has moved on by itself. Raises KubernetesError.
    """
    path = pod_path(namespace=namespace, name=name)
    try:
        _patch(client, path, {"metadata": {"resourceVersion": version, "annotations": {key: version}}}, deadline=deadline)
    except (KubernetesConflict, KubernetesNotFound):
        return False
    # Sent again as often as it takes, since it can do nothing twice. If it fails for good the mark stays, and means nothing.
    with suppress(KubernetesError):
        retry(
            lambda: _patch(client, path, {"metadata": {"annotations": {key: None}}}, deadline=deadline),
            deadline=deadline,
            backoff=Backoff(),
        )
    return True


def _patch(client: KubeClient, path: str, body: object, *, deadline: Deadline) -> None:
    query = (("fieldManager", FIELD_MANAGER),)
    client.request("PATCH", path, query=query, body=body, content_type=MERGE_PATCH, deadline=deadline, write=True).into(dict)
