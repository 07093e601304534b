"""Servers with short limits, and clients that behave as badly as is wanted."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rebalancer.runtime.serving.connections import Lost
from rebalancer.runtime.serving.exchange import Limits
from rebalancer.runtime.serving.messages import Answer, Request
from rebalancer.runtime.serving.routing import Routes
from rebalancer.runtime.serving.server import HttpServer
from rebalancer.settings import Listen

LOOPBACK = Listen(host="127.0.0.1", port=0)
SHORT = Limits(connections=8, body_bytes=4096, all_bodies_bytes=1 << 20, handshake_s=0.5, request_s=0.5, answer_s=5.0, idle_s=20.0)
PATIENT_S = 20.0
"""Longer than anything here takes; a test that waits so long has failed."""


def echo(request: Request) -> Answer:
    return Answer(body=request.body, content_type="application/octet-stream")


class Slow:
    """Answers when it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()

    def __call__(self, request: Request) -> Answer:
        self.began.set()
        assert self.go.wait(PATIENT_S)
        return Answer(body=b"{}")


class Losses:
    """What the server tells of connections that it ended."""

    def __init__(self) -> None:
        self._all: list[Lost] = []
        self._changed = threading.Condition()

    def __call__(self, why: Lost) -> None:
        with self._changed:
            self._all.append(why)
            self._changed.notify_all()

    def seen(self, why: Lost, times: int = 1) -> bool:
        """Whether it comes so often, in good time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._all.count(why) >= times, timeout=PATIENT_S)

    def __len__(self) -> int:
        return len(self._all)


def serving(routes: Routes, *, limits: Limits = SHORT, lost: Callable[[Lost], None] = lambda why: None) -> HttpServer:
    return HttpServer(LOOPBACK, routes=routes, limits=limits, lost=lost)


@contextlib.contextmanager
def connected(server: HttpServer) -> Iterator[socket.socket]:
    with socket.create_connection((server.address.host, server.address.port), timeout=PATIENT_S) as client:
        yield client


@contextlib.contextmanager
def kept(server: HttpServer) -> Iterator[http.client.HTTPConnection]:
    """A client that keeps its connection."""
    connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=PATIENT_S)
    try:
        yield connection
    finally:
        connection.close()


def asked(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection.request(method, path, body=body)
    response = connection.getresponse()
    return response.status, response.read()


def until_closed(client: socket.socket) -> bytes:
    """All that comes until the server ends the connection, in whichever way."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := client.recv(65536):
            got += piece
    return got


def made_certificate(directory: Path, name: str = "localhost") -> tuple[Path, Path]:
    directory.mkdir(parents=True, exist_ok=True)
    cert, key = directory / "tls.crt", directory / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not on the PATH: apt-get install openssl")
    return cert, key
