"""The scheduler of the forward world is the one that plans are predicted with, and agrees with the embedded one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import read_cluster
from rebalancer.collect.samples import Samples
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.plan.stock_scores import StockScores
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.forward.chance import Stream, stream
from rebalancer.simulate.forward.placing import Placing
from rebalancer.simulate.pods import phase
from rebalancer.simulate.scenario import Scenario, build_world
from rebalancer.simulate.scheduler import Scheduler
from rebalancer.simulate.scheduling_filters import feasible
from rebalancer.simulate.scheduling_scores import total_score
from rebalancer.simulate.scheduling_snapshot import Demands, take_snapshot
from tests.support.builder import cluster, node, pod

NO_SAMPLES = Samples(signals=(), window_s=300.0, step_s=60.0, windows=1)


def placing(seed: int = 1) -> Placing:
    return Placing(stream(seed, Stream.TIES))


def test_every_pod_goes_to_a_best_node_with_the_earlier_ones_counted() -> None:
    """The choice is always among what `StockScores.best` says after the bookings before it; both ties of an even fleet are drawn."""
    state = cluster(
        nodes=[node(f"node-{number}", cpu=8, zone=f"zone-{number % 2}") for number in range(6)],
        pods=[pod(f"web-{number}", workload=f"web-{number // 4}", cpu=1 + number % 3) for number in range(20)],
    )
    placements = Placements(state)
    feasibility, scores = Feasibility(state, placements), StockScores(state, placements)
    for row, chosen in placing().place(state):
        assert chosen in scores.best(row, feasibility.allowed(row, leaving=False))
        placements.book(row, chosen)
    assert placements.pod_count.sum() == 20
    first = {next(iter(placing(seed).place(state)))[1] for seed in range(20)}
    assert len(first) > 1


def test_important_pods_are_placed_first_and_what_does_not_fit_waits() -> None:
    """One place for two pods: it is the higher priority's, though it came later."""
    state = cluster(
        nodes=[node("only", cpu=2)],
        pods=[pod("old", cpu=2, age_s=100), pod("important", cpu=2, age_s=10, priority=5)],
    )
    assert list(placing().place(state)) == [(1, 0), (0, -1)]


def test_it_agrees_with_the_scheduler_of_the_embedded_cluster(tmp_path: Path) -> None:
    """The same pods, read over HTTP into a state, have the same feasible nodes and the same best ones in both."""
    world = build_world(Scenario(seed=5, nodes=12, pods=200, hot_nodes=2))
    world.agents[:] = [agent for agent in world.agents if not isinstance(agent, Scheduler)]
    running = [each for each in world.objects("pods") if phase(each) == "Running" and each["metadata"]["namespace"] not in ("kube-system",)]
    for victim in running[::9]:
        world.remove("pods", victim["metadata"]["name"], victim["metadata"]["namespace"])
    world.settle()
    with EmbeddedCluster(world) as embedded:
        client = KubeClient.connect(kubeconfig=embedded.write_kubeconfig(tmp_path / "kubeconfig"), context=None)
        try:
            state = assemble(read_cluster(client, deadline=Deadline.after(30.0)), NO_SAMPLES, at=world.now)
        finally:
            client.close()
    demands = Demands()
    snapshot = take_snapshot(world, demands)
    compared = 0
    for row in np.flatnonzero(state.pods.node < 0).tolist():
        value = world.get("pods", state.pods.names[row], state.pods.namespaces[row])
        placements = Placements(state)
        mask = Feasibility(state, placements).allowed(row, leaving=False)
        theirs = np.flatnonzero(feasible(snapshot, value, demands.of(value)))
        assert {state.nodes.names[one] for one in np.flatnonzero(mask)} == {snapshot.names[one] for one in theirs}
        if not len(theirs):
            continue
        scores = total_score(snapshot, value, demands.of(value), theirs)
        best = {snapshot.names[one] for one in theirs[scores == scores.max()]}
        assert {state.nodes.names[one] for one in StockScores(state, placements).best(row, mask)} == best
        chosen = dict(placing().place(state))
        compared += 1
        assert state.nodes.names[chosen[row]] in snapshot.names
    assert compared >= 5
