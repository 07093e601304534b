"""The service's one HTTP port: health for kubelet, metrics for Prometheus.

It answers on threads of its own, so that no cycle, however stuck, can keep a probe waiting, and a bounded number of them, so that no client
can take the process down. Plain http by default; with a certificate of the operator's own on request.
"""

from __future__ import annotations

import errno
import gzip
import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import structlog
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from rebalancer.errors import SettingsError
from rebalancer.runtime.health import Check, Health
from rebalancer.settings import Listen

SOCKET_TIMEOUT_S = 5.0
MOST_THREADS = 16
_TEXT = "text/plain; charset=utf-8"

log = structlog.get_logger(__name__)


class HealthServer:
    """Listens from the moment it is made; answers between `start` and `close`. Also a context manager.

    ``exposition`` gives the metrics in the Prometheus text format. Raises SettingsError when the address cannot be listened on or the
    certificate cannot be used.
    """

    def __init__(
        self,
        listen: Listen,
        *,
        health: Health,
        exposition: Callable[[], bytes],
        certificate: tuple[Path, Path] | None = None,
        socket_timeout_s: float = SOCKET_TIMEOUT_S,
    ) -> None:
        context = None if certificate is None else _tls(*certificate)
        pages = {"/healthz": lambda: _probe(health.live_checks()), "/readyz": lambda: _probe(health.ready_checks())}
        self._server = _bound(listen, pages, exposition, socket_timeout_s)
        if context is not None:
            # The handshake happens on the connection's own thread: a client that never speaks must not stop the accepting one.
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="http", daemon=True)
        self.address = Listen(host=listen.host, port=int(self._server.server_address[1]))
        """Where it listens; the port that was found when 0 was asked for."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop accepting, wait for the accepting thread, free the port. May be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=SOCKET_TIMEOUT_S)
        self._server.server_close()

    def alive(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> HealthServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Page = Callable[[], tuple[HTTPStatus, str]]


class _Server(socketserver.ThreadingTCPServer):
    """Not http.server's own class, which looks its name up in DNS before it answers anything."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, address: tuple[Any, ...], family: socket.AddressFamily, handler: type[_Handler]) -> None:
        self.address_family = family
        self._free = threading.BoundedSemaphore(MOST_THREADS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)  # probes come again; waiting here would stop everybody
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up, speak no TLS or fall silent are no news; whatever else fails is ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("a request to the health port failed", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    """One request a connection. GET and HEAD, three paths."""

    server_version = "rebalancer"
    sys_version = ""
    pages: dict[str, Page]
    exposition: Callable[[], bytes]

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Plain text where http.server would write a page, and 405 where it says that it does not know the method."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n", {"Allow": "GET, HEAD"}, with_body=True)
            return
        status = HTTPStatus(code)
        self._send(status, f"{status.phrase}\n".encode(), {}, with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics(with_body=with_body)
        elif path in self.pages:
            status, text = self.pages[path]()
            self._send(status, text.encode(), {}, with_body=with_body)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"known paths: /healthz /readyz /metrics\n", {}, with_body=with_body)

    def _metrics(self, *, with_body: bool) -> None:
        body, headers = type(self).exposition(), {"Content-Type": CONTENT_TYPE_LATEST}
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers["Content-Encoding"] = gzip.compress(body, compresslevel=1), "gzip"
        self._send(HTTPStatus.OK, body, headers, with_body=with_body)

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str], *, with_body: bool) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": _TEXT} | headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that is replaced
        """A line for each probe would drown the rest."""


def _probe(checks: tuple[Check, ...]) -> tuple[HTTPStatus, str]:
    good = all(check.passed for check in checks)
    lines = [str(check) for check in checks]
    return (HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE), "\n".join([*lines, "ok" if good else "failed", ""])


def _bound(listen: Listen, pages: dict[str, Page], exposition: Callable[[], bytes], timeout_s: float) -> _Server:
    body = {"pages": pages, "exposition": staticmethod(exposition), "timeout": timeout_s}
    handler = type("BoundHandler", (_Handler,), body)
    remedy = "choose another with --listen or REBALANCER_LISTEN"
    try:
        family, _, _, _, address = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return _Server(address, family, handler)
    except socket.gaierror:
        raise SettingsError(f"cannot listen on {listen}, the host name is not known", remedy=remedy) from None
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: "another process uses the port",
            errno.EACCES: "this user may not use the port",
            errno.EADDRNOTAVAIL: "this machine does not have the address",
        }
        why = reasons.get(error.errno or 0, error.strerror or type(error).__name__)
        raise SettingsError(f"cannot listen on {listen}, {why}", remedy=remedy) from None


def _tls(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert_file, key_file)
    except (OSError, ssl.SSLError):
        raise SettingsError(
            f"the certificate {cert_file} and the key {key_file} cannot be used together",
            remedy="check that both are PEM and belong together",
        ) from None
    return context
