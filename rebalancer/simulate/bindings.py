"""The ``pods/binding`` subresource, decision by decision in the order of the real one (Kubernetes 1.36).

A binding is one write: the node, and the annotations and labels that come with it. Its uid and resourceVersion are preconditions. That
the node exists, or has room, is nobody's business here.
"""

from __future__ import annotations

from rebalancer.simulate.api_errors import ApiError, success
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import is_terminating, with_condition
from rebalancer.simulate.world import NotFound, World


def bind(world: World, *, namespace: str, name: str, body: Json, dry_run: bool = False) -> Json:
    """Carry out a Binding; the Status of success, or ApiError with the code of the real server."""
    metadata, target = body.get("metadata") or {}, body.get("target") or {}
    if metadata.get("name") != name:
        raise ApiError(400, "name in URL does not match name in Binding object")
    if target.get("kind") not in (None, "", "Node"):
        raise ApiError(500, f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise ApiError(500, "target.name: Required value")
    try:
        pod = world.get("pods", name, namespace)
    except NotFound as error:
        raise ApiError(404, f'pods "{name}" not found') from error
    _check(pod, metadata)
    if not dry_run:
        world.replace("pods", _bound(world, pod, metadata, str(target["name"])))
    return success()


def _check(pod: Json, metadata: Json) -> None:
    name = pod["metadata"]["name"]
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, actual = metadata.get(field), pod["metadata"][field]
        if wanted and wanted != actual:
            raise _conflict(name, f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {actual}")
    if is_terminating(pod):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
    if pod["spec"].get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _bound(world: World, pod: Json, metadata: Json, node: str) -> Json:
    bound = with_condition(pod, "PodScheduled", "True", world.now)
    status = {key: value for key, value in bound["status"].items() if key != "nominatedNodeName"}
    marks = {
        part: {**(pod["metadata"].get(part) or {}), **(metadata.get(part) or {})}
        for part in ("annotations", "labels")
        if metadata.get(part) or pod["metadata"].get(part)
    }
    return {**bound, "metadata": {**pod["metadata"], **marks}, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def _conflict(name: str, why: str) -> ApiError:
    return ApiError(409, f'Operation cannot be fulfilled on pods/binding "{name}": {why}')
