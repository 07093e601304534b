"""A client that costs little beside what it measures: requests are bytes made before, answers are read and not looked into."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

TIMEOUT_S = 60.0
_LENGTH = re.compile(rb"\r\nContent-Length: ([0-9]+)\r\n")


class Unexpected(Exception):
    """An answer that is no success."""


class Answering(Protocol):
    def ask(self, request: bytes) -> bytes: ...

    def close(self) -> None: ...


def request(path: str, body: bytes, *, method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: extender\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@dataclass(slots=True)
class Kept:
    """One connection for all requests, as kube-scheduler has."""

    port: int
    _socket: socket.socket | None = None

    def ask(self, request: bytes) -> bytes:
        if self._socket is None:
            self._socket = _connected(self.port)
        return _ask(self._socket, request)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


@dataclass(slots=True)
class Fresh:
    """A connection for each request."""

    port: int

    def ask(self, request: bytes) -> bytes:
        with _connected(self.port) as connection:
            return _ask(connection, request)

    def close(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Timed:
    """Seconds of each request of several clients at once, and what the server used for all of them."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0


def timed(port: int, requests: Sequence[bytes], *, count: int, fresh: bool = False, clients: int = 1) -> Timed:
    """``count`` requests, shared by ``clients``. Raises Unexpected."""
    result, before = Timed(), _cpu(port)
    failures: list[Exception] = []

    def run(first: int) -> None:
        client: Answering = Fresh(port) if fresh else Kept(port)
        try:
            for number in range(first, count, clients):
                body = requests[number % len(requests)]
                began = time.perf_counter()
                client.ask(body)
                result.seconds.append(time.perf_counter() - began)
        except (OSError, Unexpected) as error:
            failures.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Unexpected(str(failures[0])) from failures[0]
    result.cpu_seconds = _cpu(port) - before
    return result


def _cpu(port: int) -> float:
    answer = Fresh(port).ask(request("/cpu", b"", method="GET"))
    return msgspec.json.decode(answer, type=float)


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _ask(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(request)
    got = bytearray()
    while (end := got.find(b"\r\n\r\n")) < 0:
        got += _some(connection)
    length = _LENGTH.search(got, 0, end + 2)
    if not got.startswith(b"HTTP/1.1 200 ") or length is None:
        raise Unexpected(bytes(got[:200]).decode("latin-1"))
    whole = end + 4 + int(length[1])
    while len(got) < whole:
        got += _some(connection)
    return bytes(got[end + 4 :])


def _some(connection: socket.socket) -> bytes:
    piece = connection.recv(1 << 20)
    if not piece:
        raise Unexpected("the server ended the connection")
    return piece
