"""The open connections, of which there is a bounded number, and who has to go when that is reached.

A connection waits (for a handshake, for a request, for the rest of one) or it is being answered. Whoever waits has a deadline, and when the
places are all taken, whoever has waited longest makes room: clients that open connections and say nothing shut nobody out. Ending one is
shutting its socket down, so that the thread that reads from it sees the end of the stream; each thread closes its own.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

SPARE = 16
"""Threads beyond the limit, of connections that have been told to end and have not yet."""


class Lost(Enum):
    """Why a connection was ended by us; a closed set for metrics."""

    FULL = "full"
    """All places were taken."""
    SLOW = "slow"
    """A request or an answer took too long on the wire. Idle ones that end are not counted."""
    HANDSHAKE = "handshake"
    """No TLS was spoken, or not ours."""


@dataclass(slots=True, eq=False)
class Connection:
    """One of them. Written by its own thread, read by the one that sweeps."""

    socket: socket.socket
    waiting_since: float
    """Monotonic seconds; inf while it is answered."""
    deadline: float
    idle: bool = False
    """Between two requests: its end is no news."""
    ended: bool = False


class Connections:
    """``clock``: monotonic seconds. ``lost``: told of each that is ended before its time."""

    def __init__(self, most: int, *, lost: Callable[[Lost], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._lost = lost
        self._clock = clock
        self._open: set[Connection] = set()
        self._changed = threading.Condition()
        self._closing = False

    def admit(self, client: socket.socket, *, within_s: float) -> Connection | None:
        """A place for a client that has ``within_s`` to say something; None when there is none, or when we are closing."""
        now = self._clock()
        with self._changed:
            if self._closing:
                return None
            if sum(not each.ended for each in self._open) >= self._most:
                self._lost(Lost.FULL)
                if not self._make_room():
                    return None
            if len(self._open) >= self._most + SPARE:
                self._lost(Lost.FULL)
                return None
            connection = Connection(client, now, now + within_s)
            self._open.add(connection)
            return connection

    def wait(self, connection: Connection, *, within_s: float, idle: bool = False) -> None:
        """From now on the client has ``within_s`` to go on."""
        with self._changed:
            now = self._clock()
            connection.waiting_since, connection.deadline, connection.idle = now, now + within_s, idle
            if idle and self._closing:
                _end(connection)

    def work(self, connection: Connection) -> None:
        """It is being answered; we have no deadline for ourselves."""
        with self._changed:
            connection.waiting_since = connection.deadline = math.inf

    def replace(self, connection: Connection, by: socket.socket) -> None:
        """After a handshake, the wrapped socket is the one."""
        with self._changed:
            connection.socket = by

    def finish(self, connection: Connection) -> None:
        """Close its socket and free its place. By its own thread, at the end."""
        with self._changed:
            self._open.discard(connection)
            connection.socket.close()
            self._changed.notify_all()

    def sweep(self) -> None:
        """End those whose time is over."""
        now = self._clock()
        with self._changed:
            for connection in [each for each in self._open if each.deadline <= now and not each.ended]:
                _end(connection)
                if not connection.idle:
                    self._lost(Lost.SLOW)

    def make_room(self) -> bool:
        """End the one that has waited longest, for the machine has no more to give; False when none waits."""
        with self._changed:
            return self._make_room()

    def _make_room(self) -> bool:
        longest = min((each for each in self._open if not each.ended), key=lambda each: each.waiting_since, default=None)
        if longest is None or longest.waiting_since == math.inf:
            return False
        _end(longest)
        return True

    def close(self, *, within_s: float) -> None:
        """Admit nobody any more, end those that wait, let the others finish for ``within_s``, and end them too."""
        until = self._clock() + within_s
        with self._changed:
            self._closing = True
            for connection in self._open:
                if connection.waiting_since < math.inf:
                    _end(connection)
            self._changed.wait_for(lambda: not self._open, timeout=max(0.0, until - self._clock()))
            for connection in self._open:
                _end(connection)
            self._changed.wait_for(lambda: not self._open, timeout=1.0)


def _end(connection: Connection) -> None:
    connection.ended = True
    try:
        # Not the method of an SSLSocket, which would take its state from under the thread that uses it.
        socket.socket.shutdown(connection.socket, socket.SHUT_RDWR)
    except OSError:  # the client was faster
        return
