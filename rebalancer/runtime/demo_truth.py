"""What is true of the world of a demonstration, by the marks of its policy: now, and at any time since the start.

The controller knows the world through Prometheus, and late; this looks at the world itself. Of memory of GPUs it counts what is wanted,
which an exporter cannot see once a device is full.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from rebalancer.policy.model import RebalancePolicy
from rebalancer.report.demo import DemoState
from rebalancer.simulate.gpu.fleet import GANG_SIZE, POD_GROUP
from rebalancer.simulate.gpu.use import DeviceUse
from rebalancer.simulate.pods import is_active, phase
from rebalancer.simulate.world import World


class Truth:
    """``look`` from time to time; what happened in between is not seen."""

    def __init__(self, world: World, policy: RebalancePolicy) -> None:
        self._world = world
        self._marks = {name: marks for pool in policy.spec.pools for name, marks in pool.signals.items()}
        self._gpus: DeviceUse | None = world.gpus if world.gpus is not None and world.gpus.devices else None
        self.worst_load = 0.0
        """The highest load of any node so far."""
        self.overfilled: set[tuple[str, int]] = set()
        """Devices that were not over-full, and became so."""
        self.broken: set[str] = set()
        """Gangs that were ever short of members."""
        self._full = self._overfull()
        self._gangs: dict[str, int] = {}
        self.look()

    def look(self) -> None:
        self.worst_load = max(self.worst_load, self.state().max_load or 0.0)
        full = self._overfull()
        self.overfilled |= full - self._full
        self._full = full
        self.broken |= self._short()

    def state(self) -> DemoState:
        hot: set[str] = set()
        hot_gpus: set[str] = set()
        worst, spreads = 0.0, []
        for signal, marks in self._marks.items():
            loads = self._world.node_loads(signal)
            values = np.array(list(loads.values()))
            over = {name for name, load in loads.items() if load > marks.high / 100}
            hot |= over
            if signal in DeviceUse.signals:
                hot_gpus |= over
            worst = max(worst, float(values.max()))
            spreads.append(float(values.std()))
        state = DemoState(hot_nodes=len(hot), max_load=round(worst, 6), stddev=round(max(spreads), 6))
        if self._gpus is None:
            return state
        memory = max(self._gpus.device_memory(self._world.now).values())
        return msgspec.structs.replace(
            state,
            gpu_hot_nodes=len(hot_gpus),
            overfull_devices=len(self._overfull()),
            worst_device_memory=round(memory, 6),
            gangs_broken=len(self._short()),
        )

    @property
    def devices(self) -> int:
        return 0 if self._gpus is None else len(self._gpus.devices)

    def _overfull(self) -> set[tuple[str, int]]:
        """Devices of which more memory is wanted than they have."""
        if self._gpus is None:
            return set()
        return {device for device, share in self._gpus.device_memory(self._world.now).items() if share > 1.0}

    def _short(self) -> set[str]:
        """Gangs with fewer running members than they need, also those of which nothing is left."""
        running: Counter[str] = Counter()
        for pod in self._world.objects("pods"):
            labels = pod["metadata"].get("labels") or {}
            if POD_GROUP in labels:
                name = f"{pod['metadata']['namespace']}/{labels[POD_GROUP]}"
                self._gangs[name] = int(labels.get(GANG_SIZE, "1"))
                running[name] += is_active(pod) and phase(pod) == "Running"
        return {name for name, size in self._gangs.items() if running[name] < size}
