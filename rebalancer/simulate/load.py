"""What pods really use: a demand for CPU and memory over time that has little to do with what they request.

A demand belongs to a slot of an owner (the third replica of a Deployment, say), not to a pod: the replacement of an evicted pod takes
over the free slot and with it the traffic. It is a base, times slow and fast waves whose phases come from the seed, times what
`LoadModel.scale` was told. Demand is a function of time, so usage at any moment of the past can be computed again; who was where is
remembered in the tenures. CPU is throttled where the demands of a node exceed its capacity, each pod by the same share.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import TERMINAL, controller_of, effective_request, is_terminating, phase
from rebalancer.simulate.world import Change, World
from rebalancer.units import parse_quantity, parse_time

Floats = NDArray[np.float64]
_FAST_PERIODS_S = (97.0, 331.0)
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Profile:
    """``swing``: share by which CPU moves with the day (period ``period_s``); ``noise``: share of the fast waves."""

    cpu_cores: float
    memory_bytes: float
    swing: float = 0.05
    noise: float = 0.03
    period_s: float = _DAY_S
    gpu_busy: float = 0.0
    """Share of the time of each device that the pod is on."""
    gpu_memory_bytes: float = 0.0
    """Of each device."""


@dataclass(frozen=True, slots=True)
class Tenures:
    """Every pod that ever ran, one row each, in order of appearance. ``node`` is a row of `LoadModel.node_names`."""

    uids: tuple[str, ...]
    namespaces: tuple[str, ...]
    names: tuple[str, ...]
    containers: tuple[str, ...]
    node: NDArray[np.int64]
    slot: NDArray[np.int64]
    start: Floats
    end: Floats
    """Infinity while the pod runs."""


@dataclass(frozen=True, slots=True)
class GpuDemand:
    """What each tenure wants of each of its devices; whether it is there, and whether there is as much, is for others."""

    busy: Floats
    memory_bytes: Floats


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage at one moment, by tenure and by node; cores and bytes."""

    pod_cpu: Floats
    pod_memory: Floats
    node_cpu: Floats
    node_memory: Floats


@dataclass(slots=True)
class _Slots:
    """The slots of one owner: the profile row of each, and the pod that holds it."""

    rows: list[int]
    holders: list[str | None]
    first_free: int = 0
    """No slot below it is free."""

    def next_free(self) -> int:
        """The lowest free slot, or one behind the last."""
        while self.first_free < len(self.holders) and self.holders[self.first_free] is not None:
            self.first_free += 1
        return self.first_free

    def free(self, uid: str) -> None:
        """The slot that the pod holds, if it holds one, is free again."""
        if uid in self.holders:
            index = self.holders.index(uid)
            self.holders[index] = None
            self.first_free = min(self.first_free, index)


class LoadModel:
    """Follows the pods of a world and says what they use. ``world.load`` is set to it."""

    def __init__(self, world: World, *, system_cores: float = 0.15, system_bytes: float = 1.2 * 2**30) -> None:
        self._world = world
        self._random = random.Random(world.seed + 77)  # noqa: S311 - repeatable, not unguessable
        self._system = (system_cores, system_bytes)
        self._profiles: list[Profile] = []
        self._phases: list[tuple[float, float, float]] = []
        self._slots: dict[str, _Slots] = {}
        self._slot_of: dict[str, int] = {}
        self._owner_of: dict[str, str] = {}
        self._rows: dict[str, int] = {}
        self._columns: tuple[list[str], list[str], list[str], list[str], list[int], list[int], list[float], list[float]]
        self._columns = ([], [], [], [], [], [], [], [])
        self._scalings: list[tuple[float, NDArray[np.int64], float]] = []
        self._cached: tuple[int, Tenures] | None = None
        self._demand_cache: tuple[int, Floats, Floats] | None = None
        self._edition = 0
        self.node_names: list[str] = []
        self.node_cores: list[float] = []
        self.node_bytes: list[float] = []
        self._node_row: dict[str, int] = {}
        with world.lock:
            for node in world.objects("nodes"):
                self._add_node(node)
            for pod in world.objects("pods"):
                self._see(pod)
            world.subscribe(self._note)
            world.load = self

    # ---- following the world ------------------------------------------------------------------------------------------

    def _note(self, change: Change) -> None:
        if change.plural == "nodes" and change.type == "ADDED":
            self._add_node(change.value)
        elif change.plural == "pods":
            if change.type == "DELETED":
                self._leave(change.value)
            else:
                self._see(change.value)

    def _add_node(self, node: Json) -> None:
        name = node["metadata"]["name"]
        if name in self._node_row:
            return
        capacity = node.get("status", {}).get("capacity") or node.get("status", {}).get("allocatable") or {}
        self._node_row[name] = len(self.node_names)
        self.node_names.append(name)
        self.node_cores.append(parse_quantity(str(capacity.get("cpu", "0"))))
        self.node_bytes.append(parse_quantity(str(capacity.get("memory", "0"))))

    def _see(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._slot_of and not is_terminating(pod):
            self._take_slot(pod)
        if is_terminating(pod):
            self._free_slot(uid)
        if phase(pod) == "Running" and uid not in self._rows and pod["spec"].get("nodeName") in self._node_row:
            self._arrive(pod)
        elif phase(pod) in TERMINAL:
            self._leave(pod)

    def _arrive(self, pod: Json) -> None:
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        if uid not in self._slot_of:
            self._take_slot(pod)
        started = pod.get("status", {}).get("startTime")
        start = parse_time(started) if started else self._world.now
        containers = pod["spec"].get("containers") or ()
        row = (
            uid,
            metadata["namespace"],
            metadata["name"],
            containers[0]["name"] if containers else "main",
            self._node_row[pod["spec"]["nodeName"]],
            self._slot_of[uid],
            start,
            float("inf"),
        )
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)  # type: ignore[attr-defined]
        self._rows[uid] = len(self._columns[0]) - 1
        self._edition += 1

    def _leave(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self._free_slot(uid)
        row = self._rows.get(uid)
        if row is not None and self._columns[7][row] == float("inf"):
            self._columns[7][row] = self._world.now
            self._edition += 1

    # ---- slots --------------------------------------------------------------------------------------------------------

    def _new_profile(self, profile: Profile) -> int:
        self._profiles.append(profile)
        turn = 2 * np.pi
        self._phases.append((self._random.uniform(0, turn), self._random.uniform(0, turn), self._random.uniform(0, turn)))
        return len(self._profiles) - 1

    def _guess(self, pod: Json) -> Profile:
        """A demand for a pod of which nothing is known: its request, give or take a half."""
        request = effective_request(pod)
        cores, size = request.get("cpu", 0.0) / 1000, request.get("memory", 0.0)
        share = self._random.uniform(0.3, 0.9)
        return Profile(max(0.01, cores * share), max(32 * 2.0**20, size * self._random.uniform(0.4, 0.9)))

    def _take_slot(self, pod: Json) -> None:
        uid, owner = pod["metadata"]["uid"], controller_of(pod)
        key = owner["uid"] if owner is not None else uid
        slots = self._slots.setdefault(key, _Slots([], []))
        ordinal = pod["metadata"]["name"].rsplit("-", 1)[-1]
        numbered = owner is not None and owner["kind"] == "StatefulSet" and ordinal.isdigit()
        index = int(ordinal) if numbered else slots.next_free()
        while len(slots.rows) <= index:
            slots.rows.append(self._new_profile(self._guess(pod)))
            slots.holders.append(None)
        slots.holders[index] = uid
        self._slot_of[uid] = slots.rows[index]
        self._owner_of[uid] = key

    def _free_slot(self, uid: str) -> None:
        slots = self._slots.get(self._owner_of.get(uid, ""))
        if slots is not None:
            slots.free(uid)

    def plan(self, owner: Json, profiles: Iterable[Profile]) -> None:
        """Say what the slots of an owner (or of a bare pod, by its own object) will use, before its pods exist."""
        slots = self._slots.setdefault(owner["metadata"]["uid"], _Slots([], []))
        for profile in profiles:
            slots.rows.append(self._new_profile(profile))
            slots.holders.append(None)

    def profile(self, namespace: str, name: str) -> Profile:
        """What the pod is made to use; raises NotFound."""
        return self._profiles[self._slot_of[self._world.get("pods", name, namespace)["metadata"]["uid"]]]

    def set_profile(self, namespace: str, name: str, profile: Profile) -> None:
        """Change what a pod's slot uses, for the past too: for scenarios, before the clock runs."""
        self._profiles[self._slot_of[self._world.get("pods", name, namespace)["metadata"]["uid"]]] = profile
        self._edition += 1

    def scale(self, pods: Iterable[tuple[str, str]], factor: float) -> None:
        """From now on the CPU demand of these pods' slots (namespace, name) is ``factor`` times what it was."""
        slots = [self._slot_of[self._world.get("pods", name, namespace)["metadata"]["uid"]] for namespace, name in pods]
        self._scalings.append((self._world.now, np.array(slots, dtype=np.int64), factor))

    # ---- usage --------------------------------------------------------------------------------------------------------

    @property
    def edition(self) -> int:
        """Changes whenever a pod arrives, leaves, or is given another profile."""
        return self._edition

    def tenures(self) -> Tenures:
        with self._world.lock:
            if self._cached is None or self._cached[0] != self._edition:
                uids, namespaces, names, containers, node, slot, start, end = self._columns
                table = Tenures(
                    tuple(uids),
                    tuple(namespaces),
                    tuple(names),
                    tuple(containers),
                    np.array(node, dtype=np.int64),
                    np.array(slot, dtype=np.int64),
                    np.array(start, dtype=np.float64),
                    np.array(end, dtype=np.float64),
                )
                self._cached = (self._edition, table)
            return self._cached[1]

    def _demands(self, slots: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """(tenures, 7) and (tenures, 3): the profile and the phases of each tenure."""
        if self._demand_cache is None or self._demand_cache[0] != self._edition:
            rows = [(p.cpu_cores, p.memory_bytes, p.swing, p.noise, p.period_s, p.gpu_busy, p.gpu_memory_bytes) for p in self._profiles]
            base = np.array(rows).reshape(-1, 7)
            self._demand_cache = (self._edition, base[slots], np.array(self._phases).reshape(-1, 3)[slots])
        return self._demand_cache[1], self._demand_cache[2]

    def usage(self, at: float, *, share: Floats | None = None) -> Usage:
        """Usage at a moment. ``share``: (tenures,) part of an interval around it that each pod was there; None: those there at ``at``."""
        tenures = self.tenures()
        if share is None:
            share = ((tenures.start <= at) & (at < tenures.end)).astype(np.float64)
        slots = tenures.slot
        base, phases = self._demands(slots)
        demand = base[:, 0] * _wave(base, phases, at) * share
        for since, rows, factor in self._scalings:
            if since <= at:
                demand = np.where(np.isin(slots, rows), demand * factor, demand)
        memory = base[:, 1] * _breath(phases, at) * share
        return self._on_nodes(tenures, demand, memory, at)

    def gpu_demand(self, at: float) -> GpuDemand:
        """What every tenure wants of each of its devices at a moment, there or not."""
        base, phases = self._demands(self.tenures().slot)
        return GpuDemand(busy=base[:, 5] * _wave(base, phases, at), memory_bytes=base[:, 6] * _breath(phases, at))

    def _on_nodes(self, tenures: Tenures, demand: Floats, memory: Floats, at: float) -> Usage:
        count = len(self.node_names)
        cores, size = np.array(self.node_cores), np.array(self.node_bytes)
        system_cpu = self._system[0] * (1 + 0.1 * np.sin(2 * np.pi * at / 611.0 + np.arange(count)))
        wanted = np.bincount(tenures.node, weights=demand, minlength=count)
        free = np.maximum(cores - system_cpu, 0.0)
        throttle = np.minimum(1.0, np.divide(free, wanted, out=np.ones(count), where=wanted > 0))
        pod_cpu = demand * throttle[tenures.node] if len(demand) else demand
        node_memory = np.minimum(size * 0.99, np.bincount(tenures.node, weights=memory, minlength=count) + self._system[1])
        return Usage(pod_cpu, memory, np.minimum(wanted * throttle + system_cpu, cores), node_memory)

    def node_loads(self, signal: str) -> Mapping[str, float]:
        """Node name -> the true load at this moment: usage over allocatable; ``signal`` is ``cpu`` or ``memory``."""
        if signal not in ("cpu", "memory"):
            raise ValueError(f"the simulated nodes have no signal {signal!r}; use cpu or memory")
        with self._world.lock:
            usage = self.usage(self._world.now)
            used = usage.node_cpu if signal == "cpu" else usage.node_memory
            loads: dict[str, float] = {}
            for node in self._world.objects("nodes"):
                name = node["metadata"]["name"]
                allocatable = parse_quantity(str(node["status"]["allocatable"][signal]))
                loads[name] = float(used[self._node_row[name]]) / allocatable
            return loads


def _wave(base: Floats, phases: Floats, at: float) -> Floats:
    """(tenures,) by how much a demand is above or below its base at a moment."""
    turn = 2 * np.pi * at
    wave = 1 + base[:, 2] * np.sin(turn / base[:, 4] + phases[:, 0])
    for column, period in enumerate(_FAST_PERIODS_S, start=1):
        wave += base[:, 3] / 2 * np.sin(turn / period + phases[:, column])
    return np.maximum(wave, 0.02)


def _breath(phases: Floats, at: float) -> Floats:
    """(tenures,) the same of memory, which hardly moves."""
    return 1 + 0.01 * np.sin(2 * np.pi * at / _FAST_PERIODS_S[1] + phases[:, 0])
