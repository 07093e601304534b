"""One answer that does not end: opened once, read as it comes, and broken off from another thread at any moment.

A thread that waits for the next byte can be woken in two ways only: by its time-out, or by shutting the socket down under it. The second
is what lets a process with a dozen quiet watches stop at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import urllib3.exceptions

from rebalancer.kube import failures
from rebalancer.kube.operations import Operation

_CHUNK_BYTES = 64 * 1024


class Stream:
    """``raw``: an open answer of urllib3. ``silence_s``: longest time between two bytes. Close it in the thread that reads it."""

    def __init__(self, raw: Any, *, operation: Operation, server: str, ca: str, silence_s: float) -> None:
        self._raw = raw
        self._operation, self._server, self._ca, self._silence_s = operation, server, ca, silence_s
        self._lock = threading.Lock()
        self._closed = self._broken_off = False

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def chunks(self) -> Iterator[bytes]:
        """Bytes as they arrive, in pieces of any size, until the server ends the answer or `break_off` is called.

        Raises `failures.TooSlow` after ``silence_s`` without a byte, KubernetesUnreachable when the connection is lost.
        """
        try:
            while not self._broken_off and (chunk := self._raw.read1(_CHUNK_BYTES, decode_content=True)):
                yield chunk
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            # A socket that is shut down under TLS fails with a ValueError.
            if not self._broken_off:
                raise failures.transport_failure(
                    error, operation=self._operation, server=self._server, ca=self._ca, seconds=self._silence_s
                ) from error

    def break_off(self) -> None:
        """Wake the reader and let it find the end. From any thread, at any time, more than once."""
        self._broken_off = True
        with self._lock:
            if self._closed:
                return
            try:
                self._raw.shutdown()
            except (OSError, ValueError, RuntimeError):
                # The answer has ended: its connection is closed or serves another request.
                return

    def close(self) -> None:
        """Close the connection, unless the answer ended and gave it back to the pool."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._raw.close()
            self._raw.release_conn()
