"""Watches: a stream of changes from a resourceVersion on, with bookmarks, a time limit, and 410 when the past is forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from threading import Event

import msgspec

from rebalancer.simulate.api_errors import ApiError
from rebalancer.simulate.kinds import Json, Kind
from rebalancer.simulate.listing import partial_metadata, selection
from rebalancer.simulate.world import Change, World

_SLICE_S = 0.05
_DEFAULT_TIMEOUT_S = 1800.0
_BOOKMARK_EVERY_S = 1.0


def _line(kind: str, value: Json) -> bytes:
    return msgspec.json.encode({"type": kind, "object": value}) + b"\n"


def _bookmark(kind: Kind, version: int) -> bytes:
    return _line("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"resourceVersion": str(version)}})


def expired() -> ApiError:
    return ApiError(410, "too old resource version", reason="Expired")


class Watch:
    """One watch; iterate over it once. Raises ApiError 410 from the constructor when the version is forgotten already."""

    def __init__(
        self,
        world: World,
        kind: Kind,
        namespace: str | None,
        query: Mapping[str, str],
        *,
        stopping: Event,
        metadata_only: bool = False,
        error_at_once: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._world, self._kind, self._namespace = world, kind, namespace
        self._wanted = selection(query)
        self._shape: Callable[[Json], Json] = partial_metadata if metadata_only else lambda value: value
        self._bookmarks = query.get("allowWatchBookmarks", "") in ("1", "true", "True")
        self._stopping, self._clock, self._error_at_once = stopping, clock, error_at_once
        try:
            self._until = clock() + float(query.get("timeoutSeconds") or _DEFAULT_TIMEOUT_S)
            start = query.get("resourceVersion", "")
            from_start = start in ("", "0")
            asked = 0 if from_start else int(start)
        except ValueError as error:
            raise ApiError(400, f"bad watch parameter: {error}") from error
        with world.lock:
            self._version = world.version if from_start else asked
            if not from_start and world.changes_since(asked) is None:
                raise expired()
            self._initial = [entry.value for entry in world.entries(kind.plural, namespace)] if from_start else []

    def __iter__(self) -> Iterator[bytes]:
        if self._error_at_once:
            yield _line("ERROR", expired().status())
            return
        for value in self._initial:
            if self._wanted is None or self._wanted(value):
                yield _line("ADDED", self._shape(value))
        bookmark_at = self._clock() + _BOOKMARK_EVERY_S
        while not self._stopping.is_set() and self._clock() < self._until:
            changes = self._next()
            if changes is None:
                yield _line("ERROR", expired().status())
                return
            for change in changes:
                self._version = change.version
                if (line := self._event(change)) is not None:
                    yield line
            if self._bookmarks and self._clock() >= bookmark_at:
                yield _bookmark(self._kind, self._version)
                bookmark_at = self._clock() + _BOOKMARK_EVERY_S
        if self._bookmarks:
            yield _bookmark(self._kind, self._version)

    def _next(self) -> list[Change] | None:
        """What changed since the last look; waits a moment for something to change."""
        with self._world.changed:
            if self._world.version == self._version:
                self._world.changed.wait(_SLICE_S)
            return self._world.changes_since(self._version)

    def _event(self, change: Change) -> bytes | None:
        if change.plural != self._kind.plural:
            return None
        if self._namespace is not None and change.value["metadata"].get("namespace") != self._namespace:
            return None
        if self._wanted is None:
            return _line(change.type, self._shape(change.value))
        now = self._wanted(change.value) and change.type != "DELETED"
        before = change.before is not None and self._wanted(change.before)
        if now:
            return _line("MODIFIED" if before else "ADDED", self._shape(change.value))
        return _line("DELETED", self._shape(change.value)) if before else None
