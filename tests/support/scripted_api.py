"""An API server that answers from a script: every bad moment of a network and of a server, on demand and on loopback.

A test says which replies come for which method and path, in order; the last one of a script is repeated. What was asked is recorded, so
that a test can assert how often, with which query, headers and body. Nothing here knows the code under test.
"""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``cut``: only so many bytes of the body are sent, then the connection is dropped, though the full length was announced.

    ``unannounced``: no Content-Length, so that a cut body looks whole to HTTP. ``silent``: nothing is sent until the server ends.
    ``drop``: the connection is closed without an answer. ``drip_s``: seconds between any two bytes of the body. ``chunked``: in pieces of
    16 bytes, as the API server sends long answers; with ``cut`` the last piece never comes.
    """

    status: int = 200
    body: object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = JSON
    cut: int | None = None
    unannounced: bool = False
    silent: bool = False
    drop: bool = False
    gzip: bool = False
    drip_s: float = 0.0
    chunked: bool = False

    def payload(self) -> bytes:
        plain = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return gzip.compress(plain) if self.gzip else plain


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that came in. ``headers``: names in lower case. ``client``: the port it came from, one for each connection."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    client: int

    @property
    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value


def status(code: int, message: str = "", *, reason: str = "", causes: tuple[tuple[str, str], ...] = (), **rest: object) -> Reply:
    """A refusal as the API server words it: a Status object."""
    details = {"causes": [{"reason": why, "message": what} for why, what in causes]} if causes else {}
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }
    return Reply(status=code, body=body, **rest)  # type: ignore[arg-type]


def page(items: list[object], *, token: str = "", version: str = "100", **rest: object) -> Reply:
    """One page of a list."""
    return Reply(body={"kind": "List", "metadata": {"resourceVersion": version, "continue": token}, "items": items}, **rest)  # type: ignore[arg-type]


class ScriptedApi:
    """``with ScriptedApi() as api: api.on("GET", "/api/v1/pods", page([...]))``. What no script covers is answered with 404."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self._scripts: dict[tuple[str, str], list[Reply]] = defaultdict(list)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._server = _Server(self)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ScriptedApi:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.drop_all()
        self._server.server_close()
        self._thread.join()

    def on(self, method: str, path: str, *replies: Reply) -> None:
        """The replies to come for ``method`` on exactly ``path``, after those that it has already; the last is repeated."""
        with self._lock:
            self._scripts[method, path].extend(replies)

    def requests(self, method: str | None = None, path: str | None = None) -> list[Asked]:
        return [asked for asked in self.asked if method in (None, asked.method) and path in (None, asked.path)]

    def reply_to(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            script = self._scripts.get((asked.method, asked.path))
            if not script:
                return status(404, f"{asked.path} not found", reason="NotFound")
            return script.pop(0) if len(script) > 1 else script[0]

    def wait_for_the_end(self, seconds: float = 30.0) -> bool:
        """True if the server ends within ``seconds``."""
        return self._ended.wait(seconds)

    def kubeconfig(self, folder: Path, *, user: dict[str, object] | None = None, cluster: dict[str, object] | None = None) -> Path:
        """A kubeconfig for this server, with the contexts ``here`` (current) and ``elsewhere``."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "loopback", "cluster": {"server": self.url, **(cluster or {})}}],
            "users": [{"name": "me", "user": user if user is not None else {"token": "a-secret-token"}}],
            "contexts": [{"name": name, "context": {"cluster": "loopback", "user": "me"}} for name in ("here", "elsewhere")],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(content))
        return path


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 64

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        with self._guard:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            with self._guard:
                self._open.discard(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is part of many scripts."""

    def drop_all(self) -> None:
        with self._guard:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version: ClassVar[str] = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silence: the record is ``api.asked``."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        parts = urlsplit(self.path)
        asked = Asked(
            method=self.command,
            path=parts.path,
            query={name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()},
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length) if length else b"",
            client=self.client_address[1],
        )
        reply = self.server.api.reply_to(asked)
        if reply.silent:
            self.server.api.wait_for_the_end()
        if reply.silent or reply.drop:
            self.close_connection = True
            return
        self._write(reply)

    def _write(self, reply: Reply) -> None:
        payload = reply.payload()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.gzip:
            self.send_header("Content-Encoding", "gzip")
        if reply.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif reply.unannounced:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self._write_body(reply, payload[: reply.cut])
        if reply.cut is not None or reply.unannounced:
            self.close_connection = True

    def _write_body(self, reply: Reply, payload: bytes) -> None:
        if reply.drip_s:
            for byte in payload:
                self.wfile.write(bytes([byte]))
                if self.server.api.wait_for_the_end(reply.drip_s):
                    return
        elif reply.chunked:
            for start in range(0, len(payload), 16):
                piece = payload[start : start + 16]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if reply.cut is None:
                self.wfile.write(b"0\r\n\r\n")
        else:
            self.wfile.write(payload)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815
