"""A fleet of GPU nodes filled from a trace: what it holds while pods come and go, on arrays, and the same as a cluster state.

Pods are placed as the stock scheduler and a best-fit device scheme would: of the nodes where CPU, memory and devices suffice the least
allocated one, of its devices the fitting one with least left. Parts and whole devices are asked for in one way, koordinator's.
"""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rebalancer.detect.gpus.fragmentation import Free, fragmentation_of, typical_pods
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gpu import Scheme
from rebalancer.state.tables import Phase
from tests.support.builder import NodeSpec, PodSpec, cluster, node, pod
from tests.support.gpus import fraction, gpu, whole

EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Ask:
    name: str
    cpu: float
    memory_mib: float
    devices: int
    share: float
    models: frozenset[str]


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    cpu: float
    memory_mib: float
    devices: int
    model: str


@dataclass(slots=True)
class Fleet:
    """``left``: (nodes, most devices) of each device, -1 where a node has none. ``places``: pod -> node and devices."""

    machines: list[Machine]
    asks: list[Ask]
    cpu: FloatArray
    memory: FloatArray
    left: FloatArray
    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        return sum(machine.devices for machine in self.machines)

    @property
    def free(self) -> float:
        return float(self.left[self.left > 0].sum())

    def room(self, ask: Ask) -> IntArray:
        """Nodes where it fits."""
        fits = (self.cpu >= ask.cpu - EPSILON) & (self.memory >= ask.memory_mib - EPSILON)
        if ask.devices:
            fits &= (self.left >= ask.share - EPSILON).sum(axis=1) >= ask.devices
        if ask.models:
            fits &= np.array([machine.model in ask.models for machine in self.machines])
        return np.flatnonzero(fits)

    def place(self, row: int, *, but: int = -1) -> bool:
        """Where the stock scheduler would, if anywhere."""
        nodes = self.room(self.asks[row])
        nodes = nodes[nodes != but]
        if not len(nodes):
            return False
        total_cpu = np.array([machine.cpu for machine in self.machines])[nodes]
        total_memory = np.array([machine.memory_mib for machine in self.machines])[nodes]
        self.put(row, int(nodes[np.argmax(self.cpu[nodes] / total_cpu + self.memory[nodes] / total_memory)]))
        return True

    def put(self, row: int, at: int) -> None:
        ask = self.asks[row]
        fitting = np.flatnonzero(self.left[at] >= ask.share - EPSILON) if ask.devices else np.zeros(0, dtype=np.int64)
        chosen = tuple(fitting[np.argsort(self.left[at][fitting], kind="stable")][: ask.devices].tolist())
        self._take(ask, at, chosen, sign=-1)
        self.places[row] = (at, chosen)

    def remove(self, row: int) -> None:
        at, chosen = self.places.pop(row)
        self._take(self.asks[row], at, chosen, sign=1)

    def _take(self, ask: Ask, at: int, chosen: tuple[int, ...], *, sign: int) -> None:
        self.cpu[at] += sign * ask.cpu
        self.memory[at] += sign * ask.memory_mib
        for device in chosen:
            self.left[at, device] += sign * ask.share

    def copy(self) -> Fleet:
        return Fleet(self.machines, self.asks, self.cpu.copy(), self.memory.copy(), self.left.copy(), dict(self.places))

    def state(self, waiting: list[int]) -> ClusterState:
        nodes = [_node(machine) for machine in self.machines]
        placed = [self._pod(row, at, chosen) for row, (at, chosen) in sorted(self.places.items())]
        return cluster(nodes=nodes, pods=[*placed, *(self._pod(row, -1, ()) for row in waiting)])

    def _pod(self, row: int, at: int, chosen: tuple[int, ...]) -> PodSpec:
        ask = self.asks[row]
        asked = whole(ask.devices, scheme=Scheme.KOORDINATOR, models=sorted(ask.models))
        if ask.share < 1:
            asked = fraction(ask.share, devices=ask.devices, scheme=Scheme.KOORDINATOR)
        return pod(
            ask.name,
            on=self.machines[at].name if at >= 0 else None,
            workload=ask.name,
            cpu=ask.cpu,
            memory=ask.memory_mib * 2**20,
            uses={"cpu": ask.cpu * 0.3, "memory": ask.memory_mib * 2**20 * 0.4},
            phase=Phase.RUNNING if at >= 0 else Phase.PENDING,
            gpu=asked if ask.devices else (),
            holds=dict.fromkeys(chosen, ask.share),
        )

    def measure(self) -> Measure:
        return Measure(self)


class Measure:
    """The measure of what is left, by the typical pods of the whole trace's mix on this fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._state = fleet.state([row for row in range(len(fleet.asks)) if row not in fleet.places])
        self._typical, _ = typical_pods(self._state)

    def of(self, cpu: FloatArray, left: FloatArray) -> FloatArray:
        """(nodes,) lost, in devices; 0 for nodes without."""
        found = fragmentation_of(self._state, Free(np.maximum(0.0, left[left > -1]), cpu), self._typical)
        return np.nan_to_num(found.nodes)


def _node(machine: Machine) -> NodeSpec:
    device = gpu("32Gi", model=machine.model, scheme=Scheme.KOORDINATOR, handed_out="32Gi", replicas=float("nan"))
    return node(machine.name, cpu=machine.cpu, memory=machine.memory_mib * 2**20, pods=500, gpus=[device] * machine.devices)


def read_fleet(traces: Path, *, nodes: int, seed: int) -> Fleet:
    """So many GPU nodes of the trace, empty, with its GPU pods in random order, some of them more than once if they are too few."""
    dice = random.Random(seed)
    with (traces / "openb_node_list_all_node.csv").open(encoding="utf-8") as file:
        machines = [
            Machine(row["sn"], int(row["cpu_milli"]) / 1000, float(row["memory_mib"]), int(row["gpu"]), row["model"])
            for row in csv.DictReader(file)
            if int(row["gpu"])
        ]
    with (traces / "openb_pod_list_default.csv").open(encoding="utf-8") as file:
        asks = [
            Ask(
                row["name"],
                int(row["cpu_milli"]) / 1000,
                float(row["memory_mib"]),
                int(row["num_gpu"]),
                int(row["gpu_milli"]) / 1000,
                frozenset(row["gpu_spec"].split("|")) if row["gpu_spec"] else frozenset(),
            )
            for row in csv.DictReader(file)
            if int(row["num_gpu"])
        ]
    dice.shuffle(asks)
    return empty_fleet(dice.sample(machines, min(nodes, len(machines))), asks)


def empty_fleet(machines: list[Machine], asks: list[Ask]) -> Fleet:
    left = np.full((len(machines), max(machine.devices for machine in machines)), -1.0)
    for row, machine in enumerate(machines):
        left[row, : machine.devices] = 1.0
    cpu = np.array([machine.cpu for machine in machines])
    memory = np.array([machine.memory_mib for machine in machines])
    return Fleet(machines, asks, cpu, memory, left)


def fill(fleet: Fleet, *, allocated: float, most_waiting: int) -> list[int]:
    """Place pods in order until so much of the GPUs is given away, or so many wait; those that wait."""
    waiting = []
    for row in range(len(fleet.asks)):
        if fleet.free <= (1 - allocated) * fleet.devices or len(waiting) == most_waiting:
            break
        if not fleet.place(row):
            waiting.append(row)
    return waiting
