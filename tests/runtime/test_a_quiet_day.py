"""T4: a balanced cluster with noise is left alone for a whole day."""

from __future__ import annotations

from pathlib import Path

from rebalancer.deadline import Deadline
from rebalancer.policy.model import Mode, Pool, Threshold
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.observe import observe, require_coverage
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.simulate.load import LoadModel, Profile
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import START, World
from tests.runtime.village import GIB, orders, serving
from tests.simulate.cluster_kit import deployment, node, owner_of, pod

NODES = tuple(f"n{i:02d}" for i in range(20))
PODS_A_NODE = 4
CORES = 8.0
SYSTEM = 0.15
NOISE = 0.03
"""Of the node: plus and minus three points."""
INTERVAL_S = 900.0
DAY_S = 86400.0


def balanced() -> World:
    """Nodes between 56 and 64 % busy; one pod of each swings by three points of the node, slowly enough that no mean hides it."""
    world = bare_world(seed=11, now=START - DAY_S)
    for name in ("kube-system", "shop"):
        world.create("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
    owners = [deployment(world, f"app-{i}", len(NODES), namespace="shop", cpu="1") for i in range(PODS_A_NODE)]
    for name in NODES:
        node(world, name)
    load = world.load or LoadModel(world)
    for number, name in enumerate(NODES):
        busy = 0.56 + 0.08 * number / (len(NODES) - 1)
        cores = (busy * CORES - SYSTEM) / PODS_A_NODE
        for i, owner in enumerate(owners):
            pod(
                world,
                f"app-{i}-{name}",
                namespace="shop",
                on=name,
                owner=owner_of(owner),
                labels={"app": f"app-{i}"},
                cpu="1",
                memory="1Gi",
            )
            swing = NOISE * CORES / cores if i == 0 else 0.0
            profile = Profile(cores, GIB, swing=swing, noise=0.02, period_s=2400.0 + 60 * number)
            load.set_profile("shop", f"app-{i}-{name}", profile)
    world.advance(DAY_S)
    return world


def by_deviation() -> Orders:
    """The same cluster judged by its distance from the mean: ten points are hot, three are the target."""
    cpu = Threshold(low=5, target=3, high=10)
    return orders(Mode.EVICT, pools=(Pool(name="default", thresholds="deviation", signals={"cpu": cpu}),))


def test_t4_a_balanced_cluster_with_noise_of_three_points_is_left_alone_for_a_day(tmp_path: Path) -> None:
    """A cycle every quarter of an hour for a day, by absolute marks and by deviations: not one move. And the noise is really there."""
    policies = {"absolute": orders(), "deviation": by_deviation()}
    moves: dict[str, list[str]] = {name: [] for name in policies}
    seen: list[float] = []
    with serving(tmp_path, balanced()) as village:
        for _ in range(int(DAY_S / INTERVAL_S)):
            state = observe(
                client=village.client,
                prometheus=village.prometheus,
                spec=policies["absolute"].policy.spec,
                at=village.now(),
                deadline=Deadline.after(60.0),
                stopwatch=Stopwatch(),
            )
            for name, given in policies.items():
                require_coverage(state, given.policy.spec)
                plan = consider(state, Memory(), given).decision.plan
                moves[name] += [f"{move.pod.name}: {move.reason}" for move in plan.moves]
            load = next(report for report in plan.nodes if report.name == NODES[10]).signals["cpu"].load
            assert load is not None
            seen.append(load)
            village.pass_time(INTERVAL_S / 60)
    assert moves == {"absolute": [], "deviation": []}
    assert max(seen) - min(seen) > 1.8 * NOISE
