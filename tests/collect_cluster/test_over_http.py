"""From the bytes of an API server to the state, through the real client."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import read_cluster
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import World
from rebalancer.state.tables import WorkloadRef
from tests.collect_cluster.objects import samples
from tests.simulate.cluster_kit import budget, deployment, node, owner_of, pod


@pytest.fixture
def world() -> World:
    """Two nodes, a Deployment of 30 pods in several pages, a disruption budget."""
    world = World(seed=1)
    for name in ("kube-system", "a"):
        world.create("namespaces", {"metadata": {"name": name}})
    for name in ("n1", "n2"):
        node(world, name)
    replica_set = deployment(world, "web", 30)
    for number in range(30):
        pod(world, f"web-{number}", on="n1", cpu="100m", labels={"app": "web"}, owner=owner_of(replica_set))
    budget(world, "web", {"matchLabels": {"app": "web"}}, maxUnavailable=1)
    return world


def test_a_cluster_read_over_http_in_pages_is_whole(world: World, tmp_path: Path) -> None:
    """Every pod once, with its node, its Deployment and its budget."""
    with EmbeddedCluster(world) as cluster:
        client = KubeClient.connect(kubeconfig=cluster.write_kubeconfig(tmp_path / "kubeconfig"), context=None, page_size=7)
        try:
            objects = read_cluster(client, deadline=Deadline.after(30))
        finally:
            client.close()
    state = assemble(objects, samples(), at=world.now)
    assert objects.odd == {}
    assert len(state.pods.names) == len(set(state.pods.names)) == 30
    assert state.pods.node.tolist() == [0] * 30
    assert state.workloads.refs == (WorkloadRef("Deployment", "a", "web"),)
    assert set(state.pods.budgets) == {(0,)}
    assert state.pods.request[0, 0] == 0.1
    assert state.cluster
