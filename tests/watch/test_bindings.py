"""Where pods were bound, from Events: a list once, then by watch, and a list again whenever the watch cannot be trusted."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.collect.bindings import BindingEvents
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesForbidden
from rebalancer.kube.client import KubeClient
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import WatchTiming
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import START
from tests.support.embedded import eventually

PATH = "/apis/events.k8s.io/v1/events"
ROWS = {"n1": 0, "n2": 1}
TIMING = WatchTiming(server=1.0, silence=2.0, forbidden=0.3, backoff=Backoff(first_s=0.02, ceiling_s=0.1))


class Silent:
    def restarted(self, resource: str, reason: object) -> None: ...

    def forbidden(self, resource: str, error: Exception) -> None: ...

    def defect(self, resource: str, error: Exception) -> None: ...


class Scene:
    def __init__(self, cluster: EmbeddedCluster, client: KubeClient, clock: list[float]) -> None:
        self.cluster, self.client, self.clock = cluster, client, clock
        self._number = 0

    def bind(self, node: str, *, ago: float = 10.0, **changed: object) -> None:
        self._number += 1
        at = datetime.datetime.fromtimestamp(START - ago, tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        told = {"reason": "Scheduled", "type": "Normal", "note": f"Successfully assigned a/p{self._number} to {node}", "eventTime": at}
        self.cluster.world.create("events", {"metadata": {"name": f"e{self._number}", "namespace": "a"}, **told, **changed})

    @contextlib.contextmanager
    def reader(self, *, watch: bool = True) -> Iterator[BindingEvents]:
        with BindingEvents(self.client, watch=watch, report=Silent(), timing=TIMING, clock=lambda: self.clock[0]) as reader:
            yield reader

    def lists(self) -> int:
        return sum(request.path == PATH and "watch" not in request.query for request in self.cluster.api.requests.all())


def bound(reader: BindingEvents, *, since: float = START - 300) -> list[tuple[int, float]]:
    found = reader.read(ROWS, since=since, deadline=Deadline.after(10))
    return sorted(zip(found.node.tolist(), (START - found.at).tolist(), strict=True))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with EmbeddedCluster(bare_world()) as cluster:
        client = KubeClient.connect(kubeconfig=cluster.write_kubeconfig(tmp_path / "kubeconfig"), context=None)
        try:
            yield Scene(cluster, client, [0.0])
        finally:
            client.close()


def test_bindings_of_the_time_that_is_asked_for_to_nodes_that_there_are(scene: Scene) -> None:
    """Older ones, other nodes, and Events that say something else are none."""
    scene.bind("n1", ago=10)
    scene.bind("n2", ago=299)
    scene.bind("n2", ago=301)
    scene.bind("gone", ago=10)
    scene.bind("n1", ago=5, reason="FailedScheduling")
    scene.bind("n1", ago=5, type="Warning")
    scene.bind("n1", ago=5, note="assigned somehow")
    with scene.reader(watch=False) as reader:
        assert bound(reader) == [(0, 10.0), (1, 299.0)]


def test_an_event_of_the_older_kind_has_its_time_elsewhere(scene: Scene) -> None:
    """As a scheduler writes it that still uses the old API."""
    scene.bind("n1", eventTime=None, deprecatedLastTimestamp=datetime.datetime.fromtimestamp(START - 7, tz=datetime.UTC).isoformat())
    with scene.reader(watch=False) as reader:
        assert bound(reader) == [(0, 7.0)]


def test_the_server_is_asked_for_bindings_alone(scene: Scene) -> None:
    """Everything else that happens stays there."""
    with scene.reader() as reader:
        bound(reader)
        eventually(lambda: [r for r in scene.cluster.api.requests.all() if r.path == PATH and "watch" in r.query])
        requests = [r for r in scene.cluster.api.requests.all() if r.path == PATH]
        assert {r.query["fieldSelector"] for r in requests} == {"reason=Scheduled,type=Normal"}


def test_after_the_first_look_bindings_come_by_watch(scene: Scene) -> None:
    """One list, whatever happens."""
    scene.bind("n1")
    with scene.reader() as reader:
        assert bound(reader) == [(0, 10.0)]
        scene.bind("n2", ago=1)
        eventually(lambda: bound(reader) == [(0, 10.0), (1, 1.0)])
        assert scene.lists() == 1


def test_without_watches_each_look_lists(scene: Scene) -> None:
    """As the settings may ask for."""
    with scene.reader(watch=False) as reader:
        bound(reader)
        scene.bind("n2")
        assert bound(reader) == [(1, 10.0)]
        assert scene.lists() == 2


def test_a_watch_that_has_not_been_heard_of_is_not_believed(scene: Scene) -> None:
    """A list says what it may have missed."""
    with scene.reader() as reader:
        bound(reader)
        scene.clock[0] = 1000.0
        scene.bind("n1")
        assert bound(reader) == [(0, 10.0)]
        assert scene.lists() == 2


def test_after_a_rest_nothing_is_known_until_the_next_look(scene: Scene) -> None:
    """A standby keeps nothing."""
    scene.bind("n1")
    with scene.reader() as reader:
        bound(reader)
        reader.rest()
        assert bound(reader) == [(0, 10.0)]
        assert scene.lists() == 2


def test_a_missing_right_is_an_error_for_the_one_who_looks(scene: Scene) -> None:
    """And no more than that."""
    scene.cluster.api.rights.deny("list", "events")
    with scene.reader() as reader, pytest.raises(KubernetesForbidden):
        bound(reader)
