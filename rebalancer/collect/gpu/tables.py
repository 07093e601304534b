"""Found devices and placed pods as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rebalancer.collect.gpu.placing import AskedPods, GpuPods, PlacedPods
from rebalancer.gpu.nodes.told import FoundDevice
from rebalancer.gpu.places.held import NodeView
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.devices import DeviceFault, DevicePods, Devices, Gpus
from rebalancer.state.gpu import GpuAsk


def device_table(views: Mapping[int, NodeView]) -> Devices:
    """In order of nodes. ``views``: by row of a node."""
    rows = sorted(views)
    found: list[FoundDevice] = [device for row in rows for device in views[row].devices]
    return Devices(
        node=np.repeat(np.array(rows, dtype=np.int64), [len(views[row].devices) for row in rows]),
        index=_ints([each.index for each in found]),
        uuids=tuple(each.uuid for each in found),
        parents=tuple(each.parent for each in found),
        instances=_ints([each.instance for each in found]),
        models=tuple(each.model for each in found),
        families=tuple(each.family for each in found),
        mig_profiles=tuple(each.mig_profile for each in found),
        memory_bytes=_floats([each.memory_bytes for each in found]),
        memory_exact=_bools([each.memory_exact for each in found]),
        handed_out_bytes=_floats([each.handed_out_bytes for each in found]),
        health=_ints([each.health for each in found]),
        cordoned=_bools([each.cordoned for each in found]),
        replicas=_floats([each.replicas for each in found]),
        schemes=tuple(each.scheme for each in found),
        sources=tuple(each.source for each in found),
        trusted=_bools([each.trusted for each in found]),
    )


def gpus_of(
    pods: GpuPods,
    asked: AskedPods,
    placed: PlacedPods,
    *,
    devices: Devices,
    views: Mapping[int, NodeView],
    faults: Sequence[DeviceFault],
) -> Gpus:
    """Pods that ask for nothing after all are left out."""
    numbers: dict[tuple[GpuAsk, ...], int] = {}
    row_of = _ints([numbers.setdefault(each.asks, len(numbers)) if each.asks else -1 for each in asked.asked])
    ask = row_of[asked.number]
    complete = _bools([each.complete for each in placed.placed])[placed.number]
    asking = ask >= 0
    return Gpus(
        asks=tuple(numbers),
        pod=pods.rows[asking],
        ask=ask[asking],
        addresses=tuple(pods.records[pod].address for pod in np.flatnonzero(asking).tolist()),
        devices=devices,
        held=_held(pods, placed, devices, views),
        unplaced=pods.rows[asking & pods.active & ~complete],
        faults=tuple(sorted(faults, key=lambda fault: (fault.node, fault.pod, fault.reason.value, fault.sentence))),
    )


def _held(pods: GpuPods, placed: PlacedPods, devices: Devices, views: Mapping[int, NodeView]) -> DevicePods:
    """What each distinct place holds, in a row, and each pod's part of that row."""
    parts = [part for each in placed.placed for part in each.held]
    count = _ints([len(each.held) for each in placed.placed])
    begin = np.cumsum(count) - count
    of_pod = count[placed.number]
    pod = np.repeat(np.arange(len(pods.rows)), of_pod)
    part = np.arange(int(of_pod.sum())) - np.repeat(np.cumsum(of_pod) - of_pod, of_pod) + begin[placed.number][pod]
    first = np.zeros(int(pods.node.max(initial=-1)) + 2, dtype=np.int64)  # the last is for none
    rows = [row for row in views if row < len(first) - 1]
    first[rows] = np.searchsorted(devices.node, rows)
    device = first[pods.node[pod]] + _ints([each.device for each in parts])[part]
    compute, share = _floats([each.compute for each in parts])[part], _floats([each.memory_share for each in parts])[part]
    memory = _floats([each.memory_bytes for each in parts])[part]
    row = pods.rows[pod]
    order = np.lexsort((row, device))
    return DevicePods(
        device=device[order],
        pod=row[order],
        compute=compute[order],
        memory_bytes=np.where(np.isnan(memory), share * devices.memory_bytes[device], memory)[order],
        exclusive=np.asarray((compute == 1.0) & (share == 1.0), dtype=np.bool_)[order],
        confidence=_ints([each.confidence for each in parts])[part][order],
    )


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _floats(values: Sequence[float]) -> FloatArray:
    return np.array(values, dtype=np.float64)


def _bools(values: Sequence[bool]) -> BoolArray:
    return np.array(values, dtype=np.bool_)
