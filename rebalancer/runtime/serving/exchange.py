"""One connection on its own thread: a handshake if there is TLS, then requests and answers in turns until somebody ends it.

The head of a request is read by http.server. Everything that a client may be slow with has a deadline, see `Connections`.
"""

from __future__ import annotations

import io
import socket
import ssl
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl

import structlog

from rebalancer.runtime.serving.bodies import Body, CutOff, Refused, Room, announced
from rebalancer.runtime.serving.certificate import Certificate
from rebalancer.runtime.serving.connections import Connection, Connections
from rebalancer.runtime.serving.messages import Answer, Handler, Request, text
from rebalancer.runtime.serving.routing import Router

LONGEST_HEAD = 65536
"""Of a request: its line and its headers together, in bytes."""
LINGER_S = 2.0
"""For what a client still sends when it has been refused: closing at once would take the answer from it."""
_WITH_ONE_WRITE = 1 << 16

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server gives away. Seconds are on the wire; our own work has no limit here."""

    connections: int = 256
    body_bytes: int = 0
    all_bodies_bytes: int = 0
    handshake_s: float = 5.0
    request_s: float = 10.0
    """From the first byte of a request to its last, and before the first request of a connection."""
    answer_s: float = 10.0
    idle_s: float = 120.0
    """Longer than the 90 s after which Go's client ends an idle connection: if ours ended first, a request could be lost to it."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What all exchanges of a server share."""

    router: Router
    connections: Connections
    limits: Limits
    room: Room
    certificate: Certificate | None = None


class Exchange(BaseHTTPRequestHandler):
    """``serving`` and ``connection`` are set before the base class begins to read in its constructor."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    rbufsize = _WITH_ONE_WRITE

    def __init__(self, connection: Connection, client_address: Any, server: Any, *, serving: Serving) -> None:
        self.serving = serving
        self.place = connection
        super().__init__(connection.socket, client_address, server)

    def setup(self) -> None:
        super().setup()
        self.rfile: _Reader = _Reader(self.rfile.detach(), buffer_size=self.rbufsize)

    def handle_one_request(self) -> None:
        if not self.rfile.peek(1):
            self.close_connection = True
            return
        self._wait(self.serving.limits.request_s)
        self.rfile.head_left = LONGEST_HEAD
        try:
            self.raw_requestline = self.rfile.readline()
        except HTTPException:
            self.requestline = self.request_version = self.command = ""
            self._refuse(text("the request line is too long", status=HTTPStatus.REQUEST_URI_TOO_LONG))
            return
        if not self.raw_requestline.strip():
            return  # an empty line before a request is allowed
        if self.parse_request():
            self._serve()

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        handler = self.serving.router.handler(self.command, path)
        body, refusal = Body(self.serving.room), None
        try:
            length = announced(_all_values(self.headers), most_bytes=self.serving.limits.body_bytes)
            if isinstance(handler, Answer):
                if length:
                    self._refuse(handler)
                else:
                    self._send(handler)
                return
            if self.headers.get("Expect", "").lower() == "100-continue":
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            content = body.read(self.rfile, length)
            self.serving.connections.work(self.place)
            values = dict(parse_qsl(query, keep_blank_values=True))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(self._answer(handler, Request(self.command, path, content, values, headers)))
        except Refused as refused:
            refusal = text(str(refused), status=refused.status)
        except CutOff:
            self.close_connection = True
        finally:
            body.close()
        if refusal is not None:  # only now: whoever lingers would keep its part of the room from others
            self._refuse(refusal)

    def _answer(self, handler: Handler, request: Request) -> Answer:
        try:
            return handler(request)
        except Exception:
            log.exception("a request met a defect of this program", method=request.method, bytes=len(request.body))
            return text("a defect of this program; its log says more", status=HTTPStatus.INTERNAL_SERVER_ERROR)

    def _send(self, answer: Answer) -> None:
        self._wait(self.serving.limits.answer_s)
        if answer.headers.get("Connection") == "close":
            self.close_connection = True
        status = HTTPStatus(answer.status)
        headers = {
            "Server": "rebalancer",
            "Date": self.date_time_string(),
            "Content-Type": answer.content_type,
            "Content-Length": str(len(answer.body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **answer.headers,
        }
        if self.close_connection:
            headers["Connection"] = "close"
        elif self.request_version == "HTTP/1.0":
            headers["Connection"] = "keep-alive"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{lines}\r\n".encode("latin-1")
        body = b"" if self.command == "HEAD" else answer.body
        if len(body) <= _WITH_ONE_WRITE:
            self.wfile.write(head + body)
        else:
            self.wfile.write(head)
            self.wfile.write(body)
        if not self.close_connection:
            self._wait(self.serving.limits.idle_s, idle=True)

    def _refuse(self, answer: Answer) -> None:
        """Answer before the whole request was read, and end the connection."""
        self.close_connection = True
        self._send(answer)
        self._wait(LINGER_S, idle=True)
        if not isinstance(self.connection, ssl.SSLSocket):
            self.connection.shutdown(socket.SHUT_WR)
        while self.rfile.read1(_WITH_ONE_WRITE):
            continue

    def _wait(self, seconds: float, *, idle: bool = False) -> None:
        self.serving.connections.wait(self.place, within_s=seconds, idle=idle)

    # ---- what http.server calls -------------------------------------------------------------------------------------------

    def handle_expect_100(self) -> bool:
        """Only once it is known that the body will be read."""
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A head that cannot be read: one plain line, where http.server would write a page."""
        self._refuse(text(HTTPStatus(code).phrase, status=code))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that is replaced
        """A line for each probe would drown the rest."""


class _Reader(io.BufferedReader):
    """Reads lines of a bounded head; http.server bounds each line and their number, which is megabytes for each connection."""

    head_left = 0

    def readline(self, size: int | None = -1) -> bytes:
        """Raises HTTPException, which http.server answers, when the head has become too long."""
        most = self.head_left + 1
        line = super().readline(most if size is None or size < 0 else min(size, most))
        self.head_left -= len(line)
        if self.head_left < 0:
            raise HTTPException("the head of the request is too long")
        return line


def shake_hands(connection: Connection, serving: Serving) -> bool:
    """Speak TLS first, if this server does. False when the client does not."""
    if serving.certificate is None:
        return True
    plain = connection.socket
    serving.connections.wait(connection, within_s=serving.limits.handshake_s)
    wrapped = serving.certificate.context().wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
    serving.connections.replace(connection, wrapped)
    try:
        wrapped.do_handshake()
    except (OSError, ValueError):  # what ssl raises is an OSError
        return False
    serving.connections.wait(connection, within_s=serving.limits.request_s)
    return True


def _all_values(headers: Message) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers.items():
        found.setdefault(name.lower(), []).append(value.strip())
    return found
