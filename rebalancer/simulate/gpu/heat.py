"""Makes GPUs hot and over-full: pods on some devices are given more to do, or more to hold, than whoever placed them could know."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from rebalancer.simulate.gpu.fleet import OVER_USER, GpuFleet
from rebalancer.simulate.gpu.nodes import RESERVED_MIB, Sharing
from rebalancer.simulate.gpu.use import MIB, DeviceUse
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.load import LoadModel
from rebalancer.simulate.pods import controller_of
from rebalancer.simulate.world import World

_TOO_MUCH = (1.03, 1.08)
"""Memory wanted of an over-full device, over what it has."""
_LEAST_SHARERS = 3
_MOST = 0.98
"""Share of a device's time that a pod can be made to work."""


class GpuHeat:
    """One application of a fleet's troubles to a world."""

    def __init__(self, world: World, load: LoadModel, use: DeviceUse, fleet: GpuFleet, seed: int) -> None:
        self._load, self._use, self._fleet = load, use, fleet
        self._rng = random.Random(seed * 6151 + 11)  # noqa: S311 - repeatable, not unguessable
        self._pods = {pod["metadata"]["uid"]: pod for pod in world.objects("pods")}
        self._spent: set[str] = set()
        """Nodes that have their trouble."""

    def apply(self) -> None:
        whole = self._nodes(Sharing.WHOLE)
        shared = [node for node in self._nodes(Sharing.MEMORY) if self._size(node) == 1]  # of several devices the fullest would end it
        self._heat([node for node in whole if self._reach(node) >= self._fleet.hot_load[0]], self._fleet.hot_whole)
        self._fill()
        self._heat([node for node in shared if len(self._on(node)) >= _LEAST_SHARERS], self._fleet.hot_shared)

    def _nodes(self, sharing: Sharing) -> list[str]:
        """Those whose devices are held by most pods first."""
        names = sorted({device.node for device in self._use.devices if device.sharing is sharing})
        return sorted(names, key=lambda name: (-len(self._on(name)), name))

    def _size(self, node: str) -> int:
        return sum(device.node == node for device in self._use.devices)

    def _on(self, node: str) -> list[Json]:
        """The pods on the devices of a node."""
        rows = [row for row, device in enumerate(self._use.devices) if device.node == node]
        return [pod for row in rows for pod in self._holders(row)]

    def _reach(self, node: str) -> float:
        """The load of a node of whole devices if its serving pods had all to do that they can do."""
        busy = [_MOST if _is_serving(pod) else self._load.profile(*_key(pod)).gpu_busy for pod in self._on(node)]
        return sum(busy) / self._size(node)

    def _heat(self, nodes: Sequence[str], count: int) -> None:
        """Let the serving pods of ``count`` nodes want what is missing to a load within the fleet's."""
        for node in [name for name in nodes if name not in self._spent][:count]:
            self._spent.add(node)
            pods, size = self._on(node), self._size(node)
            serving = [pod for pod in pods if _is_serving(pod)]
            others = sum(self._load.profile(*_key(pod)).gpu_busy for pod in pods if not _is_serving(pod))
            wanted = min(self._rng.uniform(*self._fleet.hot_load), self._reach(node)) * size - others
            own = sum(self._load.profile(*_key(pod)).gpu_busy for pod in serving)
            for pod in serving:
                profile = self._load.profile(*_key(pod))
                self._load.set_profile(*_key(pod), replace(profile, gpu_busy=profile.gpu_busy * wanted / own))

    def _fill(self) -> None:
        """Let more memory be wanted of some devices than they have: of each because of one pod that uses what it did not ask for. The first
        uses many times as much, the others what is missing."""
        devices, holders = self._use.devices, self._use.holders
        rows = [row for row, device in enumerate(devices) if device.sharing is Sharing.MEMORY and len(holders(row)) >= _LEAST_SHARERS]
        rows.sort(key=lambda row: (-self._size(devices[row].node), -len(holders(row)), devices[row].node))
        first = [row for row in rows if any(_workload(pod) == OVER_USER for pod in self._holders(row))][:1]
        for row in [*first, *(row for row in rows if row not in first)][: self._fleet.overfull]:
            self._spent.add(devices[row].node)
            pods = self._holders(row)
            wanted = (devices[row].memory_mib * self._rng.uniform(*_TOO_MUCH) - RESERVED_MIB) * MIB
            if row in first:
                abuser = next(pod for pod in pods if _workload(pod) == OVER_USER)
                pods.remove(abuser)
                self._hold(abuser, self._fleet.overuse_gib * 1024 * MIB)
                wanted -= self._fleet.overuse_gib * 1024 * MIB
                share = wanted / sum(map(self._held, pods))
                for pod in pods:
                    self._hold(pod, self._held(pod) * share)
            else:
                largest = max(pods, key=self._held)
                self._hold(largest, self._held(largest) + wanted - sum(map(self._held, pods)))

    def _held(self, pod: Json) -> float:
        return self._load.profile(*_key(pod)).gpu_memory_bytes

    def _hold(self, pod: Json, memory_bytes: float) -> None:
        self._load.set_profile(*_key(pod), replace(self._load.profile(*_key(pod)), gpu_memory_bytes=memory_bytes))

    def _holders(self, row: int) -> list[Json]:
        return [self._pods[uid] for uid in self._use.holders(row)]


def _key(pod: Json) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _is_serving(pod: Json) -> bool:
    return bool(pod["metadata"]["namespace"] == "serving")


def _workload(pod: Json) -> str:
    owner = controller_of(pod)
    return "" if owner is None else str(owner["name"]).rsplit("-", 1)[0]
