"""Makes some nodes hot: a few movable pods on each use several times what they request, the rest of the node somewhat more.

Hot nodes are those with the lowest packing, so that they are what the scheduler likes best: low packing, high load.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.load import LoadModel
from rebalancer.simulate.pods import TERMINAL, controller_of, effective_request, phase
from rebalancer.simulate.selectors import matches
from rebalancer.simulate.world import World
from rebalancer.units import parse_quantity

if TYPE_CHECKING:
    from rebalancer.simulate.scenario import Scenario

_HEAVY_SHARE = 0.75
_WEIGHTS = (0.45, 0.33, 0.22)
_SYSTEM = ("kube-system", "monitoring", "logging")


def _movable(world: World, pod: Json, open_budgets: dict[str, list[Json]]) -> bool:
    """True for a pod that nothing protects: several replicas, no opt-out, no local storage, a budget with room or none."""
    owner, metadata = controller_of(pod), pod["metadata"]
    if owner is None or owner["kind"] != "ReplicaSet" or metadata["namespace"] in _SYSTEM or metadata.get("annotations"):
        return False
    found = world.get("replicasets", owner["name"], metadata["namespace"])
    if int(found["spec"]["replicas"]) < 3 or pod["spec"].get("volumes") or pod["spec"].get("affinity"):
        return False
    if any(c.get("whenUnsatisfiable") == "DoNotSchedule" for c in pod["spec"].get("topologySpreadConstraints") or ()):
        return False
    covering = [b for b in open_budgets.get(metadata["namespace"], ()) if matches(b["spec"]["selector"], metadata["labels"])]
    return not covering or (len(covering) == 1 and int(covering[0]["status"]["disruptionsAllowed"]) > 0)


def heat(world: World, load: LoadModel, scenario: Scenario) -> list[str]:
    """Raise the demand on ``scenario.hot_nodes`` nodes into ``scenario.hot_load``; the names of these nodes."""
    rng = random.Random(scenario.seed * 7919 + 3)  # noqa: S311 - repeatable, not unguessable
    on_node: dict[str, list[Json]] = {}
    packed: dict[str, float] = {}
    for pod in world.objects("pods"):
        if pod["spec"].get("nodeName") and phase(pod) not in TERMINAL:
            name = pod["spec"]["nodeName"]
            on_node.setdefault(name, []).append(pod)
            packed[name] = packed.get(name, 0.0) + effective_request(pod).get("cpu", 0.0)
    budgets: dict[str, list[Json]] = {}
    for budget in world.objects("poddisruptionbudgets"):
        budgets.setdefault(budget["metadata"]["namespace"], []).append(budget)
    chosen: list[str] = []
    used: dict[str, int] = {}
    loads = load.node_loads("cpu")
    for name in sorted(on_node, key=lambda node: (packed[node], node)):
        if len(chosen) == scenario.hot_nodes:
            break
        if world.get("nodes", name)["spec"].get("taints"):  # set apart, such as nodes with GPUs
            continue
        candidates = [pod for pod in on_node[name] if _movable(world, pod, budgets)]
        candidates.sort(key=lambda pod: (used.get(pod["metadata"]["labels"]["app"], 0), -effective_request(pod).get("memory", 0.0)))
        if len(candidates) < scenario.heavy_pods:
            continue
        heavy = candidates[: scenario.heavy_pods]
        for pod in heavy:
            used[pod["metadata"]["labels"]["app"]] = used.get(pod["metadata"]["labels"]["app"], 0) + 1
        allocatable = parse_quantity(str(world.get("nodes", name)["status"]["allocatable"]["cpu"]))
        missing = (rng.uniform(*scenario.hot_load) - loads[name]) * allocatable
        _raise(load, on_node[name], heavy, missing)
        chosen.append(name)
    return chosen


def _raise(load: LoadModel, pods: list[Json], heavy: list[Json], missing: float) -> None:
    """Put ``missing`` cores of demand on a node: most of it on the heavy pods, the rest on its other application pods."""
    total = sum(_WEIGHTS[: len(heavy)]) if len(heavy) <= len(_WEIGHTS) else float(len(heavy))
    weights = [weight / total for weight in _WEIGHTS[: len(heavy)]] if len(heavy) <= len(_WEIGHTS) else [1 / len(heavy)] * len(heavy)
    for pod, weight in zip(heavy, weights, strict=True):
        _add(load, pod, missing * _HEAVY_SHARE * weight)
    names = {pod["metadata"]["uid"] for pod in heavy}
    rest = [pod for pod in pods if pod["metadata"]["uid"] not in names and pod["metadata"]["namespace"] not in _SYSTEM]
    for pod in rest:
        _add(load, pod, missing * (1 - _HEAVY_SHARE) / len(rest))


def _add(load: LoadModel, pod: Json, cores: float) -> None:
    metadata = pod["metadata"]
    profile = load.profile(metadata["namespace"], metadata["name"])
    load.set_profile(metadata["namespace"], metadata["name"], replace(profile, cpu_cores=max(0.01, profile.cpu_cores + cores)))
