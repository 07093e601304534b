"""All objects of one kind, kept as they are now: begun with a list, changed by a watch, held against a list from time to time.

Two threads meet here. The thread of the watch brings news, each with the version at which it became true; the thread of the cycle takes
copies and brings lists. A list is the truth as of its version and always wins:

- news up to that version change nothing any more, since the list has them;
- what the watch said of a later version stays, since the list cannot know it;
- where the two differ otherwise, the watch may only be late. So the difference is remembered until the watch has told everything up to the
  version of the list, or, of a kind that is so quiet that nothing newer is told, until a connection that began after the list has come to
  its regular end. What it has not told by then it has lost: a disagreement.

Only wire structs are kept, one for each object. A copy is good for deciding only while the watch is known to be in touch: see `copy`.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from rebalancer.kube.decoding import key_of
from rebalancer.kube.lists import Listed
from rebalancer.kube.watch import Restart, Start
from rebalancer.kube.watch_events import Absent, News, Odd, Present, Progress, version_number
from rebalancer.kube.wire import MetaWire

T = TypeVar("T", bound=msgspec.Struct)

_NEVER = -math.inf


@dataclass(frozen=True, slots=True)
class Copy(Generic[T]):
    """What was there at one moment. ``odd``: reason -> objects that could not be read."""

    items: list[T]
    version: int
    odd: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Contact:
    """Seconds. ``within``: how old the last sign of the server may be. ``settle``: after a longer break, how long a new connection may take
    to tell what was missed; before that it is no sign of being up to date."""

    within: float = 50.0
    settle: float = 2.0


@dataclass(slots=True)
class _Pending:
    """Differences between a list of ``version``, read at ``at`` by our clock, and the watch, which has not come that far. Key -> version in
    the list; None: not there."""

    version: int
    at: float = math.inf
    expected: dict[str, str | None] = field(default_factory=dict)


class WatchedTable(Generic[T]):
    """Serves a `kube.watch.Watch` as its follower. ``disagreed`` is told how many objects a list had to correct."""

    def __init__(
        self,
        *,
        contact: Contact | None = None,
        disagreed: Callable[[int], None] = lambda objects: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._contact, self._disagreed, self._clock = contact or Contact(), disagreed, clock
        self._lock = threading.Lock()
        self._startable = threading.Condition(self._lock)
        self._items: dict[str, T] = {}
        self._odd: dict[str, str] = {}
        self._nameless: Counter[str] = Counter()
        """Odd objects of the last list that have no name, so that no news can be about them."""
        self._term = 0
        self._told: int | None = None
        """The watch continues from here. None: only a list can tell from where."""
        self._listed = 0
        """Version of the last list."""
        self._asked_at: int | None = None
        """How far the watch had told when the list was asked for."""
        self._touched: dict[str, int] | None = None
        """While a list is read: key -> version of what the watch says meanwhile."""
        self._pending = _Pending(0)
        self._synced = False
        self._opened_at = math.inf
        self._heard_at = _NEVER
        self.epoch = 0
        """Grows when a list is of another past than what was known: equal versions do not mean equal objects any more."""

    # ---- for the cycle ------------------------------------------------------------------------------------------------

    def copy(self) -> Copy[T] | None:
        """What is there now, in the order of a list; None when that is not known.

        It is known when a list began it, a watch continues it, and the server has been heard within `Contact.within`: an event, a
        bookmark, or a connection that has had the time to catch up.
        """
        with self._lock:
            return self._copied() if self._synced and self._in_touch(self._clock()) else None

    def renew(self, item: T) -> None:
        """An object of a list that is being read takes the place of its equal here: two lists at once would need twice the memory, and
        those of a list share their equal parts."""
        key = _key(item)
        with self._lock:
            kept = self._items.get(key)
            if kept is not None and _version(kept) == _version(item):
                self._items[key] = item

    def expect_list(self) -> None:
        """A list is about to be asked for."""
        with self._lock:
            self._touched, self._asked_at = {}, self._told

    def list_failed(self) -> None:
        with self._lock:
            self._touched = None

    def take_list(self, listed: Listed[T]) -> Copy[T]:
        """Bring in a list that was asked for after `expect_list`. What is there now, which is at least as new as the list.

        A list whose version is no number cannot be continued: it is returned, and every cycle has to list.
        """
        with self._lock:
            touched, self._touched = self._touched or {}, None
            version = version_number(listed.resource_version)
            found = {_key(item): item for item in listed.items}
            # A list that is older than what the watch had told is one of another past: the server was set back to a backup.
            known = max(self._asked_at or 0, self._listed)
            self.epoch += version is None or version < known
            if not self._synced or version is None or version < known:
                self._begin(found, listed, version)
                lost = 0
            else:
                lost = self._reconcile(found, listed, version, touched)
            copied = self._copied()
        if lost:
            self._disagreed(lost)
        return copied

    def forget(self) -> None:
        """Let everything go; a connection that is open brings nothing any more, and the next one waits for a list."""
        with self._lock:
            self._items, self._odd, self._nameless = {}, {}, Counter()
            self._term += 1
            self._told, self._listed, self._pending = None, 0, _Pending(0)
            self._synced, self._opened_at, self._heard_at = False, math.inf, _NEVER

    # ---- for the watch ------------------------------------------------------------------------------------------------

    def start(self, stop: threading.Event) -> Start | None:
        with self._startable:
            self._startable.wait_for(lambda: stop.is_set() or self._told is not None)
            return None if stop.is_set() or self._told is None else Start(version=self._told, term=self._term)

    def wake(self) -> None:
        """Let `start` look at its stop event."""
        with self._startable:
            self._startable.notify_all()

    def opened(self, start: Start) -> None:
        with self._lock:
            if start.term == self._term:
                now = self._clock()
                self._synced, self._opened_at = True, now
                self._hear(now)

    def closed(self, start: Start, reason: Restart) -> None:
        lost = 0
        with self._lock:
            if start.term != self._term:
                return
            now = self._clock()
            if reason is Restart.ENDED:
                self._hear(now)
                if self._pending.at <= self._opened_at <= now - self._contact.settle:
                    lost = self._judge(told=self._pending.version)
            self._opened_at = math.inf
            if reason in (Restart.EXPIRED, Restart.FORBIDDEN):
                self._told, self._synced = None, False
        if lost:
            self._disagreed(lost)

    def take(self, news: Sequence[News[T]], start: Start) -> bool:
        with self._lock:
            if start.term != self._term:
                return False
            lost = sum(self._apply(each) for each in news)
            self._hear(self._clock())
        if lost:
            self._disagreed(lost)
        return True

    # ---- contact ------------------------------------------------------------------------------------------------------

    def _in_touch(self, now: float) -> bool:
        settled = self._opened_at if now - self._opened_at >= self._contact.settle else _NEVER
        return now - max(self._heard_at, settled) <= self._contact.within

    def _hear(self, now: float) -> None:
        """The server has shown itself. After a long break that alone does not mean that all of what was missed has been told."""
        if self._in_touch(now) or now - self._opened_at >= self._contact.settle:
            self._heard_at = now

    # ---- news ---------------------------------------------------------------------------------------------------------

    def _apply(self, news: News[T]) -> int:
        """How many objects a list turns out to have corrected."""
        lost = self._judge(told=news.version if isinstance(news, Progress) else news.version - 1)
        self._told = max(news.version, self._told or 0)
        if isinstance(news, Progress):
            return lost
        if self._touched is not None:
            self._touched[news.key] = news.version
        if news.version <= self._listed:
            self._confirm(news)
            return lost
        self._items.pop(news.key, None)
        self._odd.pop(news.key, None)
        if isinstance(news, Present):
            self._items[news.key] = news.item
        elif isinstance(news, Odd):
            self._odd[news.key] = news.reason
        return lost

    def _confirm(self, news: Present[T] | Absent | Odd) -> None:
        """The watch tells, late, what the list has said already."""
        said = str(news.version) if isinstance(news, Present) else None
        if news.key in self._pending.expected and self._pending.expected[news.key] == said:
            del self._pending.expected[news.key]

    def _judge(self, *, told: int) -> int:
        """Once the watch has told everything up to the version of the list, what it has not confirmed is lost."""
        if not self._pending.expected or told < self._pending.version:
            return 0
        lost = len(self._pending.expected)
        self._pending = _Pending(0)
        return lost

    # ---- lists --------------------------------------------------------------------------------------------------------

    def _begin(self, found: dict[str, T], listed: Listed[T], version: int | None) -> None:
        """Start anew from the list: a connection that may be open continues another past."""
        self._items, self._odd = found, dict(listed.odd_keys)
        self._nameless = _nameless(listed)
        self._term += 1
        self._told, self._listed, self._pending = version, version or 0, _Pending(0)
        self._synced, self._opened_at, self._heard_at = False, math.inf, self._clock()
        self._startable.notify_all()

    def _reconcile(self, found: dict[str, T], listed: Listed[T], version: int, touched: Mapping[str, int]) -> int:
        """Correct what differs, and say how much of it the watch cannot tell any more."""
        later = {key for key, told in touched.items() if told > version}
        pending = _Pending(version, at=self._clock())
        for key in [key for key in self._items if key not in found and key not in later]:
            del self._items[key]
            pending.expected[key] = None
        for key, item in found.items():
            kept = self._items.get(key)
            if key not in later and (kept is None or _version(kept) != _version(item)):
                self._items[key] = item
                pending.expected[key] = _version(item)
        stays = {key: reason for key, reason in self._odd.items() if key in later}
        self._odd = {key: reason for key, reason in listed.odd_keys.items() if key not in later} | stays
        self._nameless = _nameless(listed)
        self._listed, self._pending = version, pending
        return self._judge(told=self._told or 0)

    def _copied(self) -> Copy[T]:
        odd = self._nameless + Counter(self._odd.values())
        return Copy(items=[self._items[key] for key in sorted(self._items)], version=max(self._told or 0, self._listed), odd=odd)


def _key(item: msgspec.Struct) -> str:
    meta = _meta(item)
    return key_of(namespace=meta.namespace, name=meta.name)


def _version(item: msgspec.Struct) -> str:
    return _meta(item).resource_version


def _meta(item: msgspec.Struct) -> MetaWire:
    meta: MetaWire = item.metadata  # type: ignore[attr-defined]  # every kind of `kube.resources` has it
    return meta


def _nameless(listed: Listed[T]) -> Counter[str]:
    return Counter(listed.odd) - Counter(listed.odd_keys.values())
