"""Scenarios: how large a world is, how hot, how awkward; and the world that comes of it.

The default is the demonstration's: sixty nodes that the scheduler filled evenly by request, a handful of them hot because what runs
there uses several times what it asked for, and everything in between that makes evictions delicate.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rebalancer.simulate.budgets import BudgetController
from rebalancer.simulate.controllers import OwnerControllers
from rebalancer.simulate.gpu.fleet import GpuFleet
from rebalancer.simulate.gpu.handing_out import DeviceAgent
from rebalancer.simulate.gpu.heat import GpuHeat
from rebalancer.simulate.gpu.use import DeviceUse
from rebalancer.simulate.heat import heat
from rebalancer.simulate.kubelet import Kubelet
from rebalancer.simulate.load import LoadModel
from rebalancer.simulate.population import Population
from rebalancer.simulate.scheduler import Scheduler
from rebalancer.simulate.world import START, World


@dataclass(frozen=True, slots=True)
class Scenario:
    """``hot_nodes`` nodes get a CPU load within ``hot_load`` from a few movable pods each; the others are left as the workloads are.

    ``scheduled`` False spreads the pods by turns instead of asking the scheduler, for worlds of many thousands of pods.
    """

    seed: int = 7
    nodes: int = 60
    pods: int = 1100
    """About how many, DaemonSet pods included."""
    zones: int = 3
    node_cores: int = 16
    node_gib: int = 64
    hot_nodes: int = 7
    hot_load: tuple[float, float] = (0.76, 0.93)
    heavy_pods: int = 3
    """Movable pods that carry most of the heat of a hot node."""
    budgets: bool = True
    awkward: bool = True
    """Opt-outs, blocking budgets, single replicas, bare pods, Jobs, volumes, anti-affinity and spread."""
    scheduled: bool = True
    managed_fields: bool = False
    """Pods carry managedFields as those of a real cluster do: about 4 kB each, which a reader has to skip."""
    gpus: GpuFleet | None = None
    """Nodes with GPUs beside the others; only in a world that is ``scheduled``."""
    now: float = START


def gpu_scenario(seed: int) -> Scenario:
    """The demonstration's with GPUs: fewer nodes without, so that the others are not lost among them."""
    return Scenario(seed=seed, nodes=24, pods=420, hot_nodes=3, gpus=GpuFleet())


def build_world(scenario: Scenario | None = None) -> World:
    """The world of a scenario, settled and with its agents: owners, scheduler, kubelets, disruption controller, load."""
    scenario = scenario or Scenario()
    with _collector_paused():
        population = Population(scenario)
        world = population.world
        if scenario.scheduled:
            load = _inhabited(world)
            population.live_through(load)
        else:
            population.place_by_turns()
            load = _inhabited(world)
        heat(world, load, scenario)
        if scenario.gpus is not None and world.gpus is not None:
            GpuHeat(world, load, world.gpus, scenario.gpus, scenario.seed).apply()
        world.forget_changes()
    return world


def _inhabited(world: World) -> LoadModel:
    """Its agents, settled, and what its pods use."""
    devices = DeviceAgent(world)
    world.agents.extend((OwnerControllers(world), Scheduler(world, extenders=(devices,)), Kubelet(world), devices, BudgetController(world)))
    world.settle()
    load = LoadModel(world)
    DeviceUse(devices, load)
    return load


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic garbage is made while millions of dictionaries are, and looking for it again and again doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def bare_world(*, seed: int = 0, now: float = START) -> World:
    """An empty world with its agents, for tests that put their own objects in."""
    world = World(seed=seed, now=now)
    _inhabited(world)
    return world
