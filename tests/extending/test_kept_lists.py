"""Lists that are kept for a reader that never waits, against the embedded API server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rebalancer.collect.kept_lists import KeptLists, Pace
from rebalancer.collect.watched_table import Contact
from rebalancer.kube.client import KubeClient
from rebalancer.kube.resources import NODE_LOADS, one_config_map
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import Restart
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import World, updated
from tests.extending.kit import Told, node_json
from tests.support.embedded import eventually
from tests.watch.kit import QUICK

STATE = one_config_map(namespace="ops", name="state")
CONTACT = Contact(within=1.6, settle=0.1)
PACE = Pace(look=0.02, again=0.2, backoff=Backoff(first_s=0.05, ceiling_s=0.1))


@dataclass
class Here:
    world: World
    cluster: EmbeddedCluster
    client: KubeClient
    told: Told = field(default_factory=Told)

    def kept(self, *, relist_s: float = 600.0) -> KeptLists:
        return KeptLists(self.client, (NODE_LOADS, STATE), report=self.told, relist_s=relist_s, timing=QUICK, contact=CONTACT, pace=PACE)

    def lists(self, plural: str = "nodes") -> int:
        return sum(r.path.endswith(plural) and "watch" not in r.query for r in self.cluster.api.requests.of("GET"))


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    world = World()
    world.create("namespaces", {"metadata": {"name": "ops"}})
    for name in ("a", "b"):
        world.create("nodes", node_json(name))
    with EmbeddedCluster(world) as cluster:
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        client = KubeClient.connect(kubeconfig=kubeconfig, context=None, backoff=Backoff(first_s=0.01, attempts=1))
        try:
            yield Here(world, cluster, client)
        finally:
            client.close()


def names(kept: KeptLists) -> list[str]:
    found = kept.known(NODE_LOADS)
    return [] if found is None else [each.metadata.name for each in found.items]


def test_a_list_is_read_once_and_then_followed(here: Here) -> None:
    """Of nodes and of the one ConfigMap; an absent ConfigMap is an empty list."""
    with here.kept() as kept:
        eventually(lambda: names(kept) == ["a", "b"])
        state = eventually(lambda: kept.known(STATE))
        assert state.items == []
        here.world.create("nodes", node_json("c"))
        here.world.create("configmaps", {"metadata": {"name": "state", "namespace": "ops"}, "data": {"k": "v"}})
        here.world.create("configmaps", {"metadata": {"name": "other", "namespace": "ops"}, "data": {"k": "w"}})
        eventually(lambda: names(kept) == ["a", "b", "c"])
        found = eventually(lambda: (s := kept.known(STATE)) and s.items)
        assert [item.data for item in found] == [{"k": "v"}]
        assert kept.alive()
    assert here.lists() == 1
    assert not kept.alive()


def test_while_the_server_is_gone_the_last_state_stays_with_its_time(here: Here) -> None:
    """It is told once; when the server is back, what has changed meanwhile is known again."""
    with here.kept() as kept:
        eventually(lambda: names(kept) == ["a", "b"])
        here.cluster.faults.drop()
        here.cluster.api.cut()
        eventually(lambda: here.told.unreadable_ones)
        before = kept.known(NODE_LOADS)
        assert before is not None
        here.world.create("nodes", node_json("c"))
        here.cluster.faults.clear()
        eventually(lambda: names(kept) == ["a", "b", "c"])
        after = kept.known(NODE_LOADS)
        assert after is not None
        assert after.at > before.at
        eventually(lambda: {"nodes", "configmaps"} <= set(here.told.readable_ones) or kept.known(STATE))
    assert [name for name, _ in here.told.unreadable_ones].count("nodes") <= 1


def test_a_forgotten_past_is_listed_again(here: Here) -> None:
    """410 Gone: what was known stays until then."""
    with here.kept() as kept:
        eventually(lambda: names(kept) == ["a", "b"])
        here.cluster.faults.expire(path="watch=", count=2)
        eventually(lambda: here.told.count(Restart.EXPIRED, "nodes") or here.told.count(Restart.EXPIRED, "configmaps"))
        here.world.replace("nodes", updated(here.world.get("nodes", "a"), "metadata", {"annotations": {"k": "v"}}))
        eventually(lambda: (s := kept.known(NODE_LOADS)) and (s.items[0].metadata.annotations or {}).get("k") == "v")
        assert names(kept) == ["a", "b"]


def test_without_the_right_to_watch_it_lists_at_its_pace(here: Here) -> None:
    """And says so once."""
    here.cluster.faults.status(403, path="watch=")
    with here.kept() as kept:
        eventually(lambda: here.lists() >= 3)
        here.world.create("nodes", node_json("c"))
        eventually(lambda: names(kept) == ["a", "b", "c"])
    assert [name for name, _ in here.told.forbidden_ones].count("nodes") == 1


def test_one_resource_that_cannot_be_read_holds_up_no_other(here: Here) -> None:
    """No right to the ConfigMap: the nodes are known all the same."""
    here.cluster.faults.status(403, path="configmaps")
    with here.kept() as kept:
        eventually(lambda: names(kept) == ["a", "b"])
        eventually(lambda: here.told.unreadable_ones)
        assert kept.known(STATE) is None
    assert [name for name, _ in here.told.unreadable_ones] == ["configmaps"]


def test_it_lists_from_time_to_time_whatever_the_watch_says(here: Here) -> None:
    """A watch that lies is found out."""
    with here.kept(relist_s=0.3) as kept:
        eventually(lambda: here.lists() >= 3)
        assert names(kept) == ["a", "b"]
    assert here.told.disagreements == {}
