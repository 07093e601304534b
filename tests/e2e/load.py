"""What pods really use, and what that adds up to: the truth that the controller only learns through Prometheus.

A pod's demand is what its annotations say, or what the test last said of its ``app``, else a share of its request that follows from
its template, so that replicas and replacements of one workload behave alike. CPU is throttled where the demands of a node exceed it.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rebalancer.units import parse_quantity
from tests.e2e.api import Json

CPU = "e2e.rebalancer.dev/cpu"
MEMORY = "e2e.rebalancer.dev/memory"
SYSTEM_CORES = 0.05
SYSTEM_BYTES = 256 * 2**20
UNASKED_CORES = 0.05
UNASKED_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Usage:
    cpu_cores: float
    memory_bytes: float


@dataclass
class LoadModel:
    """``said``: (namespace, app) -> usage of each of its pods, whatever their annotations say; a test may change it at any time."""

    said: dict[tuple[str, str], Usage] = field(default_factory=dict)

    def starts(self, pod: Json) -> None:
        """A pod runs, or one that runs has changed; the ledger calls it, and `ends`, one at a time."""

    def ends(self, uid: str) -> None:
        """A pod uses nothing any more."""

    def demand(self, pod: Json) -> Usage:
        meta = pod["metadata"]
        labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
        said = self.said.get((meta["namespace"], labels.get("app", "")))
        if said is not None:
            return said
        template = f"{meta['namespace']}/{labels.get('app') or meta['name']}"
        share = 0.2 + 0.6 * (zlib.crc32(template.encode()) % 1000) / 1000
        return Usage(
            cpu_cores=float(parse_quantity(notes[CPU])) if CPU in notes else share * _asked(pod, "cpu", UNASKED_CORES),
            memory_bytes=float(parse_quantity(notes[MEMORY])) if MEMORY in notes else share * _asked(pod, "memory", UNASKED_BYTES),
        )


def _asked(pod: Json, resource: str, otherwise: float) -> float:
    amounts = [(each.get("resources") or {}).get("requests", {}).get(resource) for each in pod["spec"]["containers"]]
    return sum(float(parse_quantity(amount)) for amount in amounts if amount) or otherwise


@dataclass(frozen=True)
class Machine:
    """What a node has."""

    name: str
    address: str
    cores: int
    memory_bytes: float


@dataclass
class _Meter:
    pod: Json
    node: str
    cpu_seconds: float = 0.0
    usage: Usage = Usage(0.0, 0.0)


class Ledger:
    """Counters of pods and nodes that only grow. Threads may share it; each call first lets the time since the last one pass."""

    def __init__(self, machines: Iterable[Machine], load: LoadModel, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.machines: Mapping[str, Machine] = {machine.name: machine for machine in machines}
        self.load = load
        self._clock = clock
        self._at = clock()
        self._lock = threading.Lock()
        self._meters: dict[str, _Meter] = {}
        self._node_seconds = dict.fromkeys(self.machines, 0.0)
        self._wanted = dict.fromkeys(self.machines, 0.0)
        self._alive_s = 0.0

    def starts(self, pod: Json) -> None:
        with self._lock:
            self._advance()
            node = pod["spec"]["nodeName"]
            if node in self.machines:
                self._meters.setdefault(pod["metadata"]["uid"], _Meter(pod=pod, node=node)).pod = pod
                self.load.starts(pod)

    def ends(self, uid: str) -> None:
        with self._lock:
            self._advance()
            if self._meters.pop(uid, None) is not None:
                self.load.ends(uid)

    def read(self) -> Reading:
        with self._lock:
            self._advance()
            memory = dict.fromkeys(self.machines, float(SYSTEM_BYTES))
            cpu = dict.fromkeys(self.machines, SYSTEM_CORES)
            for meter in self._meters.values():
                memory[meter.node] += meter.usage.memory_bytes
                cpu[meter.node] += meter.usage.cpu_cores
            pods = tuple(PodReading(meter.pod, meter.node, meter.cpu_seconds, meter.usage) for meter in self._meters.values())
            wanted = {name: SYSTEM_CORES + cores for name, cores in self._wanted.items()}
            seconds = dict(self._node_seconds)
            return Reading(pods=pods, node_seconds=seconds, node_bytes=memory, node_cores=cpu, node_wanted=wanted, alive_s=self._alive_s)

    def _advance(self) -> None:
        now = self._clock()
        passed, self._at = now - self._at, now
        self._alive_s += passed
        wanted = dict.fromkeys(self.machines, 0.0)
        demands = {uid: self.load.demand(meter.pod) for uid, meter in self._meters.items()}
        for uid, meter in self._meters.items():
            wanted[meter.node] += demands[uid].cpu_cores
        share = {name: _share(machine.cores - SYSTEM_CORES, wanted[name]) for name, machine in self.machines.items()}
        for uid, meter in self._meters.items():
            cores = demands[uid].cpu_cores * share[meter.node]
            meter.usage = Usage(cores, demands[uid].memory_bytes)
            meter.cpu_seconds += cores * passed
        for name in self.machines:
            self._node_seconds[name] += (SYSTEM_CORES + wanted[name] * share[name]) * passed
        self._wanted = wanted


def _share(room: float, wanted: float) -> float:
    return 1.0 if wanted <= room else room / wanted


@dataclass(frozen=True)
class PodReading:
    pod: Json
    node: str
    cpu_seconds: float
    usage: Usage


@dataclass(frozen=True)
class Reading:
    """The counters at one moment; ``node_cores`` is what runs right now, ``node_wanted`` what would if no node were too small for it."""

    pods: tuple[PodReading, ...]
    node_seconds: Mapping[str, float]
    node_bytes: Mapping[str, float]
    node_cores: Mapping[str, float]
    node_wanted: Mapping[str, float]
    alive_s: float
