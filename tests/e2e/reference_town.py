"""The reference population: that of config/scenarios/skewed.yaml, drawn by the fast-forward world from the seed, as objects of a cluster.

A slot is one replica position of one Deployment. Level and wave belong to the slot and not to the pod, as traffic does, so that what the
cluster is asked for is a function of time alone: the same for every contender, however many pods each one moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from rebalancer.simulate.forward.arranging import arrange
from rebalancer.simulate.forward.crops import Crop
from rebalancer.simulate.forward.demand import DemandPlan
from rebalancer.simulate.forward.fleet import CPU, MEMORY, make_crops, make_demand, make_ground
from rebalancer.simulate.forward.quantities import Times
from rebalancer.simulate.forward.scenario import Noise, ScenarioSpec, Wave
from rebalancer.simulate.forward.scenario_file import load_scenario
from rebalancer.simulate.forward.traces import TraceLibrary
from rebalancer.state.arrays import FloatArray, IntArray
from tests.e2e.api import Json
from tests.e2e.hollow import HollowNode
from tests.e2e.load import SYSTEM_CORES
from tests.e2e.objects import budget, deployment, pod_spec

SCENARIO = Path(__file__).parents[2] / "config" / "scenarios" / "skewed.yaml"
NODES, PODS, SEED = 60, 1100, 7
PERIOD_S = (450.0, 1800.0)
"""Of the waves: an eighth of the scenario's, as cycles of 15 seconds are an eighth of its 2 minutes."""
_MIB = 2**20


@dataclass(frozen=True)
class Town:
    """``waves``: what each slot wants over time; slots count through the Deployments, in their order."""

    seed: int
    nodes: tuple[HollowNode, ...]
    crops: tuple[Crop, ...]
    waves: DemandPlan

    @property
    def pods(self) -> int:
        return len(self.waves.base)

    @cached_property
    def slots(self) -> Mapping[tuple[str, str], range]:
        """(namespace, Deployment) -> its slots."""
        found, first = dict[tuple[str, str], range](), 0
        for crop in self.crops:
            found[crop.namespace, crop.name] = range(first, first + crop.replicas)
            first += crop.replicas
        return found

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(sorted({crop.namespace for crop in self.crops}))

    def cores(self, at: float) -> FloatArray:
        """(slots,): what each wants ``at`` seconds into the measured time."""
        waves = self.waves
        swing = waves.wave_share * np.sin(2 * np.pi * at / waves.wave_period_s + waves.wave_phase)
        return np.asarray(waves.base[:, CPU] * (1 + swing), dtype=np.float64)

    def memory(self) -> FloatArray:
        """(slots,): bytes, which do not change."""
        return np.asarray(self.waves.base[:, MEMORY], dtype=np.float64)

    def loads(self, placement: IntArray, at: float) -> FloatArray:
        """(nodes,): CPU wanted of each node, as a share of it, with the slots on the nodes of ``placement`` (rows of ``nodes``)."""
        wanted = SYSTEM_CORES + np.bincount(placement, weights=self.cores(at), minlength=len(self.nodes))
        return np.asarray(wanted / np.array([node.cpu for node in self.nodes]), dtype=np.float64)

    def manifests(self) -> Iterator[tuple[Json, Json]]:
        """Each Deployment, with the budget that lets it lack one pod."""
        for crop in self.crops:
            cores, size = crop.request.tolist()
            spec = pod_spec(cpu=f"{round(cores * 1000)}m", memory=f"{round(size / _MIB)}Mi")
            yield (
                deployment(crop.name, crop.namespace, spec, replicas=crop.replicas),
                budget(crop.name, crop.namespace, app=crop.name, maxUnavailable=1),
            )


def build_town(*, nodes: int = NODES, pods: int = PODS, seed: int = SEED) -> Town:
    """The same numbers give the same town."""
    spec = _spec(nodes=nodes, pods=pods)
    traces = TraceLibrary(None)
    crops = [replace(crop, namespace=f"e2e-{crop.namespace}") for crop in make_crops(spec, seed=seed, hours=1.0, traces=traces)]
    machines = spec.fleet[0]
    made = (
        HollowNode(
            name=f"node-{number:02d}",
            cpu=round(machines.cores),
            memory=f"{round(machines.memory / _MIB)}Mi",
            labels={"topology.kubernetes.io/zone": f"zone-{number % machines.zones}"},
        )
        for number in range(nodes)
    )
    return Town(seed=seed, nodes=tuple(made), crops=tuple(crops), waves=make_demand(spec, crops, seed=seed, traces=traces))


def arranged(town: Town) -> IntArray:
    """(slots,): node of each where the fast-forward world's scheduler puts it: a start that is the same in every run."""
    spec = _spec(nodes=len(town.nodes), pods=town.pods)
    return arrange(make_ground(spec, town.crops), seed=town.seed)


def _spec(*, nodes: int, pods: int) -> ScenarioSpec:
    """The scenario in this size, with waves that move within minutes, and without noise."""
    spec = load_scenario(SCENARIO).spec
    machines, workloads = spec.fleet[0], spec.workloads[0]
    wave = Wave(share=workloads.wave.share, period=Times(from_=PERIOD_S[0], to=PERIOD_S[1]))
    return spec.model_copy(
        update={
            "fleet": (machines.model_copy(update={"count": nodes, "system_cpu": SYSTEM_CORES}),),
            "workloads": (workloads.model_copy(update={"pods": pods, "wave": wave, "noise": Noise()}),),
        }
    )
