"""A server behind a slow line: what a client sends is passed on, late. Every request waits once, answers pass at their own speed."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

_CHUNK = 65536


@contextlib.contextmanager
def slow_proxy(url: str, *, delay_s: float) -> Iterator[str]:
    """The URL of a proxy for ``url`` on loopback that holds what comes from a client back for ``delay_s``."""
    target = urlsplit(url)
    assert target.hostname is not None
    there = (target.hostname, target.port or 80)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    stop, threads, ends = threading.Event(), list[threading.Thread](), list[socket.socket]()

    def accept() -> None:
        while not stop.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            try:
                server = socket.create_connection(there, timeout=5)
            except OSError:
                client.close()
                continue
            ends.extend((client, server))
            for source, sink, wait_s in ((client, server, delay_s), (server, client, 0.0)):
                source.settimeout(0.2)
                thread = threading.Thread(target=_pass_on, args=(source, sink, wait_s, stop), daemon=True)
                threads.append(thread)
                thread.start()

    accepting = threading.Thread(target=accept, name="slow-proxy", daemon=True)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        accepting.join(5)
        for thread in threads:
            thread.join(delay_s + 5)
        for end in (*ends, listener):
            end.close()


def _pass_on(source: socket.socket, sink: socket.socket, wait_s: float, stop: threading.Event) -> None:
    """Until one end closes, which the other side is told."""
    try:
        while not stop.is_set():
            try:
                data = source.recv(_CHUNK)
            except TimeoutError:
                continue
            if not data:
                break
            time.sleep(wait_s)
            sink.sendall(data)
    except OSError:
        pass  # the other side went away
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
