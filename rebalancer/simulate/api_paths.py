"""Reading the path of an API request: which kind, namespace, name and subresource it means, and what verb that is for authorisation."""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.simulate.api_errors import ApiError
from rebalancer.simulate.kinds import KINDS, Kind

_BY_PLACE = {(kind.prefix, kind.plural): kind for kind in KINDS}
_BY_PLACE[("/apis/policy/v1beta1", "poddisruptionbudgets")] = _BY_PLACE[("/apis/policy/v1", "poddisruptionbudgets")]
_BY_PLACE[("/api/v1", "events")] = _BY_PLACE[("/apis/events.k8s.io/v1", "events")]


@dataclass(frozen=True, slots=True)
class Place:
    """What a path points at. ``namespace`` is None for all namespaces; ``name`` is empty for the collection."""

    kind: Kind
    namespace: str | None
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


def read_place(path: str) -> Place:
    """Raises ApiError 404 when no kind is served under that path."""
    steps = [step for step in path.split("/") if step]
    prefix_length = 2 if steps[:1] == ["api"] else 3
    prefix, rest = "/" + "/".join(steps[:prefix_length]), steps[prefix_length:]
    if len(rest) >= 3 and rest[0] == "namespaces" and (prefix, rest[2]) in _BY_PLACE:
        kind, namespace, tail = _BY_PLACE[(prefix, rest[2])], rest[1], rest[3:]
        if not kind.namespaced:
            raise ApiError(404, "the server could not find the requested resource")
    elif rest and (prefix, rest[0]) in _BY_PLACE:
        kind, namespace, tail = _BY_PLACE[(prefix, rest[0])], None, rest[1:]
        if kind.namespaced and tail:
            raise ApiError(404, "the server could not find the requested resource")
    else:
        raise ApiError(404, "the server could not find the requested resource")
    if len(tail) > 2:
        raise ApiError(404, "the server could not find the requested resource")
    name, subresource = (*tail, "", "")[:2]
    return Place(kind=kind, namespace=namespace, name=name, subresource=subresource)


def verb_of(method: str, place: Place, *, watching: bool) -> str:
    if method == "GET":
        return "watch" if watching else ("get" if place.name else "list")
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method, method.lower())
