"""What a watch says, from the bytes of its lines to small values: an object as it is now, an object gone, a mark of progress.

One odd object never ends a watch, as it never ends a list: it is told by its name with the reason. A line that is no event at all does end
it, since nothing after it can be trusted to be whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from rebalancer.errors import KubernetesError, KubernetesExpired
from rebalancer.kube.decoding import odd_reason, read_head

T = TypeVar("T", bound=msgspec.Struct)

_GONE = 410
_LONGEST_LINE_BYTES = 16 * 1024 * 1024
"""Ten times the largest object that etcd takes."""


@dataclass(frozen=True, slots=True)
class Present(Generic[T]):
    """An object as it is since ``version``."""

    key: str
    version: int
    item: T


@dataclass(frozen=True, slots=True)
class Absent:
    """An object that was deleted at ``version``."""

    key: str
    version: int


@dataclass(frozen=True, slots=True)
class Odd:
    """An object that since ``version`` does not have the shape of the item, and why. What was known of it is no longer true."""

    key: str
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Everything up to ``version`` was told: a bookmark."""

    version: int


News = Present[T] | Absent | Odd | Progress


class Garbled(ValueError):
    """The bytes are no event: cut short, or the page of a proxy."""


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


class EventDecoder(Generic[T]):
    """Decodes lines whose objects are ``item``. One for each watch; ``name`` is the resource's, for messages."""

    def __init__(self, item: type[T], *, name: str) -> None:
        self._name = name
        self._event = msgspec.json.Decoder(_Event)
        self._item = msgspec.json.Decoder(item)

    def decode(self, line: bytes) -> News[T]:
        """Raises KubernetesExpired and KubernetesError for an ERROR event; Garbled."""
        try:
            event = self._event.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Garbled(f"a line of the watch of {self._name} is no event") from error
        if event.type == "ERROR":
            raise self._error(event.object)
        if event.type == "BOOKMARK":
            return Progress(self._version(_bookmark_version(event.object)))
        head = read_head(event.object)
        if head is None:
            raise Garbled(f"an event of the watch of {self._name} carries no named object")
        version = self._version(head.version)
        if event.type == "DELETED":
            return Absent(head.key, version)
        if event.type not in ("ADDED", "MODIFIED"):
            raise Garbled(f"the watch of {self._name} carries an event of an unknown type")
        try:
            return Present(head.key, version, self._item.decode(event.object))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Odd(head.key, version, odd_reason(error))

    def _version(self, text: str) -> int:
        version = version_number(text)
        if version is None:
            raise Garbled(f"an event of the watch of {self._name} carries no usable resourceVersion")
        return version

    def _error(self, raw: msgspec.Raw) -> KubernetesError:
        try:
            status = msgspec.json.decode(raw, type=_Status)
        except (msgspec.DecodeError, UnicodeDecodeError):
            status = _Status()
        said = f" ({status.message})" if status.message else ""
        if status.code == _GONE or status.reason in ("Expired", "Gone"):
            return KubernetesExpired(f"the watch of {self._name} has expired{said}", remedy="list afresh", status=_GONE)
        return KubernetesError(f"the watch of {self._name} was ended by the server{said}", status=status.code or None)


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Bookmark(msgspec.Struct):
    """Its object has a version and nothing else."""

    metadata: _BookmarkMeta


def _bookmark_version(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=_Bookmark).metadata.resource_version
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def version_number(version: str) -> int | None:
    """A resourceVersion as a number, so that two can be put in order; None when it is none.

    Clients must not rely on the order in general. For what etcd keeps behind kube-apiserver it holds, and Kubernetes 1.35 promises it
    (KEP-5504, comparable resource versions).
    """
    return int(version) if version.isascii() and version.isdecimal() and version != "0" else None


def lines(chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The whole lines of a stream, those of a chunk together. Raises Garbled when the stream ends within a line, or a line never ends."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST_LINE_BYTES:
            raise Garbled("a line of the watch has no end")
        found = [line for line in whole if line.strip()]
        if found:
            yield found
    if rest.strip():
        raise Garbled("the watch ends within a line")
