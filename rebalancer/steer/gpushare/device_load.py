"""What is measured of single devices: how busy they are, and how much of their memory is really in use.

The ledger knows what was promised, not what is used: nothing holds a pod to what it asked for. Where the measurements come from is a seam,
`DeviceLoads`. The one source here is an annotation of the node, which any collector of GPU metrics can write:

    rebalancer.dev/gpu-load: {"devices":[{"index":0,"busy":0.3,"memoryUsedBytes":2147483648,"memoryBytes":17066622976}],
                              "at":"2026-01-02T03:04:05Z","expires":"2026-01-02T03:08:05Z"}

``memoryBytes``, the memory of the device, may be left out: it is then taken from the ledger's figure. What is unknown is null or absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.steer.gpushare.devices import MOST_DEVICES
from rebalancer.units import format_time, parse_time

GPU_LOAD = "rebalancer.dev/gpu-load"
_LONGEST = 65536
_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """Measured, NaN unknown. ``busy``: share of the time; ``memory_used`` and ``memory`` in bytes."""

    index: int
    busy: float = math.nan
    memory_used: float = math.nan
    memory: float = math.nan


@dataclass(frozen=True, slots=True)
class NodeDeviceLoads:
    """What one node's annotation says; times in Unix seconds."""

    devices: tuple[DeviceLoad, ...]
    at: float
    expires: float


@dataclass(frozen=True, slots=True)
class Shares:
    """``busy`` and ``memory`` (devices,) float64: measured shares, NaN unknown."""

    busy: FloatArray
    memory: FloatArray

    @classmethod
    def unknown(cls, count: int) -> Shares:
        return cls(np.full(count, np.nan), np.full(count, np.nan))


class DeviceLoads(Protocol):
    """A source of measurements."""

    def of(self, node: str, *, count: int, each_bytes: float, now: float) -> Shares:
        """Of the ``count`` devices of ``node`` at ``now`` (Unix seconds). ``each_bytes``: memory of a device, if the source has none."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Shares above which a device is avoided while another one fits; strictly above, so that 1 avoids none."""

    busy: float = 0.9
    memory: float = 0.9

    def over(self, loads: Shares) -> BoolArray:
        """(devices,) bool. What is unknown is over nothing."""
        return (loads.busy > self.busy) | (loads.memory > self.memory)


class _DeviceWire(msgspec.Struct, frozen=True, rename="camel"):
    index: int
    busy: float | None = None
    memory_used_bytes: float | None = None
    memory_bytes: float | None = None


class _NodeWire(msgspec.Struct, frozen=True):
    devices: tuple[_DeviceWire, ...]
    at: str
    expires: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_NodeWire).decode


def format_gpu_load(devices: Sequence[DeviceLoad], *, at: float, expires: float) -> str:
    """The value of the annotation. A number that is not finite or negative is null."""
    wires = tuple(
        _DeviceWire(each.index, _number(each.busy, _DECIMALS), _number(each.memory_used, 0), _number(each.memory, 0)) for each in devices
    )
    return _encode(_NodeWire(wires, format_time(math.floor(at)), format_time(math.floor(expires)))).decode()


def parse_gpu_load(text: str) -> NodeDeviceLoads | None:
    """None for what is no such value."""
    if len(text) > _LONGEST:
        return None
    try:
        wire = _decode(text)
        at, expires = parse_time(wire.at), parse_time(wire.expires)
    except (ValueError, OverflowError, RecursionError):  # what msgspec raises is a ValueError
        return None
    if len(wire.devices) > MOST_DEVICES:
        return None
    devices = tuple(
        DeviceLoad(each.index, _read(each.busy), _read(each.memory_used_bytes), _read(each.memory_bytes)) for each in wire.devices
    )
    return NodeDeviceLoads(devices, at, expires)


def _number(value: float, decimals: int) -> float | None:
    if not math.isfinite(value) or value < 0:
        return None
    return round(value, decimals) + 0.0 if decimals else int(value)


def _read(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) and value >= 0 else math.nan


def shares_of(loads: NodeDeviceLoads | None, *, count: int, each_bytes: float, now: float) -> Shares:
    """The shares of a node's devices at ``now``; unknown when there are no measurements, or they have expired."""
    found = Shares.unknown(count)
    if loads is None or not now < loads.expires:
        return found
    for load in loads.devices:
        if not 0 <= load.index < count:
            continue
        memory = load.memory if math.isfinite(load.memory) else each_bytes
        found.busy[load.index] = load.busy
        found.memory[load.index] = load.memory_used / memory if memory > 0 else math.nan
    return found


@dataclass(frozen=True, slots=True)
class NothingMeasured:
    """The source of a cluster that measures no devices."""

    def of(self, node: str, *, count: int, each_bytes: float, now: float) -> Shares:
        return Shares.unknown(count)


@dataclass(frozen=True, slots=True)
class AnnotatedLoads:
    """Reads the annotation of nodes. ``annotations``: node -> its value, as the watch of nodes keeps it."""

    annotations: Mapping[str, str]

    def of(self, node: str, *, count: int, each_bytes: float, now: float) -> Shares:
        text = self.annotations.get(node)
        return shares_of(parse_gpu_load(text) if text else None, count=count, each_bytes=each_bytes, now=now)
