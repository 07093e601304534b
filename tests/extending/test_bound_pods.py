"""Pods just bound: which are remembered, what they are expected to use, and how long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rebalancer.collect.bound_pods import BoundPods, settled
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.resources import BOUND_PODS
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import Restart, Start, Watch
from rebalancer.kube.watch_events import Absent, News, Odd, Present, Progress
from rebalancer.kube.wire_steering import BoundPodWire
from tests.extending.kit import Told, bound, bound_json
from tests.steer.kit import NOW
from tests.support.scripted_api import Reply, ScriptedApi, page, status
from tests.watch.kit import QUICK, bookmark, event, gone

START = Start(version=1, term=1)


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with ScriptedApi() as server:
        yield server


@pytest.fixture
def client(api: ScriptedApi, tmp_path: Path) -> Iterator[KubeClient]:
    client = KubeClient.connect(kubeconfig=api.kubeconfig(tmp_path), context=None, backoff=Backoff(first_s=0.01, attempts=2))
    yield client
    client.close()


def pods(client: KubeClient, *news: BoundPodWire, most: int = 100, keep_s: float = 900.0) -> BoundPods:
    made = BoundPods(client, now=lambda: NOW, keep_s=keep_s, most=most)
    told(made, *(present(each) for each in news))
    return made


def present(pod: BoundPodWire, version: int = 5) -> Present[BoundPodWire]:
    return Present(f"shop/{pod.metadata.name}", version, pod)


def told(pods: BoundPods, *news: News[BoundPodWire]) -> None:
    assert pods.take(news, START)


def kept(pods: BoundPods) -> list[str]:
    return sorted(pods.columns().keys)


def test_a_pod_that_was_bound_is_expected_to_use_its_request(client: KubeClient) -> None:
    """As the scheduler's scores count it: a container without a request uses a little; a GPU, nobody knows how much."""
    found = pods(
        client, bound("a", "n1"), bound("b", "n2", cpu=None), bound("c", "n1", resource="nvidia.com/gpu"), bound("d", "n1", cpu="?")
    )
    columns = found.columns()
    assert list(columns.names) == ["n1", "n2", "n1", "n1"]
    assert columns.at.tolist() == [NOW] * 4
    little = 200 * 2**20
    assert columns.use[:2].tolist() == [[2.0, little, 0.0, 0.0], [0.1, little, 0.0, 0.0]]
    assert columns.use[2, 0] == 2.0
    assert np.isnan(columns.use[2, 2:]).all()
    assert np.isnan(columns.use[3]).all()


def test_a_pod_is_remembered_once_from_the_moment_of_its_binding(client: KubeClient) -> None:
    """What its status says later is no news; without a word about the moment, it is now; an old one that only changes is left alone."""
    found = pods(client, bound("a", "n1", at=NOW - 60), bound("b", "n1", at=None), bound("old", "n1", at=NOW - 901))
    before = found.columns()
    told(found, present(bound("a", "n1", at=NOW - 60, phase="Running"), 9), Progress(10))
    assert found.columns() is before
    assert dict(zip(before.keys, before.at.tolist(), strict=True)) == {"shop/a": NOW - 60, "shop/b": NOW}


def test_a_pod_that_is_gone_is_forgotten(client: KubeClient) -> None:
    """Deleted, ended, no longer readable, or replaced by another one of its name, which counts from its own binding."""
    found = pods(client, *(bound(name, "n1") for name in "abcd"))
    told(found, Absent("shop/a", 9), present(bound("b", "n1", phase="Succeeded")), Odd("shop/c", 9, "no name"))
    told(found, present(bound("d", "n2", uid="again", at=NOW - 3)))
    assert kept(found) == ["shop/d"]
    assert (found.columns().names, found.columns().at.tolist()) == (["n2"], [NOW - 3])


def test_memory_is_bounded_and_the_oldest_goes_first(client: KubeClient) -> None:
    """However many pods a burst binds."""
    found = pods(client, *(bound(f"p{number}", "n1") for number in range(50)), most=10)
    assert kept(found) == [f"shop/p{number}" for number in range(40, 50)]
    assert len(found.arrivals()) == 10


def test_arrivals_are_told_once(client: KubeClient) -> None:
    """With whose pods they are; a bare pod is nobody's replacement."""
    bare = bound("bare", "n1")
    found = pods(client, bound("a", "n1"), BoundPodWire(metadata=type(bare.metadata)(name="bare", uid="u"), spec=bare.spec))
    (arrival,) = found.arrivals()
    assert (arrival.pod.uid, arrival.pod.controller_uid, str(arrival.pod.workload)) == ("uid-a", "rs-1", "Deployment shop/web")
    assert (arrival.node, arrival.at) == ("n1", NOW)
    assert found.arrivals() == []


def test_better_knowledge_of_a_use_replaces_the_guess(client: KubeClient) -> None:
    """What the pod that it replaces was measured to use; signals that are not given stay."""
    found = pods(client, bound("a", "n1"), bound("b", "n1"))
    found.expect({"uid-a": {"cpu": 3.5}, "stranger": {"cpu": 9.0}})
    assert found.columns().use[:, 0].tolist() == [3.5, 2.0]
    assert found.columns().use[0, 1] == 200 * 2**20


def test_what_the_means_hold_is_settled(client: KubeClient) -> None:
    """A window after the binding; of a node that is not measured, when it is old; later, where bindings are counted."""
    found = pods(client, bound("held", "n0", at=NOW - 400), bound("half", "n0", at=NOW - 200), bound("dark", "n1", at=NOW - 400))
    told(found, present(bound("older", "n9", at=NOW - 800)))
    columns = found.columns()
    rows, measured = np.array([0, 0, 1, -1]), np.array([NOW - 60, np.nan])

    def done(*, wanted_since: float = NOW) -> list[str]:
        return settled(columns, row=rows, measured_at=measured, window_s=300.0, oldest=NOW - 700, wanted_since=wanted_since)

    assert done() == ["shop/held", "shop/older"]
    assert done(wanted_since=NOW - 600) == ["shop/older"]
    found.forget(done())
    assert kept(found) == ["shop/dark", "shop/half"]


def run(client: KubeClient, found: BoundPods, stop: threading.Event) -> Told:
    report = Told()

    def pause(seconds: float) -> None:
        if len(report.restarts) >= 3:
            stop.set()

    Watch(client, BOUND_PODS, found, stop=stop, report=report, timing=QUICK, pause=pause).run()
    return report


def stream(*lines: bytes) -> Reply:
    return Reply(body=b"".join(lines), chunked=True)


def test_only_what_is_bound_from_now_on_is_read(api: ScriptedApi, client: KubeClient) -> None:
    """A list of one object says from where to watch; a version that was lost is asked for in the same way, and what was known stays."""
    answers = [
        page([bound_json("first", "n1")], token="more", version="40"),
        stream(event("ADDED", bound_json("a", "n1", version=41)), bookmark(44), gone()),
        page([], version="90"),
        stream(event("ADDED", bound_json("b", "n2", version=91))),
        stream(),
    ]
    api.on("GET", BOUND_PODS.path, *answers)
    found = BoundPods(client, now=lambda: NOW, keep_s=900.0)
    report = run(client, found, threading.Event())
    assert kept(found) == ["shop/a", "shop/b"]
    assert [asked.query.get("limit", asked.query.get("resourceVersion")) for asked in api.asked] == ["1", "40", "1", "90", "91"]
    assert {asked.query["fieldSelector"] for asked in api.asked} == {"spec.nodeName!="}
    assert ("pods", Restart.EXPIRED) in report.restarts


def test_a_server_that_refuses_is_told_and_tried_again(api: ScriptedApi, client: KubeClient) -> None:
    """The thread lives on, and begins once it may."""
    api.on("GET", BOUND_PODS.path, status(403, "no"), status(403, "no"), page([], version="7"), stream(bookmark(8)), stream())
    troubles: list[KubernetesError] = []
    found = BoundPods(client, now=lambda: NOW, keep_s=9.0, troubled=troubles.append, backoff=Backoff(first_s=0.01, ceiling_s=0.01))
    run(client, found, threading.Event())
    assert [error.status for error in troubles] == [403, 403]


def test_a_stop_ends_the_wait_for_a_version(api: ScriptedApi, client: KubeClient) -> None:
    """At once, whatever the server does."""
    stop = threading.Event()
    stop.set()
    assert BoundPods(client, now=lambda: NOW, keep_s=9.0).start(stop) is None
    assert api.asked == []
