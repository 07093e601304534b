"""The API server as an application behind `http_server`: authentication, authorisation, routing, reading and writing.

What a rebalancer needs is served as the real one does it: lists with pages, watches, the four patches, optimistic locking, evictions,
access reviews. Nothing here acts on its own; the agents of the world do.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rebalancer.simulate.api_errors import ApiError
from rebalancer.simulate.api_paths import Place, read_place, verb_of
from rebalancer.simulate.api_writing import Writer
from rebalancer.simulate.faults import Act, Fault
from rebalancer.simulate.http_server import Answer, HttpServer, Request
from rebalancer.simulate.kinds import KINDS, Json
from rebalancer.simulate.listing import Lists, partial_metadata
from rebalancer.simulate.rights import Rights
from rebalancer.simulate.watching import Watch, expired
from rebalancer.simulate.world import AlreadyExists, Conflict, NotFound, World

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.2+simulated",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}
_PLAIN = ("/healthz", "/livez", "/readyz")
_TRUE = ("1", "true", "True")


def _json(value: object, status: int = 200) -> Answer:
    return Answer(status=status, body=msgspec.json.encode(value))


class ApiServer:
    """Serves a `World`. ``requests`` records, ``faults`` breaks, ``rights`` forbids. ``start`` and ``stop`` once each."""

    def __init__(self, world: World, *, port: int = 0, http: Callable[..., HttpServer] = HttpServer) -> None:
        self.world = world
        self.rights = Rights()
        self._lists = Lists(world)
        self._writer = Writer(world)
        self._http = http(self, name="simulate-api", port=port, clock=lambda: world.now)
        self.requests = self._http.requests
        self.faults = self._http.faults

    @property
    def url(self) -> str:
        return self._http.url

    def tell_time_by(self, clock: Callable[[], float] | None) -> None:
        """What the header Date shows from now on, unix seconds; None: the world's time."""
        self._http.clock = clock or (lambda: self.world.now)

    def start(self) -> None:
        self._http.start()

    def cut(self) -> None:
        """Break every open connection, watches too; new ones are served, unless ``faults`` say otherwise."""
        self._http.cut()

    def stop(self) -> None:
        self._http.stop()

    # ---- Application --------------------------------------------------------------------------------------------------

    def broken(self, fault: Fault) -> Answer:
        if fault.body:
            return Answer(status=fault.status, body=fault.body, content_type=fault.content_type, headers=fault.headers)
        refusal = ApiError(fault.status, "the simulated API server was told to refuse this request").answer()
        return Answer(status=refusal.status, body=refusal.body, headers=fault.headers)

    def answer(self, request: Request, fault: Fault | None) -> Answer:
        try:
            return self._answer(request, fault)
        except ApiError as error:
            return error.answer()
        except NotFound as error:
            return ApiError(404, str(error)).answer()
        except Conflict as error:
            return ApiError(409, f"Operation cannot be fulfilled: {error}").answer()
        except AlreadyExists as error:
            return ApiError(409, str(error), reason="AlreadyExists").answer()
        except msgspec.DecodeError as error:
            return ApiError(400, f"the body of the request is not JSON: {error}").answer()
        except (KeyError, TypeError, AttributeError) as error:
            return ApiError(400, f"the body of the request does not have the shape of its kind: {error!r}").answer()

    def _answer(self, request: Request, fault: Fault | None) -> Answer:
        if self.rights.token and request.headers.get("authorization") != f"Bearer {self.rights.token}":
            raise ApiError(401, "Unauthorized")
        path = request.path.rstrip("/")
        if path == "/version":
            return _json(VERSION)
        if path in _PLAIN:
            return Answer(body=b"ok", content_type="text/plain; charset=utf-8")
        if path.endswith("/selfsubjectaccessreviews") and request.method == "POST":
            return _json(self._review(request.json()), 201)
        discovered = _discovery(path) if request.method == "GET" else None
        if discovered is not None:
            return _json(discovered)
        place = read_place(path)
        watching = request.method == "GET" and request.query.get("watch", "") in _TRUE
        self._authorise(verb_of(request.method, place, watching=watching), place)
        if request.method == "GET":
            return self._watch(place, request, fault) if watching else self._read(place, request, fault)
        return self._writer.answer(place, request)

    def _authorise(self, verb: str, place: Place) -> None:
        if not self.rights.allows(verb, place.resource, place.namespace or ""):
            scope = f'in the namespace "{place.namespace}"' if place.namespace else "at the cluster scope"
            named = f' "{place.name}"' if place.name else ""
            raise ApiError(
                403,
                f'{place.kind.plural}{named} is forbidden: User "rebalancer" cannot {verb} resource "{place.resource}" '
                f'in API group "{place.kind.group}" {scope}',
            )

    def _review(self, body: object) -> Json:
        if not isinstance(body, dict):
            raise ApiError(400, "the body of the request is not an access review")
        asked = body.get("spec", {}).get("resourceAttributes") or {}
        resource = asked.get("resource", "*") + (f"/{asked['subresource']}" if asked.get("subresource") else "")
        allowed = self.rights.allows(asked.get("verb", "*"), resource, asked.get("namespace", ""))
        return {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": body.get("spec", {}),
            "status": {"allowed": allowed, "reason": "" if allowed else "denied by the scenario"},
        }

    def _watch(self, place: Place, request: Request, fault: Fault | None) -> Answer:
        if fault is not None and fault.act is Act.GONE:
            raise expired()
        broken = fault is not None and fault.act is Act.WATCH_ERROR
        watch = Watch(
            self.world,
            place.kind,
            place.namespace,
            request.query,
            stopping=self._http.stopping,
            metadata_only=_metadata_only(request),
            error_at_once=broken,
        )
        return Answer(stream=watch)

    def _read(self, place: Place, request: Request, fault: Fault | None) -> Answer:
        metadata_only = _metadata_only(request)
        if not place.name:
            expire = fault is not None and fault.act is Act.GONE
            return Answer(body=self._lists.page(place.kind, place.namespace, request.query, metadata_only=metadata_only, expire=expire))
        entry = self.world.entry(place.kind.plural, place.name, place.namespace or "")
        if place.subresource == "scale":
            return _json(_scale(entry.value))
        if place.subresource not in ("", "status"):
            raise ApiError(404, f"the server does not serve {place.resource}")
        return _json(partial_metadata(entry.value)) if metadata_only else Answer(body=entry.encoded())


def _metadata_only(request: Request) -> bool:
    return "PartialObjectMetadata" in request.headers.get("accept", "")


def _scale(value: Json) -> Json:
    if value["kind"] not in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        raise ApiError(404, "the server could not find the requested resource")
    metadata = {key: value["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}
    status = {"replicas": value.get("status", {}).get("replicas", 0)}
    spec = {"replicas": value["spec"].get("replicas", 1)}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def _discovery(path: str) -> Json | None:
    """The answers that generic clients ask for before anything else; None when the path is not one of theirs."""
    groups = sorted({(kind.group, kind.version) for kind in KINDS if kind.group})
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        listed = [{"name": group, "versions": [{"groupVersion": f"{group}/{version}", "version": version}]} for group, version in groups]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
    served = [kind for kind in KINDS if kind.prefix == path]
    if not served:
        return None
    resources: list[Json] = [
        {"name": kind.plural, "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind, "verbs": ["get", "list", "watch"]}
        for kind in served
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": served[0].api_version, "resources": resources}
