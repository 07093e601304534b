"""A cluster that is kept current by watch, so that a cycle in a quiet cluster reads changes and not lists.

Correctness comes before cheapness. The cycle takes from a watch only what is known to be up to date (`WatchedTable.copy`); everything
else it lists, in that very cycle: at the start, after a watch has expired, while the server cannot be heard or forbids to watch, and from
time to time anyhow, so that a watch that lies is found out. Lists are made by the cycle alone, never by a watch: nothing is listed twice.

Pods are copied first and what they point to afterwards, as in `cluster`. Streams of two kinds are not tied to each other: a pod may be seen
some milliseconds before the node or the owner that it was created after. It then counts as a gap, and the next cycle knows better.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from rebalancer.collect.cluster import ClusterObjects, gather
from rebalancer.collect.pod_table import PodTable
from rebalancer.collect.watched_table import Contact, Copy, WatchedTable
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import Resource, list_all
from rebalancer.kube.resources import PODS, WATCHED
from rebalancer.kube.watch import Watch, WatchReport, WatchTiming

T = TypeVar("T", bound=msgspec.Struct)

_JITTER_SHARE = 0.1
_JOIN_S = 0.8
"""How long closing waits for the threads. One that waits for a server to accept a connection ends by itself, and holds nothing back."""


class Report(WatchReport, Protocol):
    def disagreed(self, resource: str, objects: int) -> None:
        """A list has corrected what the watch should have told."""


@dataclass(slots=True)
class _Watched(Generic[T]):
    resource: Resource[T]
    table: WatchedTable[T]
    watch: Watch[T]
    list_at: float = 0.0
    """Monotonic seconds: when the next list is due, whatever the watch says."""


class WatchedCluster:
    """``with WatchedCluster(...) as source:`` runs one thread for each watched resource; `read` is called by one thread at a time."""

    def __init__(
        self,
        client: KubeClient,
        *,
        report: Report,
        relist_s: float = 600.0,
        resources: Sequence[Resource[Any]] = WATCHED,
        timing: WatchTiming | None = None,
        contact: Contact | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``relist_s``: how often each watched resource is listed all the same, varied by a tenth at random."""
        self._client, self._relist_s, self._chance, self._clock = client, relist_s, chance, clock
        self._stop = threading.Event()
        self._watched: dict[Resource[Any], _Watched[Any]] = {}
        self._pods: tuple[int, PodTable] = (0, PodTable())
        """The columns of pods that were handed out last, and of which epoch."""
        for resource in resources:
            table = _table(resource, report=report, contact=contact, clock=clock)
            watch = Watch(client, resource, table, stop=self._stop, report=report, timing=timing, chance=chance, clock=clock)
            self._watched[resource] = _Watched(resource, table, watch)
        self._threads = [
            threading.Thread(target=each.watch.run, name=f"watch-{each.resource.name}", daemon=True) for each in self._watched.values()
        ]

    def __enter__(self) -> WatchedCluster:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every watch at once; the next `read` would list."""
        self._stop.set()
        for each in self._watched.values():
            each.watch.break_off()
            each.table.wake()
        until = time.monotonic() + _JOIN_S
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    def rest(self) -> None:
        """Watch and keep nothing until the next `read`, which lists. Called by the thread that reads."""
        for each in self._watched.values():
            each.table.forget()
            each.watch.break_off()
        self._pods = (0, PodTable())

    def alive(self) -> bool:
        """Whether every watch has its thread."""
        return all(thread.is_alive() for thread in self._threads)

    def read(self, *, deadline: Deadline) -> ClusterObjects:
        """All objects as they are now. Raises as `read_cluster`."""
        return gather(_Reader(self, deadline), table=self._pod_table)

    def _pod_table(self) -> PodTable:
        """The table of the pods of this epoch; called once they are read."""
        epoch = self._watched[PODS].table.epoch if PODS in self._watched else 0
        if self._pods[0] != epoch:
            self._pods = (epoch, PodTable())
        return self._pods[1]

    def known(self, resource: Resource[T]) -> tuple[list[T], Mapping[str, int]] | None:
        """What is known of a watched resource without asking; None when only a list can tell. Any thread."""
        watched: _Watched[T] = self._watched[resource]
        copied = watched.table.copy()
        return None if copied is None else (copied.items, copied.odd)

    def due(self, resource: Resource[Any]) -> bool:
        """Whether a list of a watched resource is due, whatever its watch says."""
        return self._clock() >= self._watched[resource].list_at

    def list_one(self, resource: Resource[T], *, deadline: Deadline) -> tuple[list[T], Mapping[str, int]]:
        """A list of a watched resource, from which its watch goes on. Raises KubernetesError."""
        copied = self._list(self._watched[resource], deadline=deadline)
        return copied.items, copied.odd

    def read_one(self, resource: Resource[T], *, deadline: Deadline) -> tuple[list[T], Mapping[str, int]]:
        """Of one resource: what is known by watch, else its list."""
        watched: _Watched[T] | None = self._watched.get(resource)
        if watched is None:
            listed = list_all(self._client, resource, deadline=deadline)
            return listed.items, listed.odd
        copied = watched.table.copy() if self._clock() < watched.list_at else None
        if copied is None:
            copied = self._list(watched, deadline=deadline)
        return copied.items, copied.odd

    def _list(self, watched: _Watched[T], *, deadline: Deadline) -> Copy[T]:
        table = watched.table
        table.expect_list()
        try:
            listed = list_all(self._client, watched.resource, deadline=deadline, each=table.renew)
        except BaseException:
            table.list_failed()
            raise
        watched.list_at = self._clock() + self._relist_s * (1 + _JITTER_SHARE * (2 * self._chance() - 1))
        return table.take_list(listed)


@dataclass(frozen=True, slots=True)
class _Reader:
    cluster: WatchedCluster
    deadline: Deadline

    def read(self, resource: Resource[T]) -> tuple[list[T], Mapping[str, int]]:
        return self.cluster.read_one(resource, deadline=self.deadline)


def _table(resource: Resource[T], *, report: Report, contact: Contact | None, clock: Callable[[], float]) -> WatchedTable[T]:
    return WatchedTable(contact=contact, disagreed=lambda objects: report.disagreed(resource.name, objects), clock=clock)
