"""Who is on which device: what the gpushare extender, the device plugins and the kubelet decide and write down when a pod is bound.

- Whole devices and replicas: the kubelet picks, and says so in ``allocatedResourcesStatus`` once the pod runs. Of replicas it takes those
  of the device that has most of them left.
- Parts of memory (gpushare): the extender filters nodes by single devices, takes the fitting device with the least memory left, and writes
  annotations; the plugin confirms them when the pod starts. It counts what pods ask for, never what they use.

A device is taken the moment the pod is bound, so that two pods which are bound in one pass do not get the same; what is written follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.gpu.nodes import SHARED_MEMORY, WHOLE, Device, Sharing, devices_of
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import TERMINAL, is_terminating, phase
from rebalancer.simulate.world import Change, Key, World

INDEX, TOTAL, AMOUNT = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_POD"
ASSIGNED, ASSUMED = "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME"


@dataclass(frozen=True, slots=True)
class Ask:
    """Of one pod: units of a resource."""

    resource: str
    amount: int


@dataclass(frozen=True, slots=True)
class Part:
    """What a pod has of a device. ``device``: row of `DeviceAgent.devices`; ``ids``: what the kubelet calls it, by unit."""

    device: int
    amount: int
    ids: tuple[str, ...] = ()


def ask_of(pod: Json) -> Ask | None:
    """None for a pod that asks for no GPU. Limits only, as gpushare reads them."""
    for resource in (WHOLE, SHARED_MEMORY):
        limits = [(container.get("resources") or {}).get("limits") or {} for container in pod["spec"].get("containers") or ()]
        amount = sum(int(each.get(resource, 0)) for each in limits)
        if amount:
            return Ask(resource, amount)
    return None


class DeviceAgent:
    """Follows nodes and pods of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.devices: list[Device] = []
        self.parts: dict[str, tuple[Part, ...]] = {}
        """uid -> what the pod has, or had, of devices; of every pod that was ever given one."""
        self._of_node: dict[str, range] = {}
        self._taken: list[dict[str, Part]] = []
        self._unwritten: dict[Key, None] = {}
        with world.lock:
            for node in world.objects("nodes"):
                self._add(node)
            for pod in world.objects("pods"):
                self._see(pod)
            world.subscribe(self._note)

    def holders(self, device: int) -> list[str]:
        """uids of the pods that have something of it now."""
        return list(self._taken[device])

    # ---- following the world ------------------------------------------------------------------------------------------

    def _note(self, change: Change) -> None:
        if change.plural == "nodes" and change.type == "ADDED":
            self._add(change.value)
        elif change.plural == "pods" and self.devices:
            if change.type == "DELETED":
                self._release(change.value["metadata"]["uid"])
            else:
                self._see(change.value)

    def _add(self, node: Json) -> None:
        name, found = node["metadata"]["name"], devices_of(node)
        if found and name not in self._of_node:
            self._of_node[name] = range(len(self.devices), len(self.devices) + len(found))
            self.devices.extend(found)
            self._taken.extend({} for _ in found)

    def _see(self, pod: Json) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if node not in self._of_node:
            return
        if phase(pod) in TERMINAL:
            self._release(uid)
        elif uid in self.parts:
            if phase(pod) == "Running" and not is_terminating(pod):
                self._unwritten[pod["metadata"]["namespace"], pod["metadata"]["name"]] = None
        elif (ask := ask_of(pod)) is not None:
            parts = self._choose(node, ask)
            if parts:
                self.parts[uid] = parts
                for part in parts:
                    self._taken[part.device][uid] = part
                self._unwritten[pod["metadata"]["namespace"], pod["metadata"]["name"]] = None

    def _release(self, uid: str) -> None:
        for part in self.parts.get(uid, ()):
            self._taken[part.device].pop(uid, None)

    # ---- choosing -----------------------------------------------------------------------------------------------------

    def _free(self, device: int) -> int:
        """Units that nobody has: GiB where memory is shared, replicas or the device itself elsewhere."""
        own = self.devices[device]
        total = own.memory_mib // 1024 if own.sharing is Sharing.MEMORY else own.replicas
        return total - sum(part.amount for part in self._taken[device].values())

    def _choose(self, node: str, ask: Ask) -> tuple[Part, ...]:
        """Nothing where it does not fit: whoever bound the pod there did not ask."""
        rows = [row for row in self._of_node[node] if (self.devices[row].sharing is Sharing.MEMORY) == (ask.resource == SHARED_MEMORY)]
        if ask.resource == SHARED_MEMORY:
            fitting = [row for row in rows if self._free(row) >= ask.amount]
            return (Part(min(fitting, key=self._free), ask.amount),) if fitting else ()
        if sum(map(self._free, rows)) < ask.amount:
            return ()
        given = dict.fromkeys(rows, 0)
        for _ in range(ask.amount):
            given[max(rows, key=lambda row: self._free(row) - given[row])] += 1
        return tuple(Part(row, units, self._ids(row, units)) for row, units in given.items() if units)

    def _ids(self, device: int, units: int) -> tuple[str, ...]:
        own = self.devices[device]
        if own.sharing is Sharing.WHOLE:
            return (own.uuid,)
        used = {name for part in self._taken[device].values() for name in part.ids}
        free = [name for number in range(own.replicas) if (name := f"{own.uuid}::{number}") not in used]
        return tuple(free[:units])

    def filter(self, names: Sequence[str], pod: Json) -> NDArray[np.bool_]:
        """(nodes,) where the extender lets a pod go; everywhere for pods that are none of its business."""
        ask = ask_of(pod)
        if ask is None or ask.resource != SHARED_MEMORY:
            return np.ones(len(names), dtype=bool)
        return np.array([name in self._of_node and bool(self._choose(name, ask)) for name in names], dtype=bool)

    # ---- writing ------------------------------------------------------------------------------------------------------

    def react(self) -> bool:
        """Write what the newest pods were given."""
        if not self._unwritten:
            return False
        unwritten, self._unwritten = self._unwritten, {}
        before = self.world.version
        for namespace, name in unwritten:
            pod = self.world.find("pods", name, namespace)
            if pod is None or pod["metadata"]["uid"] not in self.parts:
                continue
            written = self._written(pod, self.parts[pod["metadata"]["uid"]])
            if written != pod:
                self.world.replace("pods", written)
        return self.world.version != before

    def next_due(self) -> float:
        return float("inf")

    def _written(self, pod: Json, parts: tuple[Part, ...]) -> Json:
        if self.devices[parts[0].device].sharing is Sharing.MEMORY:
            return self._annotated(pod, parts[0])
        statuses = pod.get("status", {}).get("containerStatuses") or ()
        if phase(pod) != "Running" or not statuses:
            return pod
        resources = [{"resourceID": name, "health": "Healthy"} for part in parts for name in part.ids]
        first = {**statuses[0], "allocatedResourcesStatus": [{"name": WHOLE, "resources": resources}]}
        return {**pod, "status": {**pod["status"], "containerStatuses": [first, *statuses[1:]]}}

    def _annotated(self, pod: Json, part: Part) -> Json:
        own, old = self.devices[part.device], pod["metadata"].get("annotations") or {}
        told = {
            INDEX: str(own.index),
            TOTAL: str(own.memory_mib // 1024),
            AMOUNT: str(part.amount),
            ASSIGNED: "true" if phase(pod) == "Running" else "false",
            ASSUMED: old.get(ASSUMED, f"{self.world.now * 1e9:.0f}"),
        }
        return {**pod, "metadata": {**pod["metadata"], "annotations": {**old, **told}}}
