"""What the API server refuses to store (422), for the objects that a rebalancer writes: annotations, labels, taints, Events, Leases.

Only rules that a wrong rebalancer would break: a test against a lenient server proves nothing about a strict one.
"""

from __future__ import annotations

import re

from rebalancer.simulate.api_errors import ApiError
from rebalancer.simulate.kinds import Json

_NAME = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
_PREFIX = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_ANNOTATIONS_LIMIT = 256 * 1024
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EVENT_FIELDS = ("eventTime", "reportingController", "reportingInstance", "action", "reason", "type")


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _PREFIX.match(prefix)):
        return False
    return len(name) <= 63 and _NAME.match(name) is not None


def _is_value(value: object) -> bool:
    return isinstance(value, str) and (value == "" or (len(value) <= 63 and _NAME.match(value) is not None))


def _metadata_faults(metadata: Json) -> list[str]:
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    faults = [f"metadata.annotations: Invalid value: {key!r}" for key in annotations if not _is_key(key)]
    faults += [f"metadata.annotations[{key}]: must be a string" for key, value in annotations.items() if not isinstance(value, str)]
    size = sum(len(key) + len(value) for key, value in annotations.items() if isinstance(value, str))
    if size > _ANNOTATIONS_LIMIT:
        faults.append(f"metadata.annotations: Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes")
    faults += [f"metadata.labels: Invalid value: {key}={value}" for key, value in labels.items() if not (_is_key(key) and _is_value(value))]
    return faults


def _taint_faults(taints: list[Json]) -> list[str]:
    faults, seen = [], set()
    for taint in taints:
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        if not _is_key(key) or not _is_value(value) or effect not in _EFFECTS:
            faults.append(f"spec.taints: Invalid value: {key}={value}:{effect}")
        if (key, effect) in seen:
            faults.append(f"spec.taints: Duplicate value: {key}:{effect}")
        seen.add((key, effect))
    return faults


def _event_faults(event: Json) -> list[str]:
    faults = [f"{name}: Required value" for name in _EVENT_FIELDS if not event.get(name)]
    if event.get("type") not in ("Normal", "Warning"):
        faults.append(f"type: Invalid value: {event.get('type')!r}")
    limits = {"reason": 128, "action": 128, "reportingInstance": 128, "note": 1024}
    faults += [f"{name}: can have at most {limit} characters" for name, limit in limits.items() if len(str(event.get(name) or "")) > limit]
    regarding = event.get("regarding") or {}
    namespace = event.get("metadata", {}).get("namespace", "")
    if regarding.get("namespace", "") and regarding["namespace"] != namespace:
        faults.append(f"metadata.namespace: {namespace!r} does not match regarding.namespace {regarding['namespace']!r}")
    if not regarding.get("namespace") and namespace not in ("default", "kube-system"):
        faults.append(f"metadata.namespace: {namespace!r} must be default for an object without a namespace")
    return faults


def _lease_faults(spec: Json) -> list[str]:
    faults = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and (not isinstance(duration, int) or duration <= 0):
        faults.append(f"spec.leaseDurationSeconds: Invalid value: {duration!r}: must be greater than 0")
    transitions = spec.get("leaseTransitions")
    if transitions is not None and (not isinstance(transitions, int) or transitions < 0):
        faults.append(f"spec.leaseTransitions: Invalid value: {transitions!r}")
    faults += [
        f"spec.{name}: {spec[name]!r} is not a time with microseconds"
        for name in ("acquireTime", "renewTime")
        if spec.get(name) is not None and not re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$", str(spec[name]))
    ]
    return faults


def validate(plural: str, value: Json) -> None:
    """Raises ApiError 422 that lists every fault of the object."""
    metadata = value.get("metadata") or {}
    faults = _metadata_faults(metadata)
    if plural == "nodes":
        faults += _taint_faults(value.get("spec", {}).get("taints") or [])
    elif plural == "events":
        faults += _event_faults(value)
    elif plural == "leases":
        faults += _lease_faults(value.get("spec") or {})
    elif plural == "configmaps":
        faults += [f"data[{key}]: must be a string" for key, text in (value.get("data") or {}).items() if not isinstance(text, str)]
    if faults:
        name = metadata.get("name", "")
        causes = [{"reason": "FieldValueInvalid", "message": fault, "field": fault.split(":", 1)[0]} for fault in faults]
        raise ApiError(422, f'{value.get("kind", plural)} "{name}" is invalid: {"; ".join(faults)}', causes=causes)
