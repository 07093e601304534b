"""The life of a pod object: its conditions, its requests, and how it is deleted.

Shared by the eviction API, the owners, the kubelet and the scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.world import World
from rebalancer.units import format_time, parse_quantity

DEFAULT_GRACE_S = 30
TERMINAL = ("Succeeded", "Failed")
DISRUPTION_TARGET = "DisruptionTarget"
_NONZERO = {"cpu": 100.0, "memory": 200.0 * 2**20}
"""Millicores and bytes that the scheduler's scores assume for a container that requests nothing."""

Request = dict[str, float]
"""resource name -> amount; cpu in millicores, everything else in base units, both whole numbers, rounded up."""


def is_ready(pod: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions") or ())


def is_terminating(pod: Json) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def is_active(pod: Json) -> bool:
    """Neither terminating nor finished: what an owner counts."""
    return phase(pod) not in TERMINAL and not is_terminating(pod)


def controller_of(value: Json) -> Json | None:
    """The owner reference with ``controller: true``."""
    return next((owner for owner in value["metadata"].get("ownerReferences") or () if owner.get("controller")), None)


def with_condition(pod: Json, kind: str, status: str, now: float, *, reason: str = "", message: str = "") -> Json:
    """The pod with one condition set; its transition time moves only when the status changes."""
    conditions: list[Json] = list(pod.get("status", {}).get("conditions") or ())
    old = next((c for c in conditions if c["type"] == kind), None)
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else format_time(now)
    new: Json = {"type": kind, "status": status, "lastTransitionTime": since}
    if reason:
        new["reason"] = reason
    if message:
        new["message"] = message
    kept = [c for c in conditions if c["type"] != kind]
    return {**pod, "status": {**pod.get("status", {}), "conditions": [*kept, new]}}


def grace_seconds(pod: Json, asked: int | None) -> int:
    """The grace period that a deletion gets: the pod's own unless asked otherwise; negative is 1; unbound or finished pods have none."""
    if phase(pod) in TERMINAL or not pod["spec"].get("nodeName"):
        return 0
    own = pod["spec"].get("terminationGracePeriodSeconds")
    grace = asked if asked is not None else (DEFAULT_GRACE_S if own is None else int(own))
    return 1 if grace < 0 else grace


def delete_pod(world: World, pod: Json, *, grace_s: int | None = None) -> Json:
    """Begin the graceful deletion of a pod, shorten one that is running, or remove the object at once when there is no grace."""
    metadata = pod["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    if is_terminating(pod):
        grace = int(metadata["deletionGracePeriodSeconds"]) if grace_s is None else grace_seconds(pod, grace_s)
        if grace >= int(metadata["deletionGracePeriodSeconds"]):
            return pod
    else:
        grace = grace_seconds(pod, grace_s)
    if grace == 0:
        return world.remove("pods", name, namespace)
    leaving = {**metadata, "deletionTimestamp": format_time(world.now + grace), "deletionGracePeriodSeconds": grace}
    return world.replace("pods", {**pod, "metadata": leaving})


# ---- requests -----------------------------------------------------------------------------------------------------------


def whole(name: str, quantity: str | float) -> float:
    """A quantity as the scheduler counts it: millicores or whole units, rounded up."""
    value = parse_quantity(str(quantity))
    return float(ceil(value * 1000 - 1e-6)) if name == "cpu" else float(ceil(value - 1e-6))


def amounts(resources: Json | None) -> Request:
    return {name: whole(name, quantity) for name, quantity in (resources or {}).items()}


def _container_request(container: Json, *, nonzero: bool) -> Request:
    request = amounts((container.get("resources") or {}).get("requests"))
    if nonzero:
        request = {**_NONZERO, **request}
    return request


def _plus(left: Request, right: Request) -> Request:
    return {name: left.get(name, 0.0) + right.get(name, 0.0) for name in left.keys() | right.keys()}


def _peak(requests: Iterable[Request]) -> Request:
    peak: Request = {}
    for request in requests:
        peak = {name: max(peak.get(name, 0.0), request.get(name, 0.0)) for name in peak.keys() | request.keys()}
    return peak


def effective_request(pod: Json, *, nonzero: bool = False, pod_level: bool = True) -> Request:
    """What kube-scheduler counts for a pod by its spec: containers, init containers, sidecars, pod-level requests, overhead.

    ``nonzero`` puts 100 m and 200 MiB where a container names nothing (scores); ``pod_level=False`` looks at containers only.
    """
    spec = pod["spec"]
    total: Request = {}
    for container in spec.get("containers") or ():
        total = _plus(total, _container_request(container, nonzero=nonzero))
    side: Request = {}
    candidates: list[Request] = []
    for container in spec.get("initContainers") or ():
        request = _container_request(container, nonzero=nonzero)
        if container.get("restartPolicy") == "Always":
            total, side = _plus(total, request), _plus(side, request)
            candidates.append(side)
        else:
            candidates.append(_plus(request, side))
    result = _peak([total, *candidates])
    own = amounts((spec.get("resources") or {}).get("requests")) if pod_level else {}
    if own and nonzero:  # a default counts only for what the final request of the pod lacks
        plain = effective_request({**pod, "spec": {**spec, "overhead": None}}, pod_level=True)
        result = {**result, **plain, **{name: value for name, value in _NONZERO.items() if name not in plain}}
    result = {**result, **{name: value for name, value in own.items() if name in ("cpu", "memory") or name.startswith("hugepages-")}}
    return _plus(result, amounts(spec.get("overhead"))) if spec.get("overhead") else result
