"""One watch of one resource that goes on for as long as it is let, through every bad moment of a network and of a server.

The client's own `Watch` and informer stay unused: they reconnect from old versions, ask for no bookmarks, wait for ever for a dead network
and hammer a server that answers 500. Here each event and each bookmark moves the version from which the next connection continues. The
server is told to end each connection after a while, and the client gives up on one that is silent for longer than that. Errors are followed
by growing, jittered pauses. A version that has expired is never asked for again.

Nothing is listed and nothing is kept here: a `Follower` says from which version to watch, and gets the news.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec

from rebalancer.errors import KubernetesError, KubernetesExpired, KubernetesThrottled, KubernetesUnreachable
from rebalancer.kube.client import KubeClient
from rebalancer.kube.failures import TooSlow
from rebalancer.kube.lists import Resource
from rebalancer.kube.retries import Backoff
from rebalancer.kube.stream import Stream
from rebalancer.kube.transport import JSON
from rebalancer.kube.watch_events import EventDecoder, Garbled, News, Present, lines

T = TypeVar("T", bound=msgspec.Struct)

METADATA_ONLY = f"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
_SETTLED_S = 1.0
"""A connection that ends by itself before this age is no better than one that fails."""


class Restart(Enum):
    """Why a connection ended; the closed set of ``watch_restarts_total{reason}``."""

    ENDED = "ended"
    """By the server, as it was asked to."""
    EXPIRED = "expired"
    """410: what happened since the version is forgotten, only a list can tell."""
    SILENT = "silent"
    """Not a byte for longer than the server may take to end it."""
    DROPPED = "dropped"
    """The connection was lost, or could not be made."""
    GARBLED = "garbled"
    """The bytes were no events, or ended within one."""
    REFUSED = "refused"
    """The server answered with an error."""
    FORBIDDEN = "forbidden"
    """The right to watch is missing."""
    OUTDATED = "outdated"
    """A list has replaced what the watch continued."""
    DEFECT = "defect"
    """A mistake of this program."""


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """All in seconds. ``server``: after which the server ends a connection, shortened by up to a quarter at random. ``silence``: longest
    time without a byte; longer than ``server``. ``forbidden``: pause before the right to watch is tried again."""

    server: float = 40.0
    silence: float = 45.0
    forbidden: float = 600.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=1.0, ceiling_s=30.0))

    def __post_init__(self) -> None:
        if not self.silence > self.server >= 1:
            raise ValueError(f"a watch needs silence > server >= 1 s, not {self.silence:g} and {self.server:g}")

    def timeout_seconds(self, *, chance: float) -> int:
        return max(1, round(self.server * (1 - 0.25 * chance)))


@dataclass(frozen=True, slots=True)
class Start:
    """Where a connection begins. ``term`` grows whenever a list replaces everything: news of an older term are about another past."""

    version: int
    term: int


class Follower(Protocol[T]):
    """What a watch serves. Called by the thread of the watch alone."""

    def start(self, stop: threading.Event) -> Start | None:
        """From where to watch; waits until a list has said so. None when ``stop`` is set."""

    def opened(self, start: Start) -> None:
        """The server has accepted the watch."""

    def take(self, news: Sequence[News[T]], start: Start) -> bool:
        """Take news in their order. False when they belong to a past term: the connection is then given up."""

    def closed(self, start: Start, reason: Restart) -> None:
        """The connection is over. After EXPIRED and FORBIDDEN its version is of no use any more."""


class WatchReport(Protocol):
    """Who is told how watches are doing, from any thread."""

    def restarted(self, resource: str, reason: Restart) -> None: ...

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        """Once, until the watch has been allowed again."""

    def defect(self, resource: str, error: Exception) -> None: ...


@dataclass(slots=True)
class _Connection:
    """What is remembered of one connection while it lasts."""

    opened_at: float | None = None
    heard: bool = False


class Watch(Generic[T]):
    """``run`` in a thread of its own; ``stop`` and then ``break_off`` end it at once, ``Watch`` itself holds no thread."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        follower: Follower[T],
        *,
        stop: threading.Event,
        report: WatchReport,
        timing: WatchTiming | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        """``pause`` waits so many seconds, or less when a stop is asked for."""
        self._client, self._resource, self._follower, self._report = client, resource, follower, report
        self._stop, self._pause = stop, pause or stop.wait
        self._timing = timing or WatchTiming()
        self._chance, self._clock = chance, clock
        self._decoder = EventDecoder(resource.item, name=resource.name)
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._forbidden = False

    def run(self) -> None:
        """Until ``stop`` is set."""
        failures = 0
        while (start := self._follower.start(self._stop)) is not None:
            connection = _Connection()
            reason, asked_wait = self._connect(start, connection)
            if self._stop.is_set():
                return
            self._follower.closed(start, reason)
            self._report.restarted(self._resource.name, reason)
            age = 0.0 if connection.opened_at is None else self._clock() - connection.opened_at
            if connection.heard or age >= _SETTLED_S:
                failures = 0
            if reason is Restart.ENDED and age >= _SETTLED_S:
                continue
            failures += 1
            self._pause(max(asked_wait, self._timing.backoff.delay(failures, chance=self._chance())))

    def break_off(self) -> None:
        """End the connection, wherever it waits for news. Set ``stop`` first, else another one follows."""
        with self._lock:
            if self._stream is not None:
                self._stream.break_off()

    def _connect(self, start: Start, connection: _Connection) -> tuple[Restart, float]:
        """One connection to its end: why it ended, and how long the server wants to be left alone."""
        try:
            return self._follow(start, connection), 0.0
        except KubernetesExpired:
            return Restart.EXPIRED, 0.0
        except TooSlow:
            return Restart.SILENT, 0.0
        except KubernetesUnreachable:
            return Restart.DROPPED, 0.0
        except Garbled:
            return Restart.GARBLED, 0.0
        except KubernetesError as error:
            return self._refused(error)
        except Exception as error:  # whatever it is, a watch that dies unseen would be worse
            self._report.defect(self._resource.name, error)
            return Restart.DEFECT, 0.0

    def _refused(self, error: KubernetesError) -> tuple[Restart, float]:
        if error.status == 403:
            if not self._forbidden:
                self._report.forbidden(self._resource.name, error)
            self._forbidden = True
            return Restart.FORBIDDEN, self._timing.forbidden * (1 - 0.25 * self._chance())
        wait = error.retry_after_s if isinstance(error, KubernetesThrottled) else None
        return Restart.REFUSED, wait or 0.0

    def _follow(self, start: Start, connection: _Connection) -> Restart:
        query = (
            *self._resource.query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", str(start.version)),
            ("timeoutSeconds", str(self._timing.timeout_seconds(chance=self._chance()))),
        )
        accept = METADATA_ONLY if self._resource.metadata_only else JSON
        with self._client.stream(self._resource.path, query=query, accept=accept, silence_s=self._timing.silence) as stream:
            self._hold(stream)
            try:
                if self._stop.is_set():
                    return Restart.ENDED
                connection.opened_at, self._forbidden = self._clock(), False
                self._follower.opened(start)
                return self._listen(stream, start, connection)
            finally:
                self._hold(None)

    def _hold(self, stream: Stream | None) -> None:
        with self._lock:
            self._stream = stream

    def _listen(self, stream: Stream, start: Start, connection: _Connection) -> Restart:
        # Not for longer than a connection: what is shared is kept alive.
        share = self._resource.sharing() if self._resource.sharing is not None else None
        for batch in lines(stream.chunks()):
            news: list[News[T]] = []
            current = True
            try:
                for line in batch:
                    one = self._decoder.decode(line)
                    if share is not None and isinstance(one, Present):
                        share(one.item)
                    news.append(one)
            finally:
                # It is true all the same, and the next connection continues behind it.
                if news:
                    connection.heard = True
                    current = self._follower.take(news, start)
            if not current:
                return Restart.OUTDATED
        return Restart.ENDED
