"""Reading by watch from a real API server: what it tells, in its own forms, is what it lists."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rebalancer.collect.cluster import ClusterObjects, read_cluster
from rebalancer.collect.watched import WatchedCluster
from rebalancer.collect.watched_table import Contact
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.lists import list_all
from rebalancer.kube.resources import PODS, WATCHED
from rebalancer.kube.watch import Restart, Start, Watch, WatchTiming
from rebalancer.kube.watch_events import Present, Progress
from tests.e2e.api import until
from tests.e2e.ground import Ground, ground
from tests.e2e.hollow import HollowNode
from tests.e2e.objects import deployment, pod_spec
from tests.e2e.plane import ControlPlane, Plane
from tests.e2e.table import Row
from tests.watch.kit import Heard, Noted, Pauses

SHOP = "e2e-watched"
REPLICAS = 6
SHORT = WatchTiming(server=4.0, silence=8.0)
"""So that connections end, and bookmarks come, within the test."""


@dataclass
class Shop:
    ground: Ground
    client: KubeClient
    noted: Noted = field(default_factory=Noted)


@pytest.fixture
def shop(plane: ControlPlane, tmp_path: Path) -> Iterator[Shop]:
    """A Deployment on two nodes."""
    with ground(plane, tmp_path, [HollowNode(f"node-{number}") for number in range(2)]) as own:
        own.namespace(SHOP)
        own.apply(deployment("web", SHOP, pod_spec(cpu="100m"), replicas=REPLICAS))
        own.settled(SHOP, REPLICAS)
        client = KubeClient.connect(kubeconfig=plane.kubeconfig, context=None)
        try:
            yield Shop(own, client)
        finally:
            client.close()


def equal(shop: Shop, source: WatchedCluster) -> bool:
    """By watch and by lists the same, order included, while nothing changes."""
    return fields(source.read(deadline=Deadline.after(30))) == fields(read_cluster(shop.client, deadline=Deadline.after(30)))


def all_watched(source: WatchedCluster) -> bool:
    source.read(deadline=Deadline.after(30))
    return all(each.table.copy() is not None for each in source._watched.values())


def fields(objects: ClusterObjects) -> Sequence[Any]:
    """Without what is worked out from the pods, which only a watched cluster keeps."""
    return [getattr(objects, name) for name in objects.__slots__ if name != "columns"]


def test_what_is_watched_is_what_is_listed(shop: Shop, scenario: Row) -> None:
    """By watch and by lists, the same cluster.

    Through a rollout, a scale-down, deletions, and several connections; then a list of everything has nothing to correct.
    """
    api, contact = shop.ground.api, Contact(within=6, settle=0.5)
    with WatchedCluster(shop.client, report=shop.noted, timing=SHORT, contact=contact, relist_s=3600) as source:
        source.read(deadline=Deadline.after(30))
        api.patch("deployments", "web", {"spec": {"template": {"metadata": {"labels": {"turn": "2"}}}}}, SHOP)
        shop.ground.settled(SHOP, REPLICAS, turn="2")
        api.scale("deployments", "web", SHOP, 3)
        shop.ground.settled(SHOP, 3)
        until(lambda: equal(shop, source), "the watched cluster is the listed one", seconds=30)
        until(lambda: all(shop.noted.count(Restart.ENDED, each.name) >= 2 for each in WATCHED), "two connections of each ended")
        for watched in source._watched.values():
            assert watched.table.copy() is not None
            watched.list_at = 0.0
        assert equal(shop, source)
        api.scale("deployments", "web", SHOP, 4)
        shop.ground.settled(SHOP, 4)
        until(lambda: equal(shop, source), "still the same after the lists", seconds=30)
    assert {reason for _, reason in shop.noted.restarts} == {Restart.ENDED}
    assert shop.noted.disagreements.total() == 0
    scenario.shows(f"{len(WATCHED)} kinds, {len(shop.noted.restarts)} connections, 0 objects to correct")


def test_a_watch_ends_with_a_bookmark(shop: Shop, scenario: Row) -> None:
    """A watch of pods of which one changes.

    The server tells the change, then a bookmark that is no older, and ends it in time. It sends none while it has nothing newer than what
    it told when the watch began; nothing here depends on them.
    """
    listed = list_all(shop.client, PODS, deadline=Deadline.after(30))
    pod = next(each.metadata for each in listed.items if each.metadata.namespace == SHOP)

    class Changing(Heard):
        def opened(self, start: Start) -> None:
            super().opened(start)
            shop.ground.api.patch("pods", pod.name, {"metadata": {"labels": {"turn": "3"}}}, SHOP)

    heard = Changing(version=int(listed.resource_version), connections=1)
    Watch(shop.client, PODS, heard, stop=threading.Event(), report=Noted(), timing=SHORT, pause=Pauses()).run()
    assert heard.reasons == [Restart.ENDED]
    *changes, last = heard.news
    assert isinstance(last, Progress)
    assert [news.key for news in changes if isinstance(news, Present)] == [f"{SHOP}/{pod.name}"]
    assert last.version >= changes[-1].version
    scenario.shows(f"one change, then a bookmark, within {SHORT.server:g} s")


def test_after_a_restart_of_the_api_server_nothing_is_missing(plane: ControlPlane, shop: Shop, scenario: Row) -> None:
    """The API server restarted while it is watched.

    What its new watch cache has forgotten is expired and listed; what changed meanwhile is seen.
    """
    if not isinstance(plane, Plane):
        pytest.skip("a borrowed cluster is not restarted")
    with WatchedCluster(shop.client, report=shop.noted, timing=SHORT, contact=Contact(within=6, settle=0.5), relist_s=3600) as source:
        source.read(deadline=Deadline.after(30))
        plane.programs["kube-apiserver"].stop()
        plane.programs["kube-apiserver"].start()
        plane.wait_ready()
        shop.ground.api.scale("deployments", "web", SHOP, 2)
        shop.ground.settled(SHOP, 2)
        until(lambda: equal(shop, source), "the watched cluster is the listed one", seconds=60, step=1)
        until(lambda: all_watched(source), "all is watched again", seconds=60)
    reasons = Counter(reason for _, reason in shop.noted.restarts)
    assert reasons[Restart.DROPPED] >= 1
    assert not {Restart.GARBLED, Restart.DEFECT} & set(reasons)
    assert shop.noted.disagreements.total() == 0
    heard = Heard(version=1, connections=1)
    Watch(shop.client, PODS, heard, stop=threading.Event(), report=Noted(), timing=SHORT, pause=Pauses()).run()
    assert (heard.reasons, heard.news) == ([Restart.EXPIRED], [])
    scenario.shows(", ".join(f"{count} {reason.value}" for reason, count in sorted(reasons.items(), key=lambda entry: entry[0].value)))
