"""Request bodies, read whole and bounded: each alone, and all that are held at one time together.

What counts is what has come, not what was announced: a client that promises a large body and sends none takes nothing from the others.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http import HTTPStatus
from io import BufferedIOBase

_PIECE = 1 << 20


class Refused(Exception):
    """The body will not be read, or not to its end. ``status`` and the words are for the client."""

    def __init__(self, status: HTTPStatus, words: str) -> None:
        super().__init__(words)
        self.status = status


class CutOff(Exception):
    """The client ended before its body did."""


class Room:
    """Bytes of bodies that may be held at one time."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        with self._lock:
            if self._held + size > self._most:
                return False
            self._held += size
            return True

    def give(self, size: int) -> None:
        with self._lock:
            self._held -= size


def announced(headers: Mapping[str, list[str]], *, most_bytes: int) -> int:
    """The length of the body by the headers (names in lower case, each with all its values). Raises Refused."""
    if headers.get("transfer-encoding"):
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "send the body whole, with its Content-Length")
    values = headers.get("content-length") or ["0"]
    if len(set(values)) > 1 or not (values[0].isascii() and values[0].isdigit()):
        raise Refused(HTTPStatus.BAD_REQUEST, "the Content-Length is no number")
    length = int(values[0]) if len(values[0]) < 20 else most_bytes + 1
    if length > most_bytes:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {most_bytes} bytes")
    return length


class Body:
    """One body, and the room that it takes until it is closed."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._taken = 0

    def read(self, stream: BufferedIOBase, length: int) -> bytes:
        """Raises Refused when there is no room, CutOff when the stream ends too early."""
        pieces: list[bytes] = []
        left = length
        while left:
            size = min(left, _PIECE)
            piece = stream.read(size)
            if len(piece) < size:
                raise CutOff
            if not self._room.take(size):
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many large bodies at one time; ask again")
            self._taken += size
            pieces.append(piece)
            left -= size
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        self._room.give(self._taken)
        self._taken = 0
