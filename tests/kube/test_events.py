"""Events: complete, few, and never a reason for a cycle to fail."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest

from rebalancer.deadline import Deadline
from rebalancer.kube import events
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import Event, EventResult, EventType, EventWriter, ObjectRef
from rebalancer.kube.limiter import TokenBucket
from tests.kube.conftest import Connect
from tests.support.scripted_api import Reply, ScriptedApi, status

NOON = datetime.datetime(2026, 11, 5, 12, 0, 0, 250_000, tzinfo=datetime.UTC)
EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"
POD = ObjectRef(api_version="v1", kind="Pod", namespace="shop", name="web-1", uid="uid-1")
NODE = ObjectRef(api_version="v1", kind="Node", name="node-1")
CREATED = Reply(status=201, body={"kind": "Event"})


def event(
    *, regarding: ObjectRef = POD, reason: str = "Rebalanced", note: str = "moved from node-1 to node-2", action: str = "Evict"
) -> Event:
    return Event(regarding=regarding, reason=reason, action=action, note=note, related=NODE)


@pytest.fixture
def writer(client: KubeClient) -> EventWriter:
    return EventWriter(client, instance="rebalancer-0")


def test_an_event_has_every_required_field(api: ScriptedApi, writer: EventWriter, deadline: Deadline) -> None:
    """As events.k8s.io/v1 demands, in microseconds and UTC."""
    api.on("POST", EVENTS, CREATED)
    zone = datetime.timezone(datetime.timedelta(hours=8))
    assert writer.write(event(), now=NOON.astimezone(zone), deadline=deadline) is EventResult.WRITTEN
    body = api.asked[0].json
    metadata = body.pop("metadata")
    assert isinstance(metadata, dict)
    assert metadata["namespace"] == "shop"
    assert metadata["name"].startswith("web-1.")
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-11-05T12:00:00.250000Z",
        "type": "Normal",
        "reason": "Rebalanced",
        "action": "Evict",
        "note": "moved from node-1 to node-2",
        "reportingController": "rebalancer.dev/controller",
        "reportingInstance": "rebalancer-0",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "uid-1"},
        "related": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    }


def test_an_event_of_a_node_goes_to_the_default_namespace(api: ScriptedApi, writer: EventWriter, deadline: Deadline) -> None:
    """Cluster-scoped objects have none of their own."""
    api.on("POST", "/apis/events.k8s.io/v1/namespaces/default/events", CREATED)
    warning = Event(regarding=NODE, reason="Hot", action="Taint", note="hot", type=EventType.WARNING)
    assert writer.write(warning, now=NOON, deadline=deadline) is EventResult.WRITTEN
    assert api.asked[0].json["type"] == "Warning"


def test_the_same_object_and_reason_is_told_once_in_a_quarter_of_an_hour(api: ScriptedApi, writer: EventWriter, deadline: Deadline) -> None:
    """Another reason or another object is told; the same again only after the time, under another name."""
    api.on("POST", EVENTS, CREATED)
    other = ObjectRef(api_version="v1", kind="Pod", namespace="shop", name="web-2", uid="uid-2")

    def write(minutes: float, **changes: ObjectRef | str) -> EventResult:
        return writer.write(event(**changes), now=NOON + datetime.timedelta(minutes=minutes), deadline=deadline)  # type: ignore[arg-type]

    assert [
        write(0),
        write(1, note="another sentence"),
        write(2, reason="RebalanceRefused"),
        write(3, regarding=other),
        write(14.9),
        write(15),
        write(16),
    ] == [
        EventResult.WRITTEN,
        EventResult.REPEATED,
        EventResult.WRITTEN,
        EventResult.WRITTEN,
        EventResult.REPEATED,
        EventResult.WRITTEN,
        EventResult.REPEATED,
    ]
    names = [asked.json["metadata"]["name"] for asked in api.asked]  # type: ignore[index]
    assert len(set(names)) == 4
    assert writer.counts == {EventResult.WRITTEN: 4, EventResult.REPEATED: 3, EventResult.LIMITED: 0, EventResult.FAILED: 0}


def test_more_than_the_rate_is_left_out_and_counted(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """A hundred refusals in one cycle do not become a hundred Events, and nothing waits."""
    api.on("POST", EVENTS, CREATED)
    writer = EventWriter(client, instance="i", bucket=TokenBucket(1.0, 3, clock=lambda: 0.0))
    for index in range(10):
        writer.write(event(reason=f"Reason{index}"), now=NOON, deadline=deadline)
    assert (writer.counts[EventResult.WRITTEN], writer.counts[EventResult.LIMITED]) == (3, 7)
    assert len(api.asked) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: status(403, "no"),
        lambda: status(404, "namespace is gone"),
        lambda: status(422, "invalid"),
        lambda: status(500, "etcd"),
        lambda: Reply(drop=True),
        lambda: Reply(silent=True),
    ],
)
def test_a_failure_is_counted_and_never_raised(api: ScriptedApi, connect: Connect, make: Callable[[], Reply]) -> None:
    """And it may be tried again at once, since nothing was written."""
    api.on("POST", EVENTS, make(), CREATED)
    writer = EventWriter(connect(timeout_s=0.3), instance="i")
    deadline = Deadline.after(20.0)
    assert writer.write(event(), now=NOON, deadline=deadline) is EventResult.FAILED
    assert writer.write(event(), now=NOON, deadline=deadline) is EventResult.WRITTEN


def test_a_process_that_stops_writes_no_event_and_does_not_raise(api: ScriptedApi, writer: EventWriter, stopped: Deadline) -> None:
    """The cycle itself sees the stop."""
    assert writer.write(event(), now=NOON, deadline=stopped) is EventResult.FAILED
    assert api.asked == []


def test_an_event_that_exists_counts_as_written(api: ScriptedApi, writer: EventWriter, deadline: Deadline) -> None:
    """Its first answer was lost."""
    api.on("POST", EVENTS, status(409, "already exists", reason="AlreadyExists"))
    assert writer.write(event(), now=NOON, deadline=deadline) is EventResult.WRITTEN


def test_long_texts_are_cut_to_what_the_server_takes(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """The server counts bytes, not characters."""
    api.on("POST", EVENTS, CREATED)
    long_name = ObjectRef(api_version="v1", kind="Pod", namespace="shop", name="a." * 126 + "a", uid="u")
    writer = EventWriter(client, instance="i" * 300)
    writer.write(event(regarding=long_name, note="ü" * 2000, action="A" * 200, reason="R" * 200), now=NOON, deadline=deadline)
    body = api.asked[0].json
    note, name = body["note"], body["metadata"]["name"]  # type: ignore[index]
    assert isinstance(note, str)
    assert len(note.encode()) <= 1024
    assert note.endswith("…")
    assert all(len(str(body[field])) <= 128 for field in ("action", "reason", "reportingInstance"))
    assert len(name) <= 253
    assert name.isascii()


def test_whoever_listens_hears_of_every_attempt_and_of_the_error(api: ScriptedApi, client: KubeClient, deadline: Deadline) -> None:
    """Nothing is raised, so this is the only way to know."""
    heard: list[tuple[EventResult, str]] = []
    writer = EventWriter(client, instance="i", told=lambda result, error: heard.append((result, error)))
    api.on("POST", EVENTS, status(403, "events is forbidden", reason="Forbidden"), CREATED)
    for _ in range(3):
        writer.write(event(), now=NOON, deadline=deadline)
    assert [result for result, _ in heard] == [EventResult.FAILED, EventResult.WRITTEN, EventResult.REPEATED]
    assert 'resources: ["events"], verbs: ["create"]' in heard[0][1]
    assert [error for _, error in heard[1:]] == ["", ""]


def test_an_event_takes_little_of_the_time_of_a_cycle(api: ScriptedApi, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer to Events must not hold up the moves: the attempt has a limit far below the request's."""
    monkeypatch.setattr(events, "LONGEST_S", 0.2)
    api.on("POST", EVENTS, Reply(silent=True))
    heard: list[str] = []
    writer = EventWriter(connect(timeout_s=30.0), instance="i", told=lambda result, error: heard.append(error))
    assert writer.write(event(), now=NOON, deadline=Deadline.after(60.0)) is EventResult.FAILED
    assert "within 0.2 s" in heard[0]
