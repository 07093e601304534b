"""Extenders that are worse than none, and how long kube-scheduler takes to bind a pod with each."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.e2e.api import until
from tests.e2e.ground import Ground
from tests.e2e.objects import pod, pod_spec
from tests.e2e.plane import Plane
from tests.e2e.steering_extender import configured, free_address

BOUND_S = 60.0
PROBES = 8
GARBAGE: Sequence[tuple[int, bytes]] = (
    (200, b"<html>Please log in</html>"),
    (200, b'{"NodeNames": ["node'),
    (200, b'[{"Host": 7}]'),
    (200, b'{"NodeNames": ["no-such-node"], "FailedNodes": {"node-0": 1}}'),
    (500, b"internal error"),
    (200, b""),
)


@contextlib.contextmanager
def hanging() -> Iterator[str]:
    """Accepts, and never answers."""
    with contextlib.closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def talking_garbage() -> Iterator[str]:
    """Answers at once, each time something else that nobody can use."""
    answers = itertools.cycle(GARBAGE)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = next(answers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="garbage")
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def gone() -> Iterator[str]:
    """Nobody listens."""
    yield free_address()


FAILURES: Sequence[tuple[str, Callable[[], AbstractContextManager[str]]]] = (
    ("hangs", hanging),
    ("answers garbage", talking_garbage),
    ("is gone", gone),
)


@dataclass(frozen=True)
class Latency:
    """``seconds``: of each pod, from its creation to the sight of its binding; one pod after the other."""

    name: str
    seconds: Sequence[float]

    @property
    def words(self) -> str:
        return f"{self.name}: {sorted(self.seconds)[len(self.seconds) // 2]:.2f} s, at most {max(self.seconds):.2f} s"


def latency(own: Ground, namespace: str, name: str, *, pods: int = PROBES) -> Latency:
    """All of ``pods`` are bound, or it fails."""
    seconds = []
    for number in range(pods):
        own.apply(pod(f"probe-{number}", namespace, pod_spec(cpu="10m", memory="16Mi")))
        began = time.monotonic()
        until(lambda: _bound(own, namespace, f"probe-{number}"), f"a pod is bound while the extender {name}", seconds=BOUND_S, step=0.01)  # noqa: B023
        seconds.append(time.monotonic() - began)
    for number in range(pods):
        own.api.delete("pods", f"probe-{number}", namespace, grace_s=0)
    return Latency(name, seconds)


def latencies(own: Ground, namespace: str) -> Iterator[Latency]:
    """Without an extender first, then with each that fails."""
    assert isinstance(own.plane, Plane), "the scheduler of a borrowed cluster is not ours to configure"
    with own.plane.extended():
        yield latency(own, namespace, "is not configured")
    for name, failing in FAILURES:
        with failing() as address, own.plane.extended(configured(address)):
            yield latency(own, namespace, name)


def _bound(own: Ground, namespace: str, name: str) -> bool:
    return bool(own.api.get("pods", name, namespace)["spec"].get("nodeName"))
