"""A few resources kept current for a reader that never waits: what is known of each, and since when nothing better is.

The watches and their tables are those of `watched`, where whoever reads lists what the watches cannot tell. Here a thread does so: it lists
at the start, when a watch is out of touch, and from time to time anyhow, and it does so at a civil pace, since the reader looks some times
a second. While neither watch nor list can tell anything, what was known last stays, with the time of it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from rebalancer.collect.watched import Report, WatchedCluster
from rebalancer.collect.watched_table import Contact
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import Resource
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import WatchTiming

T = TypeVar("T", bound=msgspec.Struct)

_LIST_S = 60.0
"""How long a list may take."""
_JOIN_S = 0.8


class KeptReport(Report, Protocol):
    def unreadable(self, resource: str, error: KubernetesError) -> None:
        """It cannot be listed. Once, until it could."""

    def readable(self, resource: str) -> None:
        """It can be listed again."""


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """``at``: monotonic seconds until which this was known to be so."""

    items: list[T]
    at: float


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. ``look``: how often it is seen whether something has to be listed; ``again``: between two lists that no watch goes on from;
    failures are followed by growing pauses."""

    look: float = 0.25
    again: float = 15.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=1.0, ceiling_s=30.0))


@dataclass(slots=True)
class _Kept:
    """``known`` is written under the lock, the rest by the listing thread alone."""

    known: Known[Any] | None = None
    list_at: float = 0.0
    failures: int = 0


class KeptLists:
    """``with KeptLists(...) as kept:`` runs one thread for each resource, and one that lists."""

    def __init__(
        self,
        client: KubeClient,
        resources: Sequence[Resource[Any]],
        *,
        report: KeptReport,
        relist_s: float = 600.0,
        timing: WatchTiming | None = None,
        contact: Contact | None = None,
        pace: Pace | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._pace, self._chance, self._clock = report, pace or Pace(), chance, clock
        self._cluster = WatchedCluster(
            client, report=report, relist_s=relist_s, resources=resources, timing=timing, contact=contact, chance=chance, clock=clock
        )
        self._kept = {resource: _Kept() for resource in resources}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lists", daemon=True)

    def __enter__(self) -> KeptLists:
        self._cluster.__enter__()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._stop.set()
        self._cluster.close()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)

    def alive(self) -> bool:
        """Whether every watch, and what lists, has its thread."""
        return self._thread.is_alive() and self._cluster.alive()

    def known(self, resource: Resource[T]) -> Known[T] | None:
        """What is known of it; None before its first list. Any thread, at once."""
        found = self._cluster.known(resource)
        with self._lock:
            kept = self._kept[resource]
            if found is not None:
                kept.known = Known(found[0], self._clock())
            return kept.known

    def list_what_is_due(self) -> None:
        """What the thread does at each look."""
        for resource, kept in self._kept.items():
            now = self._clock()
            if now >= kept.list_at and (self._cluster.due(resource) or self._cluster.known(resource) is None):
                self._list(resource, kept)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.list_what_is_due()
            except Exception as error:  # whatever it is, lists that end unseen would be worse
                self._report.defect("lists", error)
                self._stop.wait(self._pace.again)
            self._stop.wait(self._pace.look)

    def _list(self, resource: Resource[Any], kept: _Kept) -> None:
        asked_at = self._clock()
        try:
            items, _ = self._cluster.list_one(resource, deadline=Deadline.after(_LIST_S, stop=self._stop, clock=self._clock))
        except Interrupted:
            return
        except KubernetesError as error:
            if not kept.failures:
                self._report.unreadable(resource.name, error)
            kept.failures += 1
            kept.list_at = self._clock() + self._pace.backoff.delay(kept.failures, chance=self._chance())
            return
        if kept.failures:
            self._report.readable(resource.name)
        kept.failures, kept.list_at = 0, self._clock() + self._pace.again
        with self._lock:
            kept.known = Known(items, asked_at)
