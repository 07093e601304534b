"""A cluster that is kept by watch, against the embedded API server: equal to its lists, whatever goes wrong."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import ClusterObjects, read_cluster
from rebalancer.collect.watched import WatchedCluster
from rebalancer.collect.watched_table import Contact
from rebalancer.deadline import Deadline
from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.resources import WATCHED
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import Restart, WatchTiming
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.faults import Act, Fault
from rebalancer.simulate.http_server import Request
from rebalancer.simulate.world import World
from tests.collect_cluster.objects import NOW, same_state, samples
from tests.simulate.cluster_kit import Json, deployment, node, owner_of, pod
from tests.support.embedded import eventually
from tests.watch.kit import QUICK, Noted

SHORT = Contact(within=1.6, settle=0.2)
"""In proportion to `QUICK`: a little longer than a connection lasts."""
STEADY: dict[str, Any] = {"timing": WatchTiming(backoff=QUICK.backoff), "contact": Contact(settle=0.2)}
"""As in production, but for the pauses."""


@dataclass
class Here:
    """An embedded cluster, a client and what its watches reported."""

    world: World
    cluster: EmbeddedCluster
    client: KubeClient
    noted: Noted = field(default_factory=Noted)

    def watched(self, **options: Any) -> WatchedCluster:
        return WatchedCluster(self.client, report=self.noted, **{"timing": QUICK, "contact": SHORT, **options})

    @property
    def lists(self) -> list[str]:
        """Plurals of what was listed, first pages only."""
        return [plural(request) for request in self._reads() if "watch" not in request.query and "continue" not in request.query]

    @property
    def watches(self) -> list[str]:
        return [plural(request) for request in self._reads() if "watch" in request.query]

    def versions(self, name: str = "pods") -> list[int]:
        """From which each watch of a resource began."""
        return [int(request.query["resourceVersion"]) for request in self._reads() if plural(request) == name and "watch" in request.query]

    def forget(self) -> None:
        self.cluster.api.requests.clear()

    def _reads(self) -> list[Request]:
        return self.cluster.api.requests.of("GET")


def plural(request: Request) -> str:
    return request.path.rpartition("/")[2]


def read(source: WatchedCluster) -> ClusterObjects:
    return source.read(deadline=Deadline.after(30))


def names(objects: ClusterObjects) -> list[str]:
    return [pod.metadata.name for pod in objects.pods]


@contextmanager
def place(tmp_path: Path, world: World, **options: Any) -> Iterator[Here]:
    with EmbeddedCluster(world, **options) as cluster:
        client = KubeClient.connect(
            kubeconfig=cluster.write_kubeconfig(tmp_path / "kubeconfig"),
            context=None,
            page_size=10,
            backoff=Backoff(first_s=0.01, attempts=2),
        )
        try:
            yield Here(world, cluster, client)
        finally:
            client.close()


def small_world() -> World:
    world = World(seed=1)
    for name in ("kube-system", "a"):
        world.create("namespaces", {"metadata": {"name": name}})
    for name in ("n1", "n2"):
        node(world, name)
    replica_set = deployment(world, "web", 12)
    for number in range(12):
        pod(world, f"web-{number:02}", on="n1", cpu="100m", labels={"app": "web"}, owner=owner_of(replica_set))
    return world


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with place(tmp_path, small_world()) as found:
        yield found


SMALL_ONES = ["namespaces", "statefulsets", "daemonsets", "cronjobs", "horizontalpodautoscalers", "priorityclasses", "poddisruptionbudgets"]


def test_what_is_watched_is_listed_once_and_then_read_as_changes(here: Here) -> None:
    """The second look asks for the small ones alone, and sees what has changed since."""
    with here.watched(**STEADY) as source:
        before = read(source)
        assert sorted(here.lists) == sorted([*SMALL_ONES, *(resource.name for resource in WATCHED)])
        eventually(lambda: len(here.watches) == len(WATCHED))
        here.forget()
        pod(here.world, "new", on="n2")
        here.world.remove("pods", "web-03", "a")
        here.world.remove("nodes", "n1")
        eventually(lambda: "new" in names(after := read(source)) and len(after.nodes) == 1)
        after = read(source)
    assert set(here.lists) == set(SMALL_ONES)
    assert here.watches == []
    assert set(names(before)) - set(names(after)) == {"web-03"}
    assert [found.metadata.name for found in after.nodes] == ["n2"]
    assert here.noted.restarts == []


def test_ki1_every_list_has_a_limit_and_only_wire_structs_are_kept(here: Here) -> None:
    """Nothing of the client's models, nothing of a page."""
    with here.watched(**STEADY) as source:
        objects = read(source)
        asked = here.cluster.api.requests.of("GET")
        assert all(request.query.get("limit") == "10" for request in asked if "watch" not in request.query)
    kept = [*objects.pods, *objects.nodes, *objects.replica_sets, *objects.deployments]
    assert kept
    assert all(isinstance(item, msgspec.Struct) and type(item).__name__.endswith("Wire") for item in kept)


def fields(objects: ClusterObjects) -> Json:
    """The lists by key: the embedded server sorts them by namespace first, a real one by the whole key."""
    found = {name: getattr(objects, name) for name in objects.__slots__ if name != "columns"}
    return {name: sorted(value, key=_sort_key) if isinstance(value, list) else value for name, value in found.items()}


def _sort_key(item: Any) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name


def shake(world: World, rng: random.Random) -> None:
    """One random change of one of the kinds that are watched."""
    plural = rng.choice(["pods", "pods", "pods", "nodes", "deployments", "replicasets", "persistentvolumeclaims", "persistentvolumes"])
    known = list(world.objects(plural))
    what = rng.choice(["create", "update", "delete"])
    if what == "create" or not known:
        namespace = {} if plural in ("nodes", "persistentvolumes") else {"namespace": rng.choice(["a", "a-b", "b"])}
        world.create(plural, {"metadata": {"generateName": "x-", **namespace}, "spec": {}, "status": {}})
        return
    metadata = rng.choice(known)["metadata"]
    name, namespace_of = metadata["name"], metadata.get("namespace", "")
    if what == "delete":
        world.remove(plural, name, namespace_of)
    else:
        value = world.get(plural, name, namespace_of)
        labels = {**(metadata.get("labels") or {}), "turn": str(rng.randrange(1000))}
        world.replace(plural, {**value, "metadata": {**value["metadata"], "labels": labels}})


@pytest.mark.parametrize("seed", range(4))
def test_after_any_changes_the_watched_state_is_the_listed_state(here: Here, seed: int) -> None:
    """While watches are dropped, answered with 500, expired and full of garbage; and no list has to correct anything."""
    rng = random.Random(seed)
    with here.watched() as source:
        read(source)
        for _ in range(6):
            _trouble(here, rng)
            for _ in range(rng.randrange(1, 25)):
                shake(here.world, rng)
            read(source)
        here.cluster.faults.clear()

        def equal() -> bool:
            return fields(read(source)) == fields(read_cluster(here.client, deadline=Deadline.after(30)))

        eventually(equal)
        kept = read(source)
    assert kept.columns is not None
    same_state(assemble(kept, samples(), at=NOW), assemble(replace(kept, columns=None), samples(), at=NOW))
    assert here.noted.disagreements.total() == 0
    assert here.noted.defects == []


def _trouble(here: Here, rng: random.Random) -> None:
    path, faults = r"watch=", here.cluster.faults
    match rng.randrange(6):
        case 0:
            faults.drop(path=path, count=3)
        case 1:
            faults.status(500, path=path, count=3)
        case 2:
            faults.expire(path=path, count=3)
        case 3:
            faults.add(Fault(Act.WATCH_ERROR, path=path, count=3))
        case 4:
            faults.add(Fault(Act.REPLACE, path=path, count=3, body=b'{"type":"ADD'))
        case _:
            here.world.forget_changes()


@pytest.mark.parametrize("fault", [Fault(Act.GONE, path="/pods.*watch=", count=1), Fault(Act.WATCH_ERROR, path="/pods.*watch=", count=1)])
def test_kw2_and_kw3_an_expired_watch_costs_exactly_one_list(here: Here, fault: Fault) -> None:
    """As a status and as an event: one list of that resource, a watch from its version, and no request with the expired one."""
    with here.watched(timing=replace(QUICK, server=1.0), contact=Contact(settle=0.2)) as source:
        read(source)
        eventually(here.versions)
        pod(here.world, "late", on="n2")
        eventually(lambda: "late" in names(read(source)))
        here.cluster.faults.add(fault)
        eventually(lambda: here.noted.count(Restart.EXPIRED))
        expired = here.versions()[-1]
        pod(here.world, "later", on="n2")
        here.forget()
        assert "later" in names(read(source))
        assert here.lists.count("pods") == 1
        eventually(lambda: len(here.versions()) >= 2)
        read(source)
    assert here.lists.count("pods") == 1
    assert min(here.versions()) > expired
    assert here.noted.count(Restart.EXPIRED) == 1


def test_kw5_while_watches_are_silent_each_look_lists(here: Here) -> None:
    """They are accepted and never answered: counted as silent, and nothing that is out of date is decided on."""
    here.cluster.faults.hang(path="watch=")
    with here.watched() as source:
        read(source)
        pod(here.world, "late", on="n2")
        here.forget()
        assert "late" in names(read(source))
        assert here.lists.count("pods") == 1
        eventually(lambda: here.noted.count(Restart.SILENT))
        here.cluster.faults.clear()
        read(source)
        eventually(lambda: _reads_changes(here, source))


def _reads_changes(here: Here, source: WatchedCluster) -> bool:
    here.forget()
    read(source)
    return not set(here.lists) & {resource.name for resource in WATCHED}


def test_a_state_that_was_watched_is_not_used_once_the_server_is_silent(here: Here) -> None:
    """A connection that is open and dead: within the bound the next look lists, and sees what the watch did not tell."""
    with here.watched() as source:
        read(source)
        eventually(lambda: _reads_changes(here, source))
        here.cluster.faults.hang(path="watch=")
        eventually(lambda: not _reads_changes(here, source))
        pod(here.world, "late", on="n2")
        assert "late" in names(read(source))


@pytest.mark.parametrize("break_", [lambda faults: faults.status(500, path="watch="), lambda faults: faults.drop(path="watch=")])
def test_ki3_a_server_that_fails_its_watches_is_asked_ever_less(here: Here, break_: Callable[[Any], None]) -> None:
    """The looks go on by list, and a watch that works again ends that."""
    break_(here.cluster.faults)
    with here.watched(timing=replace(QUICK, backoff=Backoff(first_s=0.2, ceiling_s=30))) as source:
        read(source)
        time.sleep(2.0)
        attempts = here.watches.count("pods")
        assert names(read(source))
    assert 2 <= attempts <= 5


def test_a_server_that_starts_again_is_watched_again(tmp_path: Path) -> None:
    """The look in between fails and says so; afterwards nothing is missing."""
    world = small_world()
    with place(tmp_path, world) as here:
        port = int(here.cluster.api_url.rpartition(":")[2])
        with here.watched() as source:
            read(source)
            here.cluster.api.stop()
            time.sleep(SHORT.within)
            with pytest.raises(KubernetesError):
                read(source)
            pod(world, "late", on="n2")
            with EmbeddedCluster(world, port=port):
                eventually(lambda: _found(source, "late"))
                eventually(lambda: source._watched[WATCHED[0]].table.copy() is not None)


def _found(source: WatchedCluster, name: str) -> bool:
    try:
        return name in names(read(source))
    except KubernetesError:
        return False


def test_a_forbidden_watch_is_told_once_and_that_resource_is_listed(here: Here) -> None:
    """The others are watched; when the right is granted, this one is too."""
    here.cluster.api.rights.deny("watch", "pods")
    with here.watched(contact=Contact(settle=0.2)) as source:
        read(source)
        eventually(lambda: read(source) and here.noted.count(Restart.FORBIDDEN) >= 2)
        here.forget()
        pod(here.world, "late", on="n2")
        assert "late" in names(read(source))
        assert [name for name in here.lists if name not in SMALL_ONES] == ["pods"]
        assert [resource for resource, _ in here.noted.forbidden_ones] == ["pods"]
        here.cluster.api.rights.allow_all()
        eventually(lambda: _reads_changes(here, source))


def test_everything_is_listed_from_time_to_time_and_agrees(here: Here) -> None:
    """Whatever the watch says; what it says agrees, so nothing is counted."""
    now = [0.0]

    def clock() -> float:
        return now[0] + time.monotonic()

    with here.watched(**STEADY, relist_s=600, clock=clock) as source:
        read(source)
        eventually(lambda: _reads_changes(here, source))
        shake(here.world, random.Random(1))
        now[0] += 661
        here.forget()
        read(source)
        assert set(here.lists) == {*SMALL_ONES, *(resource.name for resource in WATCHED)}
    assert here.noted.disagreements.total() == 0


def test_a_watch_that_misses_a_change_is_found_out_and_corrected(here: Here) -> None:
    """A change that is in the store and in no event: the next list brings it in and counts it."""
    with here.watched(**STEADY, relist_s=0) as source:
        read(source)
        eventually(lambda: len(here.watches) == len(WATCHED))
        eventually(lambda: source._watched[WATCHED[0]].table.copy() is not None)
        with here.world.lock:
            pod(here.world, "untold", on="n2")
            here.world._log.pop()
        assert "untold" in names(read(source))
        node(here.world, "n3")
        pod(here.world, "told", on="n3")
        eventually(lambda: here.noted.disagreements["pods"])
    assert here.noted.disagreements == {"pods": 1}


def test_closing_is_quick_while_watches_are_quiet(here: Here) -> None:
    """Every thread ends and every socket is closed, long before the server would have said a word."""
    with here.watched(**STEADY) as source:
        read(source)
        eventually(lambda: len(here.watches) == len(WATCHED))
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("watch-")]
        assert len(threads) == len(WATCHED)
        source.close()
        assert not any(thread.is_alive() for thread in threads)
        assert not source.alive()
    assert here.noted.restarts == []


def test_closing_does_not_wait_for_a_server_that_does_not_answer(here: Here) -> None:
    """Threads that wait for a connection to be accepted are left to end by themselves."""
    here.cluster.faults.hang(path="watch=")
    source = here.watched()
    with source:
        read(source)
        eventually(lambda: len(here.watches) == len(WATCHED))
        before = time.monotonic()
        source.close()
        took = time.monotonic() - before
    assert took < QUICK.silence
    eventually(lambda: not any(thread.name.startswith("watch-") for thread in threading.enumerate()))


def test_resting_ends_the_watches_until_the_next_look(here: Here) -> None:
    """Nothing is kept and nothing is asked for; the next look lists and watches anew."""
    with here.watched(**STEADY) as source:
        read(source)
        eventually(lambda: len(here.watches) == len(WATCHED))
        source.rest()
        eventually(lambda: len(here.noted.restarts) == len(WATCHED))
        here.forget()
        pod(here.world, "late", on="n2")
        time.sleep(0.3)
        assert here.watches == []
        assert "late" in names(read(source))
        assert "pods" in here.lists
        eventually(lambda: _reads_changes(here, source))


def test_resting_lets_go_of_the_columns_of_pods_too(here: Here) -> None:
    """A standby keeps nothing of what it read; the next read makes them anew."""
    with here.watched() as source:
        first, second = read(source).columns, read(source).columns
        source.rest()
        third = read(source).columns
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.constraints is second.constraints
    assert third.constraints is not second.constraints
    assert third.uids == second.uids
