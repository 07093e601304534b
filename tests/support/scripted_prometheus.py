"""An HTTP server on loopback that answers the query API with what a test scripts, and remembers what it was asked.

    with scripted_prometheus() as server:
        server.on("node_cpu_seconds_total", matrix(({"node": "n1"}, [0.5] * 10)))
        Prometheus(PrometheusAccess(url=server.url))

A query is matched by a part of its text, the rule that was added last wins; a rule with several replies gives them in order and repeats
the last. What no rule matches is answered with no series.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Form = Mapping[str, str]
Value = float | str


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    cut_at: int | None = None
    """Announce the whole body, send only so many bytes, and close."""
    hang: bool = False
    """Never answer."""


Script = Reply | Callable[[Form], Reply]


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    url: str
    """The request target as it came: path and query string."""
    form: Form
    headers: Mapping[str, str]

    @property
    def query(self) -> str:
        return self.form.get("query", "")


def success(kind: str, result: Any, *, warnings: Sequence[str] = (), infos: Sequence[str] = ()) -> Reply:
    body: dict[str, Any] = {"status": "success", "data": {"resultType": kind, "result": result}}
    if warnings:
        body["warnings"] = list(warnings)
    if infos:
        body["infos"] = list(infos)
    return Reply(body=json.dumps(body).encode())


def failure(status: int, error: str, *, kind: str = "bad_data", headers: Mapping[str, str] | None = None) -> Reply:
    body = json.dumps({"status": "error", "errorType": kind, "error": error}).encode()
    return Reply(status=status, body=body, headers=headers or {})


def vector(*series: tuple[Mapping[str, str], Value], warnings: Sequence[str] = (), stamp: float | None = None) -> Script:
    """One value a series, at the time that was asked for unless ``stamp`` says another."""

    def answer(form: Form) -> Reply:
        at = float(form["time"]) if stamp is None else stamp
        result = [{"metric": dict(labels), "value": [at, _text(value)]} for labels, value in series]
        return success("vector", result, warnings=warnings)

    return answer


def matrix(*series: tuple[Mapping[str, str], Sequence[Value | None]], warnings: Sequence[str] = ()) -> Script:
    """Values on the grid that was asked for, aligned at its end; None leaves a gap."""

    def answer(form: Form) -> Reply:
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        points = round((end - start) / step) + 1
        result = []
        for labels, values in series:
            first = points - len(values)
            samples = [
                [round(start + (first + k) * step, 3), _text(value)]
                for k, value in enumerate(values)
                if value is not None and first + k >= 0
            ]
            if samples:
                result.append({"metric": dict(labels), "values": samples})
        return success("matrix", result, warnings=warnings)

    return answer


def fresh(*labels: Mapping[str, str], age_s: float = 15.0) -> Script:
    """Times of raw samples, as ``timestamp()`` gives them: so many seconds before the time that was asked for."""
    return lambda form: vector(*((one, float(form["time"]) - age_s) for one in labels))(form)  # type: ignore[operator]


HTML_LOGIN = Reply(body=b"<!DOCTYPE html><html><title>Sign in</title></html>", content_type="text/html")


def _text(value: Value) -> str:
    return value if isinstance(value, str) else repr(float(value))


class ScriptedPrometheus:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self.url = ""
        self._lock = threading.Lock()
        self._rules: list[tuple[str, list[Script]]] = []

    def on(self, part: str, *replies: Script) -> None:
        """Answer queries that contain ``part``."""
        with self._lock:
            self._rules.append((part, list(replies)))

    def queries(self, part: str = "") -> list[Asked]:
        with self._lock:
            return [asked for asked in self.asked if part in asked.query]

    def reply(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            script: Script | None = None
            for part, replies in reversed(self._rules):
                if part in asked.query:
                    script = replies[0] if len(replies) == 1 else replies.pop(0)
                    break
        if script is None:
            return success("matrix" if asked.path.endswith("query_range") else "vector", [])
        return script if isinstance(script, Reply) else script(asked.form)


def _handler(server: ScriptedPrometheus) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._answer(body.decode())

        def do_GET(self) -> None:
            self._answer("")

        def _answer(self, body: str) -> None:
            target = urlsplit(self.path)
            form = {name: values[-1] for name, values in {**parse_qs(target.query), **parse_qs(body)}.items()}
            asked = Asked(self.command, target.path, self.path, form, dict(self.headers.items()))
            reply = server.reply(asked)
            if reply.hang:
                server.closing.wait(30)
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body if reply.cut_at is None else reply.body[: reply.cut_at])
            if reply.cut_at is not None:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Silence: the test's own output is enough."""

    return Handler


@contextmanager
def scripted_prometheus(*, certificate: tuple[Path, Path] | None = None) -> Iterator[ScriptedPrometheus]:
    """``certificate``: files of the chain and of its key, for https."""
    script = ScriptedPrometheus()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    http.daemon_threads = True
    http.handle_error = lambda *_: None  # type: ignore[method-assign]
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        http.socket = context.wrap_socket(http.socket, server_side=True)
        scheme = "https"
    script.url = f"{scheme}://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.closing.set()
        http.shutdown()
        http.server_close()
        thread.join(5)
