"""What changes while a plan grows: what is allocated of each device, what the plan has booked, and what is unknown of each node.

Bookings are kept three times, because nobody knows which device a pod will get. *Likely*: on the device that the scheme would take next,
for what it would do after that. *Held*: on every device that it could take, for what can still be promised. *Reserved*: bytes on every such
device that the pod may really use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from rebalancer.plan.gpu.needs import Need, Needs
from rebalancer.plan.gpu.table import DeviceTable, units_of
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

Saved = tuple[slice, int, tuple[tuple[str, object], ...]]
"""Rows of devices, row of a node, and what the columns held there."""


@dataclass(slots=True)
class Columns:
    holders: IntArray
    """(devices,) pods that are known to be on it."""
    alone: IntArray
    """(devices,) those of them that hold all of it."""
    units: FloatArray
    """(devices,) units of its resource, of as many as it has replicas; where it is not known how many a pod has, one."""
    compute: FloatArray
    """(devices,) share of its compute; a pod without a limit counts 0."""
    memory: FloatArray
    """(devices,) bytes, as far as they are known."""
    unknown: IntArray
    """(devices,) pods of which it is not known how much of its memory they were given."""
    used: FloatArray
    """(devices,) bytes that are measured to be used; NaN unknown."""
    likely_holders: IntArray
    likely_compute: FloatArray
    likely_memory: FloatArray
    held_compute: FloatArray
    held_memory: FloatArray
    reserved: FloatArray
    hidden_devices: FloatArray
    """(nodes,) whole devices that pods hold of which it is not known where they are."""
    hidden_compute: FloatArray
    """(nodes,) what such pods have of some device each, together."""
    hidden_memory: FloatArray
    """(nodes,) the same in bytes; NaN unknown."""
    taken: FloatArray
    """(nodes,) devices that bookings take alone."""
    begun: FloatArray
    """(nodes,) devices with nobody on them where bookings may be the first."""
    booked: IntArray
    """(nodes,) bookings of pods that ask for devices."""
    closed: BoolArray
    """(nodes,) nothing more can be promised: a booking counts on a certain device, or its devices are not known."""

    def copy(self) -> Columns:
        return Columns(*(getattr(self, each.name).copy() for each in fields(self)))

    def save(self, rows: slice, node: int) -> Saved:
        """What the columns hold of a node and of its devices."""
        return rows, node, tuple((name, getattr(self, name)[node if name in _OF_NODES else rows].copy()) for name in _NAMES)

    def restore(self, saved: Saved) -> None:
        rows, node, values = saved
        for name, value in values:
            getattr(self, name)[node if name in _OF_NODES else rows] = value


_NAMES = tuple(each.name for each in fields(Columns))
_OF_NODES = frozenset(("hidden_devices", "hidden_compute", "hidden_memory", "taken", "begun", "booked", "closed"))


def columns_of(table: DeviceTable, needs: Sequence[Needs]) -> Columns:
    """``needs``: by row of ``gpus.asks``."""
    held, size, nodes = table.gpus.held, len(table.devices), len(table.state.nodes.names)
    device = held.device

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(device, weights=values, minlength=size).astype(np.float64)

    def nothing() -> FloatArray:
        return np.zeros(size)

    found = Columns(
        holders=np.bincount(device, minlength=size).astype(np.int64),
        alone=np.bincount(device[held.exclusive], minlength=size).astype(np.int64),
        units=total(units_of(table, np.arange(len(held)))),
        compute=total(np.nan_to_num(held.compute)),
        memory=total(np.nan_to_num(held.memory_bytes)),
        unknown=np.bincount(device[np.isnan(held.memory_bytes)], minlength=size).astype(np.int64),
        used=table.used.copy(),
        likely_holders=np.zeros(size, dtype=np.int64),
        likely_compute=nothing(),
        likely_memory=nothing(),
        held_compute=nothing(),
        held_memory=nothing(),
        reserved=nothing(),
        hidden_devices=np.zeros(nodes),
        hidden_compute=np.zeros(nodes),
        hidden_memory=np.zeros(nodes),
        taken=np.zeros(nodes),
        begun=np.zeros(nodes),
        booked=np.zeros(nodes, dtype=np.int64),
        closed=np.zeros(nodes, dtype=np.bool_),
    )
    _hide(found, table, needs)
    return found


def _hide(columns: Columns, table: DeviceTable, needs: Sequence[Needs]) -> None:
    """Count the pods whose devices are not known, on their nodes, once a distinct ask."""
    gpus = table.gpus
    position = np.minimum(np.searchsorted(gpus.pod, gpus.unplaced), max(0, len(gpus.pod) - 1))
    if not len(position):
        return
    node, ask = table.state.pods.node[gpus.unplaced], gpus.ask[position]
    for row in np.unique(ask).tolist():
        on = node[ask == row]
        if needs[row].obstacle:
            columns.closed[on] = True
        for need in needs[row].each:
            np.add.at(columns.hidden_devices, on, need.devices if need.alone else 0)
            np.add.at(columns.hidden_compute, on, 0.0 if need.alone else need.compute)
            np.add.at(columns.hidden_memory, on, hidden_bytes(need))


def hidden_bytes(need: Need) -> float:
    """What a pod has of the memory of some device; NaN where that hangs on the device."""
    if need.alone or need.by_plugin:
        return 0.0
    return need.memory_bytes if not need.memory_share else float("nan")
