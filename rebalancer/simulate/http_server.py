"""The HTTP/1.1 server under both endpoints: keep-alive, recorded requests, faults, and a stop that leaves no thread and no socket behind.

Only transport lives here; what a request means is the business of the `Application` behind it.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

import msgspec

from rebalancer.simulate.faults import Act, Fault, Faults


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came in. ``query`` is decoded; ``body`` are the raw bytes."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> object:
        """The decoded body; raises msgspec.DecodeError."""
        return msgspec.json.decode(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """``stream``, when given, is sent in chunks as it comes, instead of ``body``."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()
    stream: Iterable[bytes] | None = None


class Application(Protocol):
    def answer(self, request: Request, fault: Fault | None) -> Answer:
        """The answer; faults that are not of the transport are handed in."""

    def broken(self, fault: Fault) -> Answer:
        """The answer of a STATUS fault, in the shape of this kind of server."""


@dataclass(slots=True)
class Recorder:
    """Every request in order of arrival, for tests to look at."""

    _seen: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, request: Request) -> None:
        with self._lock:
            self._seen.append(request)

    def all(self) -> list[Request]:
        with self._lock:
            return list(self._seen)

    def of(self, method: str, path: str = "") -> list[Request]:
        """Those with this method whose path contains ``path``."""
        return [request for request in self.all() if request.method == method and path in request.path]

    def clear(self) -> None:
        with self._lock:
            self._seen.clear()


class HttpServer:
    """A server on 127.0.0.1 with one thread to accept and one a connection. ``start`` and ``stop`` once each."""

    def __init__(
        self,
        application: Application,
        *,
        name: str,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``clock``: unix seconds that the header Date shows; else the machine's."""
        self.clock = clock
        self.faults = Faults()
        self.requests = Recorder()
        self.stopping = threading.Event()
        self._name = name
        self._tls = tls
        self._server = _Server(("127.0.0.1", port), self, application)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name=f"{name}-accept", daemon=True
        )

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def cut(self) -> None:
        """Break every open connection, as a network does; new ones are served."""
        self._server.break_connections()

    def stop(self) -> None:
        """Refuse new connections, break the open ones, join every thread."""
        self.stopping.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=10)
        self._server.break_connections()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], owner: HttpServer, application: Application) -> None:
        self.owner = owner
        self.application = application
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request_thread(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)  # noqa: S101 - the other half of the type is for UDP
        threading.current_thread().name = f"{self.owner._name}-connection"
        with self._open_lock:
            self._open.add(request)
        try:
            if self.owner.stopping.is_set():
                self.shutdown_request(request)
                return
            super().process_request_thread(request, client_address)
        finally:
            with self._open_lock:
                self._open.discard(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the game; tracebacks on stderr are not."""

    def break_connections(self) -> None:
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:  # it is closed already
                    continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "rebalancer-simulate"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Requests are recorded, not printed."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        clock = self.server.owner.clock
        return super().date_time_string(clock() if timestamp is None and clock is not None else timestamp)

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length) if length else b"",
        )
        owner = self.server.owner
        owner.requests.note(request)
        fault = owner.faults.take(self.command, self.path)
        if fault is not None and self._break_early(fault):
            return
        if fault is not None and fault.act is Act.STATUS:
            self._send(self.server.application.broken(fault))
        elif fault is not None and fault.act is Act.REPLACE:
            self._send(Answer(body=fault.body, content_type=fault.content_type, headers=fault.headers))
        else:
            answer = self.server.application.answer(request, fault)
            if fault is not None and fault.act is Act.DROP_AFTER:
                self.close_connection = True
                return
            self._send(answer, truncated=fault is not None and fault.act is Act.TRUNCATE)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of the base class

    def _break_early(self, fault: Fault) -> bool:
        """Latency, drops and hangs; True when nothing is to be answered any more."""
        if fault.act is Act.LATENCY:
            self.server.owner.stopping.wait(fault.seconds)
            return False
        if fault.act is Act.HANG:
            self.server.owner.stopping.wait(fault.seconds)
        if fault.act in (Act.HANG, Act.DROP):
            self.close_connection = True
            return True
        return False

    def _send(self, answer: Answer, *, truncated: bool = False) -> None:
        reason = HTTPStatus(answer.status).phrase if answer.status in HTTPStatus._value2member_map_ else ""
        self.send_response(answer.status, reason)
        self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.stream is not None:
            self._send_stream(answer.stream)
            return
        self.send_header("Content-Length", str(len(answer.body)))
        if truncated:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(answer.body[: len(answer.body) // 2] if truncated else answer.body)

    def _send_stream(self, stream: Iterable[bytes]) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in stream:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
