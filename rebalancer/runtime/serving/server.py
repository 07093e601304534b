"""The server: one thread accepts, each connection has one of its own, and no client can take either from the others.

It listens from the moment it is made, answers between `start` and `close`, and is a context manager for both.
"""

from __future__ import annotations

import errno
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import structlog

from rebalancer.errors import SettingsError
from rebalancer.runtime.serving.bodies import Room
from rebalancer.runtime.serving.certificate import Certificate
from rebalancer.runtime.serving.connections import Connection, Connections, Lost
from rebalancer.runtime.serving.exchange import Exchange, Limits, Serving, shake_hands
from rebalancer.runtime.serving.routing import Router, Routes
from rebalancer.settings import Listen

SWEEP_S = 0.2
CLOSE_S = 2.0
"""For answers that are being written when the server is closed."""
BREATH_S = 0.05
"""When the process has no file descriptor left for a new connection."""

log = structlog.get_logger(__name__)


class HttpServer:
    """``routes``: see `routing`. ``lost``: told of each connection that is ended before its time; must be quick. ``variable``: of the
    setting that the address comes from, for messages.

    Raises SettingsError when the address cannot be listened on.
    """

    def __init__(
        self,
        listen: Listen,
        *,
        routes: Routes,
        certificate: Certificate | None = None,
        limits: Limits,
        name: str = "http",
        variable: str = "REBALANCER_LISTEN",
        lost: Callable[[Lost], None] = lambda why: None,
    ) -> None:
        self._connections = Connections(limits.connections, lost=lost)
        serving = Serving(Router(dict(routes)), self._connections, limits, Room(limits.all_bodies_bytes), certificate)
        self._acceptor = _bound(listen, serving, name=name, variable=variable, lost=lost)
        self._thread = threading.Thread(target=self._acceptor.serve_forever, kwargs={"poll_interval": SWEEP_S}, name=name, daemon=True)
        self.address = Listen(host=listen.host, port=int(self._acceptor.server_address[1]))
        """Where it listens; the port that was found when 0 was asked for."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Free the port, let answers that are on their way finish, end every connection. May be called twice."""
        if self._thread.is_alive():
            self._acceptor.shutdown()
            self._thread.join(timeout=CLOSE_S)
        self._acceptor.server_close()
        self._connections.close(within_s=CLOSE_S)

    def alive(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> HttpServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Acceptor(socketserver.TCPServer):
    """Not http.server's own class, which looks its name up in DNS before it answers anything."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[Any, ...], family: socket.AddressFamily, serving: Serving, *, name: str, lost: Callable[[Lost], None]
    ) -> None:
        self.address_family = family
        self._serving = serving
        self._name = name
        self._lost = lost
        self._sweep_at = 0.0
        super().__init__(address, socketserver.BaseRequestHandler)  # which is never made: see `process_request`

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                self._serving.connections.make_room()
                time.sleep(BREATH_S)  # the client is still in the queue, and would be tried again at once
            raise

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
        assert isinstance(request, socket.socket)  # noqa: S101 - the other half of the type is for UDP
        connection = self._serving.connections.admit(request, within_s=self._serving.limits.request_s)
        if connection is None:
            request.close()
            return
        thread = threading.Thread(target=self._serve, args=(connection, client_address), name=f"{self._name}-connection", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the machine gives no more threads
            self._serving.connections.finish(connection)
            self._lost(Lost.FULL)

    def service_actions(self) -> None:
        """Between two connections, and at least every `SWEEP_S`."""
        now = time.monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            self._serving.connections.sweep()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are no news; whatever else fails is ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("a connection failed", server=self._name, exc_info=error)

    def _serve(self, connection: Connection, client_address: Any) -> None:
        try:
            if shake_hands(connection, self._serving):
                Exchange(connection, client_address, self, serving=self._serving)
            elif not connection.ended:
                self._lost(Lost.HANDSHAKE)
        except OSError:
            return  # the client hung up, or was made to
        except Exception:
            self.handle_error(connection.socket, client_address)
        finally:
            self._serving.connections.finish(connection)


def _bound(listen: Listen, serving: Serving, *, name: str, variable: str, lost: Callable[[Lost], None]) -> _Acceptor:
    remedy = f"choose another with --listen or {variable}"
    try:
        family, _, _, _, address = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return _Acceptor(address, family, serving, name=name, lost=lost)
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
