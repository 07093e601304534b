"""The cluster that every fault meets: ten nodes, two of them hot, about seventy pods, and a budget for each workload.

- ``n0`` is hot, and two of its pods have to go; ``n1`` is hot, and one has to go. All three belong to workloads of three replicas.
- ``pinned`` is the heaviest of all on ``n0``, and its budget lets nobody go.
- ``spare`` on ``n0`` and ``reserve`` on ``n1`` may go and need not: whoever acts on half a truth moves them.
- An hour ago ``n2`` was hot, and is not any more: whoever decides by an hour-old sample would move ``late``.

Loads are constant, so a plan that comes later than it would have come without a fault is still the same plan.
"""

from __future__ import annotations

from rebalancer.simulate.load import LoadModel, Profile
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import START, World
from tests.simulate.cluster_kit import budget, deployment, node, owner_of, pod

GIB = 2.0**30
NODES = tuple(f"n{i}" for i in range(10))
HOT = NODES[:2]
ONCE_HOT = NODES[2]
MOVABLE = {"web": ("n0", 1.7), "api": ("n0", 1.65), "cache": ("n1", 2.2)}
"""workload -> where its heavy pod is, and the cores that it uses."""
_QUIET = NODES[3:]
_BATCH = 35
_HEAT = 2.5
_HEATED_FOR_S = 2400.0
_COOL_SINCE_S = 2400.0


def hamlet(*, now: float = START, tempting: bool = False) -> World:
    """The world as it is at ``now``, settled; every pod has run for a day.

    ``tempting``: so little is requested on the hot nodes that the scheduler likes them best, and only soft taints keep replacements away.
    """
    heated_at = now - _HEATED_FOR_S - _COOL_SINCE_S
    world = bare_world(seed=11, now=heated_at - 86400.0)
    for name in ("kube-system", "shop", "default"):
        world.create("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
    for name in NODES:
        node(world, name)
    uses = _workloads(world, filler_on_hot=("500m", "1Gi") if tempting else ("2500m", "10Gi"))
    load = world.load or LoadModel(world)
    for (namespace, name), cores in uses.items():
        load.set_profile(namespace, name, Profile(cores, GIB, swing=0.0, noise=0.0))
    world.advance(86400.0)
    load.scale([("shop", "late-hot")], _HEAT)
    world.advance(_HEATED_FOR_S)
    load.scale([("shop", "late-hot")], 1 / _HEAT)
    world.advance(_COOL_SINCE_S)
    return world


def _workloads(world: World, *, filler_on_hot: tuple[str, str]) -> dict[tuple[str, str], float]:
    """Create what runs, and return (namespace, pod) -> cores in use. ``filler_on_hot``: requests of cpu and memory."""
    uses: dict[tuple[str, str], float] = {}
    owners = {}
    for name in (*MOVABLE, "pinned", "spare", "reserve", "late"):
        owners[name] = deployment(world, name, 3, namespace="shop", cpu="500m")
        unavailable = 0 if name == "pinned" else 1
        budget(world, name, {"matchLabels": {"app": name}}, namespace="shop", maxUnavailable=unavailable)
    owners["batch"] = deployment(world, "batch", _BATCH, namespace="shop", cpu="150m")
    owners["filler"] = deployment(world, "filler", len(NODES), namespace="kube-system", cpu="500m")

    def place(owner: str, name: str, on: str, cores: float, *, cpu: str = "500m", memory: str = "1Gi", namespace: str = "shop") -> None:
        pod(world, name, namespace=namespace, on=on, owner=owner_of(owners[owner]), labels={"app": owner}, cpu=cpu, memory=memory)
        uses[namespace, name] = cores

    heavy = {**MOVABLE, "pinned": (HOT[0], 2.0), "spare": (HOT[0], 0.9), "reserve": (HOT[1], 1.0), "late": (ONCE_HOT, 1.1)}
    for number, (owner, (on, cores)) in enumerate(heavy.items()):
        place(owner, f"{owner}-hot", on, cores, cpu="3500m" if owner == "late" else "500m")
        for sibling in (1, 2):
            place(owner, f"{owner}-{sibling}", _QUIET[(2 * number + sibling) % len(_QUIET)], 0.3)
    for number in range(_BATCH):
        place("batch", f"batch-{number}", _QUIET[number % len(_QUIET)], 0.12, cpu="150m")
    for name in NODES:
        hot = {HOT[0]: 1.2, HOT[1]: 2.8, ONCE_HOT: 3.1}.get(name, 0.8)
        cpu, memory = filler_on_hot if name in HOT else ("500m", "1Gi")
        place("filler", f"filler-{name}", name, hot, cpu=cpu, memory=memory, namespace="kube-system")
    return uses
