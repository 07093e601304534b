"""The writing half of the API server: create, update, the four patches, delete, evictions, bindings; optimistic locking and dry run."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import yaml

from rebalancer.simulate.api_errors import ApiError
from rebalancer.simulate.api_paths import Place
from rebalancer.simulate.bindings import bind
from rebalancer.simulate.evictions import evict
from rebalancer.simulate.http_server import Answer, Request
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.patches import PatchError, apply, json_patch, merge_patch, own_annotations, strategic_merge
from rebalancer.simulate.pods import delete_pod
from rebalancer.simulate.validation import validate
from rebalancer.simulate.world import Conflict, NotFound, World

_STATUS_KEYS = ("status",)


def _json(value: object, status: int = 200) -> Answer:
    return Answer(status=status, body=msgspec.json.encode(value))


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise ApiError(400, "the body of the request is not a JSON object")
    return value


def _is_dry(request: Request) -> bool:
    return request.query.get("dryRun") == "All"


class Writer:
    """Writes to a `World` on behalf of HTTP requests. Every method holds the world's lock for the whole of its decision."""

    def __init__(self, world: World) -> None:
        self._world = world

    def answer(self, place: Place, request: Request) -> Answer:
        """Raises ApiError, NotFound, Conflict, AlreadyExists."""
        methods: dict[str, Callable[[Place, Request], Answer]] = {
            "POST": self._post,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }
        method = methods.get(request.method)
        if method is None:
            raise ApiError(405, f"the server does not allow {request.method} on the requested resource")
        with self._world.lock:
            return method(place, request)

    def _post(self, place: Place, request: Request) -> Answer:
        body = _object(request.json())
        if place.subresource == "eviction" and place.kind.plural == "pods":
            status = evict(
                self._world, namespace=place.namespace or "", name=place.name, body=body, dry_run=request.query.get("dryRun", "")
            )
            return _json(status, 201)
        if place.subresource == "binding" and place.kind.plural == "pods":
            bound = bind(self._world, namespace=place.namespace or "", name=place.name, body=body, dry_run=_is_dry(request))
            return _json(bound, 201)
        if place.name:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        metadata = dict(body.get("metadata") or {})
        if place.kind.namespaced:
            if place.namespace is None:
                raise ApiError(405, "the server does not allow this method on the requested resource")
            if metadata.setdefault("namespace", place.namespace) != place.namespace:
                raise ApiError(400, "the namespace of the provided object does not match the namespace sent on the request")
        if not metadata.get("name") and not metadata.get("generateName"):
            raise ApiError(422, f"{place.kind.kind} is invalid: metadata.name: Required value: name or generateName is required")
        metadata.pop("resourceVersion", None)
        value = {**body, "kind": place.kind.kind, "metadata": metadata}
        validate(place.kind.plural, value)
        return _json(value if _is_dry(request) else self._world.create(place.kind.plural, value), 201)

    def _put(self, place: Place, request: Request) -> Answer:
        body = _object(request.json())
        stored = self._stored(place)
        metadata = body["metadata"]
        if metadata.get("name") != place.name:
            raise ApiError(400, "the name of the object does not match the name on the URL")
        if metadata.get("uid") not in (None, "", stored["metadata"]["uid"]):
            raise Conflict("Precondition failed: UID in precondition does not match UID in object meta")
        value = _part(place, stored, body)
        value = {**value, "metadata": {**value["metadata"], "namespace": place.namespace} if place.namespace else value["metadata"]}
        return self._store(place, request, value, expect=str(metadata.get("resourceVersion") or ""))

    def _patch(self, place: Place, request: Request) -> Answer:
        content = request.headers.get("content-type", "").split(";")[0].strip()
        if content.startswith("application/apply-patch"):
            return self._apply(place, request)
        stored, patch = self._stored(place), request.json()
        try:
            if content == "application/json-patch+json":
                value = json_patch(stored, patch)
            elif content == "application/merge-patch+json":
                value = merge_patch(stored, _object(patch))
            elif content in ("application/strategic-merge-patch+json", "application/json"):
                value = strategic_merge(stored, _object(patch))
            else:
                raise ApiError(415, f"the body of the request was in an unknown format: {content!r}")
        except PatchError as error:
            raise ApiError(422, f"the server rejected our request due to an error in our request: {error}") from error
        asked = patch.get("metadata", {}) if isinstance(patch, dict) else {}
        if asked.get("uid") not in (None, "", stored["metadata"]["uid"]):
            raise Conflict(f"Precondition failed: UID in precondition: {asked['uid']}, UID in object meta: {stored['metadata']['uid']}")
        manager = request.query.get("fieldManager") or request.headers.get("user-agent", "").partition("/")[0] or "unknown"
        value = own_annotations(stored, value, manager=manager)
        version = value["metadata"].get("resourceVersion", "")
        expect = str(version) if version != stored["metadata"]["resourceVersion"] else ""
        return self._store(place, request, _part(place, stored, value), expect=expect)

    def _apply(self, place: Place, request: Request) -> Answer:
        manager = request.query.get("fieldManager", "")
        if not manager:
            raise ApiError(400, "fieldManager is required for apply patch")
        try:
            wanted = _object(yaml.safe_load(request.body))
        except yaml.YAMLError as error:
            raise ApiError(400, f"the apply patch is neither YAML nor JSON: {error}") from error
        stored = self._world.find(place.kind.plural, place.name, place.namespace or "")
        force = request.query.get("force", "") in ("1", "true", "True")
        metadata = {"name": place.name, **({"namespace": place.namespace} if place.namespace else {})}
        base = stored if stored is not None else {"metadata": metadata}
        value = apply(base, wanted, manager=manager, force=force)
        if stored is None:
            if place.subresource:
                raise NotFound(f'{place.kind.plural} "{place.name}" not found')
            validate(place.kind.plural, value)
            return _json(value if _is_dry(request) else self._world.create(place.kind.plural, value), 201)
        expect = str(wanted.get("metadata", {}).get("resourceVersion") or "")
        return self._store(place, request, _part(place, stored, value), expect=expect)

    def _stored(self, place: Place) -> Json:
        if not place.name:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        if place.subresource not in ("", "status"):
            raise ApiError(404, f"the server does not serve {place.resource}")
        return self._world.get(place.kind.plural, place.name, place.namespace or "")

    def _store(self, place: Place, request: Request, value: Json, *, expect: str) -> Answer:
        validate(place.kind.plural, value)
        if _is_dry(request):
            return _json(value)
        stored = self._world.get(place.kind.plural, place.name, place.namespace or "")
        if not expect and _same(stored, value):
            return _json(stored)
        return _json(self._world.replace(place.kind.plural, value, expect_version=expect))

    def _delete(self, place: Place, request: Request) -> Answer:
        if not place.name or place.subresource:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        options = _object(json.loads(request.body)) if request.body else {}
        stored = self._world.get(place.kind.plural, place.name, place.namespace or "")
        for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            wanted, actual = (options.get("preconditions") or {}).get(field), stored["metadata"][field]
            if wanted and wanted != actual:
                raise Conflict(f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {actual}")
        if _is_dry(request):
            return _json(stored)
        if place.kind.plural == "pods":
            return _json(delete_pod(self._world, stored, grace_s=options.get("gracePeriodSeconds")))
        return _json(self._world.remove(place.kind.plural, place.name, place.namespace or ""))


def _same(stored: Json, value: Json) -> bool:
    return stored == {**value, "metadata": {**value["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}}


def _part(place: Place, stored: Json, value: Json) -> Json:
    """What a write to this place may change: the status alone, or everything but the status."""
    if place.subresource == "status":
        return {**stored, **{key: value[key] for key in _STATUS_KEYS if key in value}}
    if place.kind.plural in ("leases", "configmaps", "events", "priorityclasses", "storageclasses"):
        return value
    kept = {key: stored[key] for key in _STATUS_KEYS if key in stored}
    return {**{key: item for key, item in value.items() if key not in _STATUS_KEYS}, **kept}
