"""Lists: selection, pages that share one snapshot, continue tokens that grow old, metadata-only answers.

A page is joined from the bytes that each entry keeps of itself, so that serving a list costs little more than copying it.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rebalancer.simulate.api_errors import ApiError
from rebalancer.simulate.kinds import Json, Kind
from rebalancer.simulate.selectors import parse_field_selector, parse_label_selector
from rebalancer.simulate.world import Entry, World

TOKEN_LIFE_S = 300.0
_SNAPSHOTS = 64


@dataclass(frozen=True, slots=True)
class _Snapshot:
    entries: Sequence[Entry]
    version: int
    taken_at: float


def selection(query: Mapping[str, str]) -> Callable[[Json], bool] | None:
    """The predicate of ``labelSelector`` and ``fieldSelector``; None when every object is wanted. Raises ApiError 400."""
    tests: list[Callable[[Json], bool]] = []
    try:
        if query.get("labelSelector"):
            of_labels = parse_label_selector(query["labelSelector"])
            tests.append(lambda value: of_labels(value["metadata"].get("labels") or {}))
        if query.get("fieldSelector"):
            tests.append(parse_field_selector(query["fieldSelector"]))
    except ValueError as error:
        raise ApiError(400, str(error)) from error
    return (lambda value: all(test(value) for test in tests)) if tests else None


class Lists:
    """The lists of one server; remembers the snapshots behind its continue tokens."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._snapshots: OrderedDict[str, _Snapshot] = OrderedDict()
        self._counter = 0

    def page(self, kind: Kind, namespace: str | None, query: Mapping[str, str], *, metadata_only: bool, expire: bool) -> bytes:
        """The body of a list answer. Raises ApiError 400 for bad parameters, 410 for a token that is too old or ``expire``."""
        try:
            limit = int(query.get("limit") or 0)
        except ValueError as error:
            raise ApiError(400, f"limit {query['limit']!r} is not a number") from error
        token = query.get("continue", "")
        if token:
            name, start = self._read(token)
            snapshot = self._snapshots.get(name)
            if expire or snapshot is None or self._world.now - snapshot.taken_at > TOKEN_LIFE_S:
                raise ApiError(
                    410,
                    "The provided continue parameter is too old to display a consistent list result. You must start a new list without it.",
                    continue_token=self._write("inconsistent", start),
                )
        else:
            name, start = "", 0
            snapshot = self._snapshot(kind, namespace, query)
        end = len(snapshot.entries) if limit <= 0 else min(len(snapshot.entries), start + limit)
        metadata: Json = {"resourceVersion": str(snapshot.version)}
        if end < len(snapshot.entries):
            metadata["continue"] = self._write(name or self._keep(snapshot), end)
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(snapshot.entries) - end
        return _body(kind, metadata, snapshot.entries[start:end], metadata_only=metadata_only)

    def _snapshot(self, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> _Snapshot:
        wanted = selection(query)
        with self._world.lock:
            entries = self._world.entries(kind.plural, namespace)
            if wanted is not None:
                entries = [entry for entry in entries if wanted(entry.value)]
            return _Snapshot(entries, self._world.version, self._world.now)

    def _keep(self, snapshot: _Snapshot) -> str:
        with self._world.lock:
            self._counter += 1
            name = f"s{self._counter}"
            self._snapshots[name] = snapshot
            while len(self._snapshots) > _SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return name

    def _write(self, name: str, start: int) -> str:
        return base64.urlsafe_b64encode(json.dumps({"snapshot": name, "start": start}).encode()).decode().rstrip("=")

    def _read(self, token: str) -> tuple[str, int]:
        try:
            decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            return str(decoded["snapshot"]), int(decoded["start"])
        except (ValueError, KeyError, TypeError) as error:
            raise ApiError(400, f"continue key is not valid: {token!r}") from error


def partial_metadata(value: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]}


def _body(kind: Kind, metadata: Json, entries: Sequence[Entry], *, metadata_only: bool) -> bytes:
    if metadata_only:
        head: Json = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        items = [msgspec.json.encode(partial_metadata(entry.value)) for entry in entries]
    else:
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
        items = [entry.encoded() for entry in entries]
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"
