"""What pods really do with the devices that they are on: a demand for compute and memory of each, which the device can meet or not.

Pods that share a busy device each get the same part of what they want. Memory cannot be stretched: what is wanted beyond the device's
is where programs fail with out-of-memory, so measurements end at what the device has, and the truth of the world (`wanted_mib`) does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.gpu.handing_out import DeviceAgent
from rebalancer.simulate.gpu.nodes import RESERVED_MIB, Device
from rebalancer.simulate.load import Floats, LoadModel

MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every pod (tenure) with every device that it has or had."""

    tenure: NDArray[np.int64]
    device: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GpuUse:
    """At one moment. Busy: shares of a device's time; memory: MiB. A pair whose pod is not there uses nothing."""

    there: NDArray[np.bool_]
    """(pairs,)"""
    pair_busy: Floats
    pair_mib: Floats
    busy: Floats
    """(devices,)"""
    used_mib: Floats
    """(devices,) without what the driver keeps."""
    wanted_mib: Floats
    """(devices,) what would be used of memory if there were no end of it, what the driver keeps included."""


class DeviceUse:
    """The use of all devices of a world, at any moment of its past. ``world.gpus`` is set to it."""

    signals = ("gpu", "gpu_memory")

    def __init__(self, agent: DeviceAgent, load: LoadModel) -> None:
        self._agent, self._load = agent, load
        self._cached: tuple[int, int, Pairs] | None = None
        agent.world.gpus = self

    @property
    def devices(self) -> Sequence[Device]:
        return self._agent.devices

    @property
    def edition(self) -> tuple[int, int]:
        """Changes whenever a pod arrives, leaves, is given a device or another profile."""
        return self._load.edition, len(self._agent.parts)

    def holders(self, device: int) -> Sequence[str]:
        """uids of the pods that are on it now."""
        return self._agent.holders(device)

    def pairs(self) -> Pairs:
        tenures, key = self._load.tenures(), self.edition
        if self._cached is None or self._cached[:2] != key:
            found = [(row, part.device) for row, uid in enumerate(tenures.uids) for part in self._agent.parts.get(uid, ())]
            table = np.array(found, dtype=np.int64).reshape(-1, 2)
            self._cached = (*key, Pairs(table[:, 0], table[:, 1]))
        return self._cached[2]

    def at(self, moment: float) -> GpuUse:
        pairs, tenures, count = self.pairs(), self._load.tenures(), len(self.devices)
        demand = self._load.gpu_demand(moment)
        there = (tenures.start[pairs.tenure] <= moment) & (moment < tenures.end[pairs.tenure])
        busy, memory = demand.busy[pairs.tenure] * there, demand.memory_bytes[pairs.tenure] * there / MIB
        usable = np.array([device.usable_mib for device in self.devices], dtype=np.float64)
        all_busy, all_memory = (np.bincount(pairs.device, weights=values, minlength=count) for values in (busy, memory))
        got = np.minimum(1.0, np.divide(1.0, all_busy, out=np.ones(count), where=all_busy > 0))
        fits = np.minimum(1.0, np.divide(usable, all_memory, out=np.ones(count), where=all_memory > 0))
        return GpuUse(
            there=there,
            pair_busy=busy * got[pairs.device],
            pair_mib=memory * fits[pairs.device],
            busy=np.asarray(all_busy * got, dtype=np.float64),
            used_mib=np.asarray(all_memory * fits, dtype=np.float64),
            wanted_mib=np.asarray(all_memory + RESERVED_MIB, dtype=np.float64),
        )

    def node_loads(self, signal: str, moment: float) -> Mapping[str, float]:
        """Node with GPUs -> the true load of ``gpu`` or ``gpu_memory`` over its devices; memory is what is wanted, so it may exceed 1."""
        use = self.at(moment)
        used: dict[str, float] = {}
        most: dict[str, float] = {}
        for device, busy, wanted in zip(self.devices, use.busy.tolist(), use.wanted_mib.tolist(), strict=True):
            used[device.node] = used.get(device.node, 0.0) + (busy if signal == "gpu" else wanted)
            most[device.node] = most.get(device.node, 0.0) + (1.0 if signal == "gpu" else device.memory_mib)
        return {node: value / most[node] for node, value in used.items()}

    def device_memory(self, moment: float) -> Mapping[tuple[str, int], float]:
        """(node, index) -> memory wanted of the device over what it has; above 1 programs fail on it."""
        wanted = self.at(moment).wanted_mib.tolist()
        return {(device.node, device.index): value / device.memory_mib for device, value in zip(self.devices, wanted, strict=True)}
