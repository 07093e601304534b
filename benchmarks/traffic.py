"""What travels between the two processes of a benchmark, counted, and compressed as the real servers compress it.

kube-apiserver compresses lists beyond 128 KiB with gzip at its fastest level when the client takes it (feature APIResponseCompression),
Prometheus every answer. Unpacking costs the client, so it belongs into the measurement; packing costs the server and does not.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.scene import Traffic
from rebalancer.simulate.faults import Fault
from rebalancer.simulate.http_server import Answer, Application, HttpServer, Request

COMPRESSED_FROM_BYTES = 128 * 1024
_FASTEST, _GZIP = 1, 31


@dataclass(slots=True)
class Meter:
    """Adds up the traffic of one server; its threads share it."""

    total: Traffic = field(default_factory=Traffic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, *, requests: int = 1, json_bytes: int, wire_bytes: int) -> None:
        with self._lock:
            self.total = Traffic(
                requests=self.total.requests + requests,
                json_bytes=self.total.json_bytes + json_bytes,
                wire_bytes=self.total.wire_bytes + wire_bytes,
            )

    def serve(self, application: Application, **options: Any) -> HttpServer:
        """The server that `EmbeddedCluster` asks for, with this meter between it and its application."""
        return HttpServer(_Metered(application, self), **options)


class _Metered:
    def __init__(self, application: Application, meter: Meter) -> None:
        self._application = application
        self._meter = meter

    def answer(self, request: Request, fault: Fault | None) -> Answer:
        answer = self._application.answer(request, fault)
        if answer.stream is not None:
            self._meter.count(json_bytes=0, wire_bytes=0)
            return replace(answer, stream=self._counted(answer.stream))
        packed = answer
        if len(answer.body) >= COMPRESSED_FROM_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
            gzip = zlib.compressobj(level=_FASTEST, wbits=_GZIP)
            headers = (*answer.headers, ("Content-Encoding", "gzip"))
            packed = replace(answer, body=gzip.compress(answer.body) + gzip.flush(), headers=headers)
        self._meter.count(json_bytes=len(answer.body), wire_bytes=len(packed.body))
        return packed

    def _counted(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        """A watch, which is not compressed."""
        for chunk in stream:
            self._meter.count(requests=0, json_bytes=len(chunk), wire_bytes=len(chunk))
            yield chunk

    def broken(self, fault: Fault) -> Answer:
        return self._application.broken(fault)
