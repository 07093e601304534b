"""The table of one kind: what it holds after news and lists in any order, when it is good for deciding, and what it counts as lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.watched_table import Contact, Copy, WatchedTable
from rebalancer.kube.watch import Restart, Start
from rebalancer.kube.watch_events import Absent, News, Odd, Progress
from rebalancer.kube.wire_pods import PodWire
from tests.watch.kit import listed, present, wire

RUNNING = threading.Event()


@dataclass
class Desk:
    """A table with a clock in hand, and the watch and the cycle that serve it."""

    now: float = 1000.0
    lost: list[int] = field(default_factory=list)
    table: WatchedTable[PodWire] = field(init=False)

    def __post_init__(self) -> None:
        self.table = WatchedTable(contact=Contact(within=50, settle=2), disagreed=self.lost.append, clock=lambda: self.now)

    def list(
        self, version: int, *pods: PodWire, odd: dict[str, str] | None = None, meanwhile: Callable[[], object] = tuple
    ) -> Copy[PodWire]:
        self.table.expect_list()
        meanwhile()
        return self.table.take_list(listed(version, *pods, odd=odd))

    def open(self) -> Start:
        start = self.table.start(RUNNING)
        assert start is not None
        self.table.opened(start)
        return start

    def begin(self, version: int, *pods: PodWire) -> Start:
        self.list(version, *pods)
        return self.open()

    def begin_anew(self, server: Server) -> Start:
        self.list(server.version, *server.pods.values(), odd=dict(server.odd))
        return self.open()

    @property
    def held(self) -> list[str] | None:
        copied = self.table.copy()
        return None if copied is None else held(copied)


def held(copied: Copy[PodWire]) -> list[str]:
    return [f"{pod.metadata.name}@{pod.metadata.resource_version}" for pod in copied.items]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_nothing_is_known_before_a_list_and_a_watch_that_continues_it(desk: Desk) -> None:
    """A list alone grows old unseen."""
    assert desk.held is None
    assert held(desk.list(10, wire("p", 5))) == ["p@5"]
    assert desk.held is None
    desk.open()
    assert desk.held == ["p@5"]


def test_news_change_what_is_there_at_once(desk: Desk) -> None:
    """Added, modified, deleted; the version goes along with the items."""
    start = desk.begin(10, wire("p", 5), wire("q", 6))
    desk.table.take([present("r", 11), present("p", 12), Absent("a/q", 13), Progress(20)], start)
    copied = desk.table.copy()
    assert copied is not None
    assert (held(copied), copied.version) == (["p@12", "r@11"], 20)
    assert desk.table.start(RUNNING) == Start(20, start.term)


def test_a_copy_is_left_alone_by_later_news(desk: Desk) -> None:
    """A cycle decides on one moment."""
    start = desk.begin(10, wire("p", 5))
    copied = desk.table.copy()
    desk.table.take([Absent("a/p", 11)], start)
    assert copied is not None
    assert held(copied) == ["p@5"]
    assert desk.held == []


def test_copies_are_in_the_order_of_a_list(desk: Desk) -> None:
    """The order of rows decides ties, so it must not depend on who told what when."""
    start = desk.begin(10, wire("m", 5), wire("b", 6))
    desk.table.take([present("z", 11), present("a", 12)], start)
    assert desk.held == ["a@12", "b@6", "m@5", "z@11"]


# ---- contact ----------------------------------------------------------------------------------------------------------


def test_a_table_that_has_not_heard_of_the_server_for_too_long_is_not_used(desk: Desk) -> None:
    """Events and bookmarks are contact; silence is none, even if the connection looks open."""
    start = desk.begin(10, wire("p", 5))
    desk.now += 40
    desk.table.take([Progress(11)], start)
    desk.now += 40
    desk.table.take([present("p", 12)], start)
    desk.now += 50
    assert desk.held == ["p@12"]
    desk.now += 1
    assert desk.held is None


def test_a_connection_that_has_lasted_is_contact_and_so_is_its_regular_end(desk: Desk) -> None:
    """A quiet kind is known for as long as the server keeps ending and accepting its watches."""
    start = desk.begin(10, wire("p", 5))
    for _ in range(5):
        desk.now += 40
        desk.table.closed(start, Restart.ENDED)
        start = desk.open()
    assert desk.held == ["p@5"]
    desk.now += 1
    desk.table.closed(start, Restart.DROPPED)
    desk.now += 50
    assert desk.held is None


def test_after_a_long_break_a_new_connection_has_to_catch_up_first(desk: Desk) -> None:
    """The server accepts and begins to tell what was missed: until that is told, the table is as old as before."""
    start = desk.begin(10, wire("p", 5))
    desk.table.closed(start, Restart.DROPPED)
    desk.now += 300
    start = desk.open()
    desk.table.take([present("q", 11)], start)
    assert desk.held is None
    desk.now += 2
    assert desk.held == ["p@5", "q@11"]


def test_an_expired_watch_is_not_used_and_waits_for_a_list(desk: Desk) -> None:
    """The old version is never given out again."""
    start = desk.begin(10, wire("p", 5))
    desk.table.closed(start, Restart.EXPIRED)
    assert desk.held is None
    waiting = threading.Thread(target=lambda: found.append(desk.table.start(RUNNING)))
    found: list[Start | None] = []
    waiting.start()
    desk.list(90, wire("p", 80))
    waiting.join(10)
    assert found == [Start(90, start.term + 1)]


def test_a_forbidden_watch_is_not_used_and_begins_with_the_newest_list(desk: Desk) -> None:
    """Each cycle lists, and each list is where a watch would begin once it is allowed."""
    start = desk.begin(10)
    desk.table.closed(start, Restart.FORBIDDEN)
    for version in (20, 30):
        desk.list(version, wire("p", version))
        assert desk.held is None
    assert desk.table.start(RUNNING) == Start(30, start.term + 2)


def test_a_stop_ends_the_waiting_for_a_list(desk: Desk) -> None:
    """A watch that has nothing to do can be stopped."""
    stop = threading.Event()
    found: list[Start | None] = []
    waiting = threading.Thread(target=lambda: found.append(desk.table.start(stop)))
    waiting.start()
    stop.set()
    desk.table.wake()
    waiting.join(10)
    assert found == [None]


def test_versions_without_an_order_are_never_watched(desk: Desk) -> None:
    """What is not a number cannot be compared, so each cycle lists."""
    desk.table.expect_list()
    found = listed(1, wire("p", 5))
    copied = desk.table.take_list(type(found)(name="pods", items=found.items, resource_version="k2-abc", odd=found.odd))
    assert held(copied) == ["p@5"]
    stop = threading.Event()
    stop.set()
    assert desk.table.start(stop) is None
    assert desk.held is None


# ---- lists against the watch ------------------------------------------------------------------------------------------


def test_a_list_that_agrees_counts_nothing(desk: Desk) -> None:
    """Also when the watch has told more than the list, or less, or something in the middle of it."""
    start = desk.begin(10, wire("p", 5), wire("q", 6))

    def meanwhile() -> None:
        desk.table.take([present("p", 15), present("r", 16), Absent("a/q", 17)], start)

    assert held(desk.list(12, wire("p", 5), wire("q", 6), meanwhile=meanwhile)) == ["p@15", "r@16"]
    assert held(desk.list(19, wire("p", 18), wire("s", 19))) == ["p@18", "s@19"]
    desk.table.take([present("p", 18)], start)
    desk.table.take([Absent("a/r", 18), present("s", 19), present("t", 20), Progress(30)], start)
    assert desk.held == ["p@18", "s@19", "t@20"]
    assert desk.lost == []


def test_a_watch_that_is_late_does_not_take_back_what_a_list_has_said(desk: Desk) -> None:
    """Old news about a pod that is gone by the list do not bring it back, not even for a moment."""
    start = desk.begin(10, wire("p", 5))
    desk.list(20)
    desk.table.take([present("p", 14)], start)
    assert desk.held == []
    desk.table.take([Absent("a/p", 15)], start)
    assert desk.held == []
    assert desk.lost == []


Truth = Sequence[PodWire]
DISAGREEMENTS: dict[str, tuple[Truth, Truth]] = {
    "an object that the watch never told": ((), (wire("p", 8),)),
    "an object that is gone": ((wire("p", 5),), ()),
    "an object of an older version": ((wire("p", 5),), (wire("p", 8),)),
}


@pytest.mark.parametrize(("watched", "true"), DISAGREEMENTS.values(), ids=DISAGREEMENTS.keys())
@pytest.mark.parametrize("told_before", [True, False], ids=["the watch is further than the list", "the watch gets there later"])
def test_what_the_watch_has_lost_is_counted_and_the_list_wins(desk: Desk, watched: Truth, true: Truth, told_before: bool) -> None:
    """It is lost once the watch has told everything up to the version of the list, and not a moment before."""
    start = desk.begin(6, *watched)
    if told_before:
        copied = desk.list(10, *true, meanwhile=lambda: desk.table.take([Progress(12)], start))
    else:
        copied = desk.list(10, *true)
        assert desk.lost == []
        desk.table.take([Progress(9)], start)
        assert desk.lost == []
        desk.table.take([present("z", 11)], start)
        desk.table.take([Absent("a/z", 12)], start)
    assert held(copied) == [f"{pod.metadata.name}@{pod.metadata.resource_version}" for pod in true] == desk.held
    assert desk.lost == [1]


def test_what_a_quiet_watch_has_lost_is_counted_at_the_regular_end_of_a_later_connection(desk: Desk) -> None:
    """A server sends no bookmark while it has nothing new; but what began after the list has told everything that the list says."""
    start = desk.begin(6, wire("p", 5))
    desk.now += 10
    desk.list(10, wire("p", 5), wire("q", 8))
    desk.now += 30
    desk.table.closed(start, Restart.ENDED)
    assert desk.lost == [], "this connection began before the list"
    start = desk.open()
    desk.now += 1
    desk.table.closed(start, Restart.DROPPED)
    start = desk.open()
    desk.now += 1
    desk.table.closed(start, Restart.ENDED)
    assert desk.lost == [], "these did not last"
    start = desk.open()
    desk.now += 40
    desk.table.closed(start, Restart.ENDED)
    assert desk.lost == [1]
    assert desk.held == ["p@5", "q@8"]


def test_a_list_from_another_past_begins_anew(desk: Desk) -> None:
    """After a restore of etcd versions are smaller: the list wins, and news of the open connection are refused."""
    start = desk.begin(500, wire("p", 400))
    desk.list(90, wire("p", 80), wire("q", 85))
    assert desk.held is None
    assert desk.table.take([present("p", 501)], start) is False
    desk.table.closed(start, Restart.OUTDATED)
    assert desk.table.start(RUNNING) == Start(90, start.term + 1)
    desk.open()
    assert desk.held == ["p@80", "q@85"]


def test_only_a_list_from_another_past_makes_equal_versions_mean_nothing(desk: Desk) -> None:
    """Who keeps what was read of an object by its version may go on after an expired watch, and not after a restore of etcd."""
    start = desk.begin(10, wire("p", 5))
    epoch = desk.table.epoch
    desk.list(20, wire("p", 5))
    desk.table.closed(start, Restart.EXPIRED)
    desk.list(30, wire("p", 25))
    assert desk.table.epoch == epoch
    desk.list(15, wire("p", 5))
    assert desk.table.epoch > epoch


def test_a_list_that_fails_leaves_everything_as_it_is(desk: Desk) -> None:
    """The watch goes on."""
    start = desk.begin(10, wire("p", 5))
    desk.table.expect_list()
    desk.table.take([present("q", 11)], start)
    desk.table.list_failed()
    desk.table.take([present("r", 12)], start)
    assert desk.held == ["p@5", "q@11", "r@12"]


# ---- odd objects ------------------------------------------------------------------------------------------------------


def test_kw6_an_object_that_becomes_odd_is_no_longer_there_and_is_counted_until_it_is_mended_or_gone(desk: Desk) -> None:
    """What was known of it is no longer true."""
    start = desk.begin(10, wire("p", 5), wire("q", 6))
    desk.table.take([Odd("a/p", 11, "no type"), Odd("a/q", 12, "no type")], start)
    copied = desk.table.copy()
    assert copied is not None
    assert (held(copied), dict(copied.odd)) == ([], {"no type": 2})
    desk.table.take([present("p", 13), Absent("a/q", 14)], start)
    copied = desk.table.copy()
    assert copied is not None
    assert (held(copied), dict(copied.odd)) == (["p@13"], {})


def test_kw6_odd_objects_of_a_list_are_counted_until_the_watch_says_otherwise(desk: Desk) -> None:
    """By name where they have one; those without are counted until the next list."""
    desk.table.expect_list()
    found = listed(10, wire("p", 5), odd={"a/q": "no type"})
    found.odd["no name"] += 2
    desk.table.take_list(found)
    start = desk.open()
    copied = desk.table.copy()
    assert copied is not None
    assert dict(copied.odd) == {"no type": 1, "no name": 2}
    desk.table.take([present("q", 11)], start)
    copied = desk.table.copy()
    assert copied is not None
    assert dict(copied.odd) == {"no name": 2}
    assert dict(desk.list(20, wire("p", 5), wire("q", 11)).odd) == {}
    assert desk.lost == []


# ---- any order --------------------------------------------------------------------------------------------------------


@dataclass
class Server:
    """What is true, and what the watch has still to tell."""

    version: int = 10
    pods: dict[str, PodWire] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    untold: list[News[PodWire]] = field(default_factory=list)

    def change(self, name: str, how: str) -> None:
        self.version += 1
        key = f"a/{name}"
        known = name in self.pods or key in self.odd
        self.pods.pop(name, None)
        self.odd.pop(key, None)
        if how == "put":
            self.pods[name] = wire(name, self.version)
            self.untold.append(present(name, self.version))
        elif how == "odd":
            self.odd[key] = "why"
            self.untold.append(Odd(key, self.version, "why"))
        elif known:
            self.untold.append(Absent(key, self.version))

    def tell(self, count: int, to: WatchedTable[PodWire], start: Start) -> None:
        now, self.untold = self.untold[:count], self.untold[count:]
        if now:
            assert to.take(now, start)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from("pqrs"), st.sampled_from(["put", "put", "gone", "odd"])),
        st.tuples(st.just("tell"), st.integers(min_value=1, max_value=5), st.none()),
        st.tuples(st.just("list"), st.integers(min_value=0, max_value=4), st.integers(min_value=0, max_value=4)),
        st.tuples(st.just("bookmark"), st.none(), st.none()),
        st.tuples(st.just("expire"), st.none(), st.none()),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_whatever_happens_the_table_is_what_a_list_would_say_once_everything_is_told(steps: list[tuple[str, object, object]]) -> None:
    """Changes, late news, lists in the middle of them, bookmarks, 410, in any order: never a wrong state, never a false alarm."""
    desk, server = Desk(), Server()
    start = desk.begin(server.version)
    for what, one, other in steps:
        if what == "change":
            server.change(str(one), str(other))
        elif what == "tell":
            server.tell(int(str(one)), desk.table, start)
        elif what == "bookmark" and not server.untold:
            desk.table.take([Progress(server.version)], start)
        elif what == "expire":
            desk.table.closed(start, Restart.EXPIRED)
            server.untold.clear()
            start = desk.begin_anew(server)
        elif what == "list":
            check_list(desk, server, start, before=int(str(one)), after=int(str(other)))
    server.tell(len(server.untold), desk.table, start)
    copied = desk.table.copy()
    assert copied is not None
    assert {pod.metadata.name: pod for pod in copied.items} == server.pods
    assert sum(copied.odd.values()) == len(server.odd)
    assert desk.lost == []


def check_list(desk: Desk, server: Server, start: Start, *, before: int, after: int) -> None:
    """A list during which the watch tells something before and after the moment that the list shows, and the server changes in between."""
    desk.table.expect_list()
    server.tell(before, desk.table, start)
    found = listed(server.version, *server.pods.values(), odd=dict(server.odd))
    server.change("p", "put")
    server.change("q", "gone")
    server.tell(after, desk.table, start)
    copied = desk.table.take_list(found)
    late = {
        key for news in server.untold if not isinstance(news, Progress) and news.version > int(found.resource_version) for key in [news.key]
    }
    names = {pod.metadata.name: pod for pod in copied.items}
    assert all(names.get(name) == pod for name, pod in server.pods.items() if f"a/{name}" not in late)


@given(
    changes=st.lists(st.tuples(st.sampled_from("pqrs"), st.sampled_from(["put", "put", "gone", "odd"]), st.booleans()), max_size=20),
    told_first=st.booleans(),
)
def test_whatever_the_watch_loses_a_list_finds_and_mends(changes: list[tuple[str, str, bool]], told_first: bool) -> None:
    """Each object that the table has wrong is counted once, and no other."""
    desk, server = Desk(), Server()
    start = desk.begin(server.version)
    for name, how, lost in changes:
        server.change(name, how)
        if lost and server.untold:
            server.untold.pop()
    server.tell(len(server.untold), desk.table, start)
    before = desk.table.copy()
    assert before is not None
    believed = {pod.metadata.name: pod for pod in before.items}
    wrong = sum(believed.get(name) != server.pods.get(name) for name in "pqrs")
    if told_first:
        desk.table.take([Progress(server.version)], start)
    desk.list(server.version, *server.pods.values(), odd=dict(server.odd))
    desk.table.take([Progress(server.version)], start)
    after = desk.table.copy()
    assert after is not None
    assert {pod.metadata.name: pod for pod in after.items} == server.pods
    assert sum(desk.lost) == wrong
