"""A small cluster that several teams share, for the demonstration of tenants: one has borrowed all that lay idle, another wants its own
back.

Twelve nodes. `vision` asked for more than it is guaranteed while `speech` was away, and got it; `sales` keeps to its guarantee. Then speech
rolls out, within its guarantee, and finds no room. Which team's pods use what is drawn from the seed.
"""

from __future__ import annotations

import random

from rebalancer.policy.tenants import Members, Tenant, TenantMetadata, TenantQuotas, TenantSpec
from rebalancer.simulate.catalogue import template
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.load import LoadModel, Profile
from rebalancer.simulate.making_pods import owner_reference
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import START, World
from rebalancer.units import format_time

NODES, CORES, GIB = 12, 8, 32
POD_CORES, POD_GIB = 2, 4
SETTLED_S = 2 * 3600.0
TEAMS = ("vision", "speech", "sales")


def _leaf(name: str, cpu: float, weight: float = 1.0) -> Tenant:
    return Tenant(name=name, guaranteed={"cpu": cpu}, weight=weight, members=(Members(namespaces=(name,)),))


QUOTAS = TenantQuotas(
    metadata=TenantMetadata(name="demo"),
    spec=TenantSpec(
        tenants=(
            Tenant(name="research", guaranteed={"cpu": 64}, tenants=(_leaf("vision", 40, 2.0), _leaf("speech", 24))),
            _leaf("sales", 24),
        )
    ),
)
"""Of the 96 cores of twelve nodes."""


def tenant_world(*, seed: int) -> World:
    """Everything of vision and sales runs; speech has not come yet."""
    rng = random.Random(seed * 7919 + 5)  # noqa: S311 - repeatable, not unguessable
    world = bare_world(seed=seed, now=START - SETTLED_S)
    for name in ("kube-system", *TEAMS):
        world.create("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
    for number in range(NODES):
        world.create("nodes", _node(f"node-{number:02d}"))
    _roll_out(world, "sales", [4, 4, 4])
    _roll_out(world, "vision", [8, 7, 7, 7, 7])
    world.advance(SETTLED_S)
    load = world.load or LoadModel(world)
    for pod in world.objects("pods"):
        busy = rng.choice((0.0, 0.3, 0.5, 0.6))
        meta = pod["metadata"]
        load.set_profile(meta["namespace"], meta["name"], Profile(busy * POD_CORES, rng.uniform(1, 3) * 2**30, swing=0.0))
    world.forget_changes()
    return world


def claim(world: World) -> None:
    """Speech comes back and wants what it is guaranteed."""
    _roll_out(world, "speech", [4, 4, 4])


def _roll_out(world: World, team: str, replicas: list[int]) -> None:
    """Deployments with their ReplicaSets and disruption budgets."""
    for number, count in enumerate(replicas):
        name = f"{team}-{number}"
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": count, "selector": selector, "template": template(name, cpu=str(POD_CORES), memory=f"{POD_GIB}Gi")}
        parent = world.create("deployments", {"metadata": {"name": name, "namespace": team, "labels": {"app": name}}, "spec": spec})
        revision = world.suffix(9)
        metadata = {"name": f"{name}-{revision}", "namespace": team, "labels": {"app": name}, "ownerReferences": [owner_reference(parent)]}
        world.create("replicasets", {"metadata": metadata, "spec": spec})
        budget = {"maxUnavailable": "50%", "selector": selector}
        world.create("poddisruptionbudgets", {"metadata": {"name": name, "namespace": team}, "spec": budget})
    world.settle()


def _node(name: str) -> Json:
    capacity = {"cpu": str(CORES), "memory": f"{GIB}Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    allocatable = {**capacity, "memory": f"{GIB - 2}Gi"}
    created = format_time(START - 30 * 86400)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": created, "lastHeartbeatTime": created}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return {
        "metadata": {"name": name, "labels": labels, "creationTimestamp": created},
        "spec": {},
        "status": {"capacity": capacity, "allocatable": allocatable, "conditions": [ready], "addresses": []},
    }
