"""Small scenarios in a few words, and worlds made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rebalancer.policy.model import Metadata, RebalancePolicy
from rebalancer.runtime.simulating import scenario_setting
from rebalancer.simulate.forward.running import Contestant, Run, compare, lens_of
from rebalancer.simulate.forward.scenario import SimulationScenario
from rebalancer.simulate.forward.strategy import Actions, StrategyKind
from rebalancer.simulate.forward.tally import Tally
from rebalancer.simulate.forward.world import ForwardWorld, Setting
from rebalancer.state.cluster import ClusterState

POOLS = [{"name": "default", "signals": {"cpu": {"low": 40, "target": 55, "high": 65}, "memory": {"low": 50, "target": 80, "high": 90}}}]


def population(**fields: Any) -> dict[str, Any]:
    """Eighty pods of one core that use half of it, steadily."""
    return {"pods": 80, "replicas": {"from": 2, "to": 5}, "requests": [{"cpu": 1, "memory": "1Gi"}]} | fields


def scenario(*, workloads: list[dict[str, Any]] | None = None, policy: dict[str, Any] | None = None, **spec: Any) -> SimulationScenario:
    """Eight nodes of sixteen cores, by default with `population`."""
    given = {
        "seed": 3,
        "hours": 1,
        "fleet": [{"count": 8, "cores": 16, "memory": "64Gi", "zones": 2, "systemCpu": 0.2}],
        "workloads": workloads or [population()],
        "policy": {"mode": "evict", "pools": POOLS} | (policy or {}),
    }
    return SimulationScenario.model_validate({"spec": given | spec})


def policy_of(made: SimulationScenario) -> RebalancePolicy:
    return RebalancePolicy(metadata=Metadata(name=made.metadata.name), spec=made.spec.policy)


def setting(made: SimulationScenario, **options: Any) -> Setting:
    return scenario_setting(made, **options)


def world(made: SimulationScenario, *, warm_up_ticks: int = 80, hours: float = 24, traces: Path | None = None) -> ForwardWorld:
    """A world that has run long enough for every window to be whole."""
    ground = setting(made, traces=traces)
    spec = made.spec.policy
    tally = Tally(ground.high, ground.ground.nodes.capacity, ground.ground.start, hours * 3600)
    return ForwardWorld(ground, metrics=spec.metrics, lens=lens_of(spec), warm_up_ticks=warm_up_ticks, tally=tally)


def run(made: SimulationScenario, kind: StrategyKind, *, hours: float | None = None) -> Run:
    """One strategy in the scenario's world, under its policy."""
    (only,) = compare(setting(made, hours=hours), (Contestant(kind.name, kind, policy_of(made)),), hours=hours or made.spec.hours)
    return only


class Evicting:
    """Evicts the first Ready pod of a node, once, in the first cycle."""

    name = "evicting"

    def __init__(self, node: int = 0, count: int = 1) -> None:
        self._node, self._count = node, count

    def decide(self, state: ClusterState, memory: object) -> Actions:
        if memory:
            return Actions(memory=True)
        here = np.flatnonzero((state.pods.node == self._node) & state.pods.ready & ~state.pods.terminating)
        return Actions(evictions=tuple(here[: self._count].tolist()), memory=True)


def evicting(**options: int) -> StrategyKind:
    return StrategyKind("evicting", "Evicts a pod.", lambda policy: Evicting(**options))
