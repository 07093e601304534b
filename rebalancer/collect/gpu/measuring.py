"""Readings of exporters onto the tables of devices and pods, and the signals that come of them: `gpu` and `gpu_memory` of nodes and pods.

A reading belongs to the device of its uuid, or to the one of its number on its node where the exporter tells no uuid. What belongs to none
is counted. Where two exporters measure one device, the first of the catalogue is believed, and of several series of one the highest: label
variants of one device carry one value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.collect.gpu.exporters import DeviceReading, GpuSamples
from rebalancer.collect.gpu.placing import GpuPods
from rebalancer.collect.samples import PodKey
from rebalancer.gpu.meters.catalogue import OF_PODS, Exporter, Quantity
from rebalancer.gpu.meters.devices import Beliefs, DeviceReadings, device_use
from rebalancer.gpu.meters.holders import PodReadings, held_use, nothing_told
from rebalancer.gpu.meters.labels import NO_POD
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.device_use import HeldUse
from rebalancer.state.devices import Devices, Gpus

GPU, GPU_MEMORY = "gpu", "gpu_memory"


@dataclass(frozen=True)
class _Rows:
    """Where the devices are, by all that exporters call them. Values: rows of `Devices`."""

    by_uuid: Mapping[tuple[str, int], int]
    by_index: Mapping[tuple[str, int, int, bool], int]
    """True last for devices that are named by nothing else: a reading with a uuid may mean those alone."""

    @classmethod
    def of(cls, devices: Devices, nodes: Sequence[str]) -> _Rows:
        by_uuid: dict[tuple[str, int], int] = {}
        by_index: dict[tuple[str, int, int, bool], int] = {}
        for row, (node, uuid, parent, instance, index) in enumerate(
            zip(devices.node.tolist(), devices.uuids, devices.parents, devices.instances.tolist(), devices.index.tolist(), strict=True)
        ):
            if uuid:
                by_uuid[uuid, -1] = row
            if parent and instance >= 0:
                by_uuid[parent, instance] = row
            if index >= 0:
                by_index[nodes[node], index, -1, False] = row
                if not uuid:
                    by_index[nodes[node], index, -1, True] = row
        return cls(by_uuid, by_index)

    def find(self, reading: DeviceReading) -> int:
        """-1 for a device that is not in the table."""
        name = reading.device
        row = self.by_uuid.get((name.uuid, name.instance), -1) if name.uuid else -1
        return row if row >= 0 else self.by_index.get((reading.node, name.index, name.instance, bool(name.uuid)), -1)


@dataclass(frozen=True, slots=True)
class GpuColumns:
    """(nodes,) and (pods,) of one signal; NaN unknown."""

    usage: FloatArray
    capacity: FloatArray
    """NaN on nodes without GPUs: they are out of the signal's scope."""
    history: FloatArray
    """(nodes, windows) in the signal's unit."""
    age_s: FloatArray
    measured: FloatArray
    estimated: BoolArray
    why: Mapping[int, str]
    """Row of a node -> why its usage is unknown, in words."""


@dataclass(frozen=True, slots=True)
class PodPlaces:
    """Of pods with GPUs, by their row in the table of all pods: key, and row of the node."""

    keys: Mapping[int, PodKey]
    nodes: Mapping[int, int]

    @classmethod
    def of(cls, pods: GpuPods) -> PodPlaces:
        rows = pods.rows.tolist()
        return cls(dict(zip(rows, pods.keys, strict=True)), dict(zip(rows, pods.node.tolist(), strict=True)))


def measured_gpus(gpus: Gpus, samples: GpuSamples, *, nodes: Sequence[str], pods: PodPlaces, beliefs: Beliefs) -> Gpus:
    """The tables with what was measured; as they are where no exporter was asked or none answered. ``nodes``: names by row."""
    if not samples.meters or not len(gpus.devices):
        return gpus
    devices, rows = gpus.devices, _Rows.of(gpus.devices, nodes)
    readings, told = _device_readings(devices, rows, samples), _pod_readings(gpus, rows, samples, pods)
    use = device_use(devices, readings, beliefs)
    return replace(gpus, use=use, held_use=held_use(gpus.held, use, told, alone=_alone(gpus, pods)))


def _device_readings(devices: Devices, rows: _Rows, samples: GpuSamples) -> DeviceReadings:
    now: dict[Quantity, FloatArray] = {}
    for meter in samples.meters:
        if meter.quantity in OF_PODS:
            continue
        found = _columns(len(devices), rows, _of_device(samples.readings.get(meter.name, ())))
        before = now.get(meter.quantity)
        now[meter.quantity] = found if before is None else np.where(np.isnan(before), found, before)
    _forget_partitions(devices, now, samples)
    return DeviceReadings(
        now=now,
        age_s=_columns(len(devices), rows, samples.ages, least=True),
        most_busy=_columns(len(devices), rows, samples.most_busy),
        most_engine=_columns(len(devices), rows, samples.most_engine),
    )


def _forget_partitions(devices: Devices, now: dict[Quantity, FloatArray], samples: GpuSamples) -> None:
    """Of a partitioned AMD GPU only the first partition tells activity; the zeros of the others are no idleness."""
    if not any(meter.exporter is Exporter.AMD for meter in samples.meters) or Quantity.BUSY not in now:
        return
    later = np.array([profile.startswith(("cpx", "dpx", "qpx")) for profile in devices.mig_profiles], dtype=np.bool_)
    later &= devices.instances > 0
    now[Quantity.BUSY] = np.where(later, np.nan, now[Quantity.BUSY])


def _of_device(readings: Sequence[DeviceReading]) -> Sequence[DeviceReading]:
    """Those that carry the device's own value: of a device with a series of its own beside those of virtual GPUs, only that."""
    own = {reading.device for reading in readings if not reading.virtual}
    return [reading for reading in readings if not reading.virtual or reading.device not in own]


def _columns(count: int, rows: _Rows, readings: Sequence[DeviceReading], *, least: bool = False) -> FloatArray:
    """(devices,) the highest reading of each, or the ``least``."""
    column = np.full(count, np.nan)
    if not readings:
        return column
    row = np.fromiter((rows.find(reading) for reading in readings), dtype=np.int64, count=len(readings))
    value = np.fromiter((reading.value for reading in readings), dtype=np.float64, count=len(readings))
    ours = row >= 0
    (np.fmin if least else np.fmax).at(column, row[ours], value[ours])
    return column


def _pod_readings(gpus: Gpus, rows: _Rows, samples: GpuSamples, pods: PodPlaces) -> PodReadings:
    pairs = {
        (device, pods.keys[pod]): row
        for row, (device, pod) in enumerate(zip(gpus.held.device.tolist(), gpus.held.pod.tolist(), strict=True))
    }
    told = nothing_told(len(pairs))
    busy, memory, kernel = told.busy.copy(), told.memory_bytes.copy(), told.kernel_age_s.copy()
    targets = {
        Quantity.BUSY: busy,
        Quantity.POD_BUSY: busy,
        Quantity.USED: memory,
        Quantity.POD_MEMORY: memory,
        Quantity.POD_KERNEL_AGE: kernel,
    }
    for meter in samples.meters:
        if meter.quantity not in targets:
            continue
        readings = samples.readings.get(meter.name, ())
        for reading in readings if meter.quantity in OF_PODS else _by_process(readings):
            pair = pairs.get((rows.find(reading), reading.pod), -1)
            if pair >= 0 and not np.isnan(reading.value):
                column = targets[meter.quantity]
                column[pair] = np.fmax(column[pair], reading.value)
    return PodReadings(busy=busy, memory_bytes=memory, kernel_age_s=kernel)


def _by_process(readings: Sequence[DeviceReading]) -> Sequence[DeviceReading]:
    """Series of virtual GPUs beside one of the device itself: these are the pods' own values. Without it they are copies."""
    own = {reading.device for reading in readings if not reading.virtual and reading.pod == NO_POD}
    return [reading for reading in readings if reading.virtual and reading.pod != NO_POD and reading.device in own]


def _alone(gpus: Gpus, pods: PodPlaces) -> BoolArray:
    """(pairs,) whether the pod is the only one that can be on the device: no other is known there, and none of its node is unplaced."""
    held, devices = gpus.held, gpus.devices
    count = np.bincount(held.device, minlength=len(devices))
    crowded = np.isin(devices.node, [pods.nodes[pod] for pod in gpus.unplaced.tolist()])
    return np.asarray((count[held.device] == 1) & ~crowded[held.device], dtype=np.bool_)


# ---- signals ----------------------------------------------------------------------------------------------------------------


def gpu_columns(
    gpus: Gpus, samples: GpuSamples, signal: str, *, names: Sequence[str], node: IntArray, windows: int, on_node: BoolArray
) -> GpuColumns:
    """Of ``signal``, which is `GPU` or `GPU_MEMORY`. ``node`` (pods,): rows; ``on_node`` (pods,): the pod uses its node."""
    devices, use, own = gpus.devices, gpus.use, gpus.held_use
    nodes = len(names)
    by_busy = signal == GPU
    value = (use.busy if by_busy else use.memory_bytes) if len(use) else np.full(len(devices), np.nan)
    total = np.where(np.isnan(use.total_bytes), devices.memory_bytes, use.total_bytes) if len(use) else devices.memory_bytes
    most = np.ones(len(devices)) if by_busy else total
    value = np.where(devices.trusted, value, np.nan)
    count = np.bincount(devices.node, minlength=nodes)
    usage = np.where(count > 0, np.bincount(devices.node, weights=value, minlength=nodes), np.nan)
    capacity = np.where(count > 0, np.bincount(devices.node, weights=most, minlength=nodes), np.nan)
    age = np.full(nodes, np.nan)
    if len(use):
        np.fmax.at(age, devices.node, use.age_s)
    measured, estimated = _of_pods(gpus, own, by_busy=by_busy, pods=len(node), on_node=on_node)
    return GpuColumns(
        usage=usage,
        capacity=capacity,
        history=_history(samples, signal, names=names, usage=usage, windows=windows),
        age_s=age,
        measured=measured,
        estimated=estimated,
        why=_why(gpus, value, samples, names=names, usage=usage),
    )


def _of_pods(gpus: Gpus, own: HeldUse, *, by_busy: bool, pods: int, on_node: BoolArray) -> tuple[FloatArray, BoolArray]:
    """A pod that asks for none uses none of it; one whose devices are not all known, or not all measured, is unknown."""
    held, total = gpus.held, np.where(on_node, 0.0, np.nan)
    total[gpus.pod] = np.nan
    value = (own.busy if by_busy else own.memory_bytes) if len(own) else np.full(len(held), np.nan)
    sums = np.bincount(held.pod, weights=value, minlength=pods)
    total[held.pod] = sums[held.pod]
    total[gpus.unplaced] = np.nan
    guessed = np.zeros(pods, dtype=np.bool_)
    if len(own):
        guessed[held.pod[own.estimated]] = True
    return total, guessed & ~np.isnan(total)


def _history(samples: GpuSamples, signal: str, *, names: Sequence[str], usage: FloatArray, windows: int) -> FloatArray:
    """The newest window is what is known of the devices themselves."""
    history = np.full((len(names), windows), np.nan)
    lines = samples.history.get(signal, {})
    for row in np.flatnonzero(~np.isnan(usage)).tolist():
        line = lines.get(names[row])
        if line is not None and len(line):
            kept = line[-windows:]
            history[row, windows - len(kept) :] = kept
    history[:, -1] = usage
    return history


def _why(gpus: Gpus, value: FloatArray, samples: GpuSamples, *, names: Sequence[str], usage: FloatArray) -> dict[int, str]:
    """For nodes with GPUs whose usage is unknown: the first of their devices that is."""
    why: dict[int, str] = {}
    devices = gpus.devices
    for device in np.flatnonzero(np.isnan(value)).tolist():
        row = int(devices.node[device])
        if row in why:
            continue
        name = f"GPU {devices.name(device)} of {names[row]}"
        if not devices.trusted[device]:
            why[row] = f"what is told of {name} does not go together"
        elif len(gpus.use) and gpus.use.doubts[device]:
            why[row] = f"{name} is not believed: {gpus.use.doubts[device]}"
        else:
            why[row] = samples.failed or f"no fresh sample measures {name}"
    return why
