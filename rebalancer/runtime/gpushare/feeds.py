"""Three watches that keep the book: pods, nodes, and the ConfigMaps that name unhealthy devices.

Each lists first, in its own thread, page by page, and keeps of a page what matters before it asks for the next: the memory of all pods of
a large cluster is never held at once. Then it follows the changes. From time to time it lists again all the same, so that a watch which
has missed something is found out.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, KubernetesError, KubernetesExpired
from rebalancer.kube.client import KubeClient
from rebalancer.kube.gpu_sharing import GPU_NODES, GPU_PODS, UNHEALTHY_DEVICES
from rebalancer.kube.lists import Resource
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import Restart, Start, Watch, WatchReport, WatchTiming
from rebalancer.kube.watch_events import Absent, News, Odd, Present, Progress, version_number
from rebalancer.runtime.gpushare.book import ShareBook
from rebalancer.runtime.gpushare.sinks import NodeSink, PodSink, Sink, UnhealthySink

T = TypeVar("T", bound=msgspec.Struct)

LIST_S = 120.0
"""How long one list may take."""
_JITTER_SHARE = 0.1
_RETRY = Backoff(first_s=1.0, ceiling_s=30.0)
_JOIN_S = 0.8


class FeedReport(WatchReport, Protocol):
    def not_listed(self, resource: str, error: KubernetesError) -> None:
        """A list has failed, for the first time in a row; it is tried again."""


class Feed(Generic[T]):
    """Lists for a watch and passes its news on: the `Follower` of one resource."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        sink: Sink[T],
        *,
        report: FeedReport,
        relist_s: float,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._resource, self._sink, self._report = client, resource, sink, report
        self._relist_s, self._chance, self._clock = relist_s, chance, clock
        self._version: int | None = None
        self._term = 0
        self._list_at = 0.0
        self.listed = threading.Event()
        """Set once the resource has been listed."""

    def start(self, stop: threading.Event) -> Start | None:
        """From where to watch; lists when that is not known, or when a list is due."""
        failures = 0
        while not stop.is_set():
            if self._version is not None and self._clock() < self._list_at:
                return Start(self._version, self._term)
            try:
                self._version = self._list(stop)
            except Interrupted:
                return None
            except KubernetesError as error:
                failures += 1
                if failures == 1:
                    self._report.not_listed(self._resource.name, error)
                stop.wait(_RETRY.delay(failures, chance=self._chance()))
                continue
            self._term += 1
            self._list_at = self._clock() + self._relist_s * (1 + _JITTER_SHARE * (2 * self._chance() - 1))
            self.listed.set()
        return None

    def opened(self, start: Start) -> None:
        """Nothing is to be done."""

    def take(self, news: Sequence[News[T]], start: Start) -> bool:
        for each in news:
            if isinstance(each, Present):
                self._sink.present(each.key, each.version, each.item)
            elif isinstance(each, Absent):
                self._sink.absent(each.key, each.version)
            # Of an object that cannot be read, what was known stays: it may hold a device as before.
            elif not isinstance(each, Odd | Progress):
                raise AssertionError("unreachable: there are no other news")
            self._version = max(self._version or 0, each.version)
        return True

    def closed(self, start: Start, reason: Restart) -> None:
        if reason in (Restart.EXPIRED, Restart.FORBIDDEN, Restart.DEFECT):
            self._version = None

    def _list(self, stop: threading.Event) -> int:
        """List everything; the version of the list. Raises KubernetesError."""
        deadline = Deadline.after(LIST_S, stop=stop)
        while True:
            self._sink.begin()
            odd: dict[str, str] = {}
            version = ""
            try:
                for page in self._client.pages(self._resource, deadline=deadline):
                    for item in page.items:
                        self._sink.listed(item)
                    odd.update(page.odd_keys)
                    version = page.resource_version
            except KubernetesExpired:
                continue  # of two versions no list is made; the deadline ends it
            number = version_number(version)
            if number is None:
                raise KubernetesError(f"{self._client.server} listed {self._resource.name} without a usable resourceVersion")
            self._sink.complete(version=number, odd=odd)
            return number


class Feeds:
    """``with Feeds(...)``: a thread for each of the three watches."""

    def __init__(
        self,
        client: KubeClient,
        book: ShareBook,
        *,
        report: FeedReport,
        relist_s: float = 600.0,
        timing: WatchTiming | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``relist_s``: how often each is listed all the same, varied by a tenth at random."""
        self._stop = threading.Event()
        self._watches: list[Watch[Any]] = []
        self._feeds: list[Feed[Any]] = []
        fed: tuple[tuple[Resource[Any], Sink[Any]], ...] = (
            (GPU_PODS, PodSink(book)),
            (GPU_NODES, NodeSink(book)),
            (UNHEALTHY_DEVICES, UnhealthySink(book)),
        )
        for resource, sink in fed:
            feed = Feed(client, resource, sink, report=report, relist_s=relist_s, chance=chance, clock=clock)
            self._feeds.append(feed)
            self._watches.append(Watch(client, resource, feed, stop=self._stop, report=report, timing=timing, chance=chance, clock=clock))
        self._threads = [threading.Thread(target=each.run, name="gpushare-watch", daemon=True) for each in self._watches]

    def __enter__(self) -> Feeds:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stop.set()
        for watch in self._watches:
            watch.break_off()
        until = time.monotonic() + _JOIN_S
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def ready(self) -> bool:
        """Whether pods and nodes have been listed. Without the ConfigMaps no device is known to be unhealthy."""
        return self._feeds[0].listed.is_set() and self._feeds[1].listed.is_set()

    def unread(self) -> tuple[str, ...]:
        """What has not been listed yet."""
        return tuple(name for name, feed in zip(("pods", "nodes", "configmaps"), self._feeds, strict=True) if not feed.listed.is_set())

    def wait_ready(self, seconds: float) -> bool:
        """Wait for it, at most so long."""
        until = time.monotonic() + seconds
        return all(feed.listed.wait(max(0.0, until - time.monotonic())) for feed in self._feeds[:2])
