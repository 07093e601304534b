"""The workloads of a scenario, one by one: those that are there at the start, and those that arrive later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rebalancer.errors import ScenarioError
from rebalancer.simulate.forward.drawing import Drawn, draw
from rebalancer.simulate.forward.happenings import moments
from rebalancer.simulate.forward.quantities import Whole
from rebalancer.simulate.forward.scenario import Population, ScenarioSpec
from rebalancer.simulate.forward.traces import TraceLibrary
from rebalancer.state.arrays import FloatArray
from rebalancer.units import format_bytes

_AGES_S = (32 * 3600.0, 96 * 3600.0)
"""How old the pods are that are there at the start: older than anybody looks back, which is a day and some hours."""


@dataclass(frozen=True, slots=True)
class Crop:
    """One workload. ``level`` (pods, 2): cores and bytes that each of its pods uses on average; ``born_at`` (pods,)."""

    population: Population
    name: str
    namespace: str
    request: FloatArray
    level: FloatArray
    born_at: FloatArray
    arrives_at: float | None = None
    """None for those that are there at the start."""
    leaves_at: float = float("inf")

    @property
    def replicas(self) -> int:
        return len(self.level)


def grow(spec: ScenarioSpec, *, start: float, hours: float, traces: TraceLibrary, fleet: np.random.Generator) -> list[Crop]:
    """Raises ScenarioError when the pods ask for more than the fleet has, or cannot be brought to the average load."""
    found: list[Crop] = []
    for population in spec.workloads:
        drawn = draw(population, fleet=spec.fleet, traces=traces, rng=fleet)
        found.extend(_crops(population, drawn, first=len(found), start=start, rng=fleet))
    _check_room(spec, found)
    factor = _factor(spec, found)
    arriving = list(_arriving(spec, start=start, hours=hours, traces=traces, rng=fleet, first=len(found)))
    for crop in (*found, *arriving):
        crop.level[:, 0] *= factor
    return [*found, *arriving]


def _crops(population: Population, drawn: Drawn, *, first: int, start: float, rng: np.random.Generator) -> Iterator[Crop]:
    begins = np.concatenate(([0], np.cumsum(drawn.replicas)))
    for number, replicas in enumerate(drawn.replicas.tolist()):
        yield Crop(
            population=population,
            name=f"{population.name}-{first + number:03d}",
            namespace=f"team-{int(rng.integers(population.namespaces)):02d}",
            request=drawn.request[number],
            level=drawn.level[begins[number] : begins[number + 1]].copy(),
            born_at=start - rng.uniform(*_AGES_S, replicas),
        )


def _arriving(
    spec: ScenarioSpec, *, start: float, hours: float, traces: TraceLibrary, rng: np.random.Generator, first: int
) -> Iterator[Crop]:
    for number, at in enumerate(moments(rng, per_day=spec.arrivals.per_day, start=start, seconds=hours * 3600)):
        like = spec.workloads[int(rng.integers(len(spec.workloads)))]
        count = int(rng.integers(like.replicas.from_, like.replicas.to, endpoint=True))
        one = like.model_copy(update={"pods": count, "replicas": Whole(from_=count, to=count)})
        drawn = draw(one, fleet=spec.fleet, traces=traces, rng=rng)
        lasts = float(rng.uniform(spec.arrivals.lasts.from_, spec.arrivals.lasts.to))
        yield Crop(
            population=like,
            name=f"{like.name}-{first + number:03d}",
            namespace=f"team-{int(rng.integers(like.namespaces)):02d}",
            request=drawn.request[0],
            level=drawn.level.copy(),
            born_at=np.full(count, at),
            arrives_at=at,
            leaves_at=at + lasts,
        )


def _check_room(spec: ScenarioSpec, crops: list[Crop]) -> None:
    asked = sum((crop.request * crop.replicas for crop in crops), np.zeros(2))
    cores = sum(machines.count * machines.cores for machines in spec.fleet)
    memory = sum(machines.count * machines.memory for machines in spec.fleet)
    remedy = "lower the pods or their requests, or add nodes"
    if asked[0] > cores:
        raise ScenarioError(f"spec.workloads: the pods request {asked[0]:,.0f} cores, the fleet has {cores:,.0f}", remedy=remedy)
    if asked[1] > memory:
        raise ScenarioError(
            f"spec.workloads: the pods request {format_bytes(float(asked[1]))}, the fleet has {format_bytes(memory)}", remedy=remedy
        )


def _factor(spec: ScenarioSpec, crops: list[Crop]) -> float:
    """What every level of CPU is multiplied with, so that the fleet has the average load that is wished for."""
    if spec.average_load is None:
        return 1.0
    cores = sum(machines.count * machines.cores for machines in spec.fleet)
    system = sum(machines.count * machines.system_cpu for machines in spec.fleet)
    used = sum(float(crop.level[:, 0].sum()) for crop in crops)
    wanted = spec.average_load / 100 * cores - system
    if wanted <= 0 or used <= 0:
        raise ScenarioError(
            f"spec.averageLoad: {spec.average_load:g} % of the fleet are {spec.average_load / 100 * cores:,.1f} cores, and the machines "
            f"themselves use {system:,.1f}",
            remedy="raise averageLoad, or lower systemCpu",
        )
    return wanted / used
