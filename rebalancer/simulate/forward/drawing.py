"""Drawing a population: replica numbers, requests and levels of use, from the distributions that a scenario names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.errors import ScenarioError
from rebalancer.simulate.forward.quantities import LogNormal, Times
from rebalancer.simulate.forward.scenario import Machines, Population
from rebalancer.simulate.forward.traces import TraceLibrary
from rebalancer.state.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Drawn:
    """One population: ``replicas`` (workloads,), ``of`` (pods,) workload of each pod, ``request`` (workloads, 2) cores and bytes."""

    replicas: IntArray
    of: IntArray
    request: FloatArray
    level: FloatArray
    """(pods, 2): cores and bytes that each pod uses on average."""


def draw(population: Population, *, fleet: Sequence[Machines], traces: TraceLibrary, rng: np.random.Generator) -> Drawn:
    """Raises ScenarioError for a trace that cannot be read."""
    replicas = _replicas(population, rng)
    of = np.repeat(np.arange(len(replicas)), replicas)
    request = _requests(population, len(replicas), fleet=fleet, traces=traces, rng=rng)
    shares = np.stack([log_normal(spread, of, rng) for spread in (population.use.cpu, population.use.memory)], axis=1)
    return Drawn(replicas, of, request, shares * request[of])


def _replicas(population: Population, rng: np.random.Generator) -> IntArray:
    """Numbers between the bounds that add up to the pods; the last workload gets what is left."""
    found: list[int] = []
    left = population.pods
    while left > 0:
        number = min(left, int(rng.integers(population.replicas.from_, population.replicas.to, endpoint=True)))
        if 0 < left - number < population.replicas.from_:
            number = left if left <= population.replicas.to else left - population.replicas.from_
        found.append(number)
        left -= number
    return np.array(found, dtype=np.int64)


def _requests(
    population: Population, workloads: int, *, fleet: Sequence[Machines], traces: TraceLibrary, rng: np.random.Generator
) -> FloatArray:
    if population.requests_from is not None:
        asked = traces.requests(population.requests_from)
        shapes = np.stack((asked.cores, asked.memory), axis=1)
        fits = np.zeros(len(shapes), dtype=np.bool_)
        for machines in fleet:
            fits |= (shapes[:, 0] <= machines.cores) & (shapes[:, 1] <= machines.memory)
        shapes = shapes[fits]
        if not len(shapes):
            raise ScenarioError(f"no pod of trace {population.requests_from.path} fits on a node of the fleet", remedy="add larger nodes")
        return np.asarray(shapes[rng.integers(len(shapes), size=workloads)], dtype=np.float64)
    weights = np.array([shape.share for shape in population.requests])
    shapes = np.array([(shape.cpu, shape.memory) for shape in population.requests])
    return np.asarray(shapes[rng.choice(len(shapes), size=workloads, p=weights / weights.sum())], dtype=np.float64)


def log_normal(spread: LogNormal, of: IntArray, rng: np.random.Generator) -> FloatArray:
    """(pods,): shares of the request; ``alike`` of the variance is drawn once a workload."""
    common = rng.standard_normal(int(of.max(initial=-1)) + 1)[of]
    own = rng.standard_normal(len(of))
    normal = np.sqrt(spread.alike) * common + np.sqrt(1 - spread.alike) * own
    return np.asarray(np.minimum(spread.median * np.exp(spread.sigma * normal), spread.most), dtype=np.float64)


def between(times: Times, count: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(rng.uniform(times.from_, times.to, count), dtype=np.float64)
