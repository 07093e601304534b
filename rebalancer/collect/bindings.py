"""Where pods were bound in the last minutes, from what schedulers say of it: the ground of the hot value of nodes.

A watch of Events that the server has narrowed to bindings; the first look, and each after a watch that is out of touch, is a list. Nothing
is kept of an Event but the node and the moment, of the newest `MOST` alone. Nothing else depends on it, so a look that fails is no failed
cycle, and a watch that ends has no more trouble to tell than that the next look lists.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import numpy as np

from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import list_all
from rebalancer.kube.resources import BINDINGS
from rebalancer.kube.watch import Restart, Start, Watch, WatchReport, WatchTiming
from rebalancer.kube.watch_events import News, Present, version_number
from rebalancer.kube.wire_events import EventWire
from rebalancer.steer.node_view import Bindings

MOST = 65_536
"""Bindings that are kept, the newest: five minutes of more than 200 a second."""
_IN_TOUCH_S = 50.0
_JOIN_S = 0.3


class BindingEvents:
    """``read`` is called by one thread at a time; ``watch`` False lists each time. A context manager, or `close`."""

    def __init__(
        self,
        client: KubeClient,
        *,
        watch: bool,
        report: WatchReport,
        timing: WatchTiming | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._clock = client, clock
        self._book = _Book(clock)
        self._stop = threading.Event()
        self._watch = Watch(client, BINDINGS, self._book, stop=self._stop, report=report, timing=timing, clock=clock)
        self._thread = threading.Thread(target=self._watch.run, name="watch-bindings", daemon=True) if watch else None

    def __enter__(self) -> BindingEvents:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def read(self, nodes: Mapping[str, int], *, since: float, deadline: Deadline) -> Bindings:
        """Bindings after ``since`` (Unix seconds) to ``nodes`` (name -> row). Raises what `list_all` raises."""
        if self._thread is None or not self._thread.is_alive() or not self._book.in_touch():
            listed = list_all(self._client, BINDINGS, deadline=deadline)
            self._book.begin(listed.items, version_number(listed.resource_version))
            self._follow()
        found = [(row, at) for name, at in self._book.since(since) if (row := nodes.get(name)) is not None]
        return Bindings(
            node=np.array([row for row, _ in found], dtype=np.int64),
            at=np.array([at for _, at in found], dtype=np.float64),
        )

    def rest(self) -> None:
        """Nothing is read for a while: keep nothing and ask for nothing, until the next `read`."""
        self._book.forget()
        self._watch.break_off()

    def close(self) -> None:
        self._stop.set()
        self._book.wake()
        self._watch.break_off()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(_JOIN_S)

    def _follow(self) -> None:
        """The thread begins with the first look: who has no use for bindings has no watch of them."""
        if self._thread is not None and self._thread.ident is None:
            self._thread.start()


class _Book:
    """Serves the watch as its follower. Two threads meet here."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._startable = threading.Condition(self._lock)
        self._bound: deque[tuple[str, float]] = deque(maxlen=MOST)
        self._version: int | None = None
        """The watch continues from here; None: only a list can tell from where."""
        self._term = 0
        self._heard_at = -np.inf

    def begin(self, events: Sequence[EventWire], version: int | None) -> None:
        """A list replaces everything."""
        with self._lock:
            self._bound.clear()
            self._bound.extend(sorted((pair for event in events if (pair := _pair(event))), key=lambda pair: pair[1]))
            self._version = version
            self._term += 1
            self._heard_at = self._clock()
            self._startable.notify_all()

    def since(self, moment: float) -> list[tuple[str, float]]:
        with self._lock:
            return [pair for pair in self._bound if pair[1] > moment]

    def in_touch(self) -> bool:
        with self._lock:
            return self._version is not None and self._clock() - self._heard_at <= _IN_TOUCH_S

    def forget(self) -> None:
        with self._lock:
            self._bound.clear()
            self._version = None
            self._term += 1

    def wake(self) -> None:
        with self._lock:
            self._startable.notify_all()

    # ---- for the watch --------------------------------------------------------------------------------------------------

    def start(self, stop: threading.Event) -> Start | None:
        with self._lock:
            while self._version is None and not stop.is_set():
                self._startable.wait()
            return None if stop.is_set() or self._version is None else Start(self._version, self._term)

    def opened(self, start: Start) -> None:
        """A sign of life, since the server sends no bookmarks of Events; what was missed follows within moments."""
        with self._lock:
            if start.term == self._term:
                self._heard_at = self._clock()

    def take(self, news: Sequence[News[EventWire]], start: Start) -> bool:
        with self._lock:
            if start.term != self._term:
                return False
            for one in news:
                if isinstance(one, Present) and (pair := _pair(one.item)):
                    self._bound.append(pair)
                self._version = max(self._version or 0, one.version)
            self._heard_at = self._clock()
            return True

    def closed(self, start: Start, reason: Restart) -> None:
        with self._lock:
            if start.term != self._term:
                return
            if reason in (Restart.EXPIRED, Restart.FORBIDDEN):
                self._version = None
            elif reason is Restart.ENDED:
                self._heard_at = self._clock()


def _pair(event: EventWire) -> tuple[str, float] | None:
    node, at = event.bound_to, event.at
    return (node, at) if node and at is not None else None
