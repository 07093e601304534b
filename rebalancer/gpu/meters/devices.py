"""What the readings of a device come to: how busy it is and how full, or why that is not known.

- Busy is the share of time with any kernel. A MIG instance has no such figure of its own, so there it is the engine's; where an instance
  has neither, it is unknown, not idle.
- The two are opinions on one thing. One at rest while the other works means that one of them is stuck, and nobody can tell which: the
  device is doubted, and takes part in nothing.
- Memory in use includes what the driver keeps for itself: used + reserved, of used + free + reserved.
- To have been idle for a time needs two opinions that agree; one alone can only prove work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalancer.gpu.meters.catalogue import Quantity
from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.state.device_use import DeviceUse
from rebalancer.state.devices import Devices
from rebalancer.units import format_percent

AT_REST = 0.01
AT_WORK = 0.2
"""Shares: an opinion under the first and one over the second do not go together, whatever the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReadings:
    """All (devices,), NaN unknown. ``now``: newest readings by quantity. ``most_busy``, ``most_engine``: the highest of the time that idle
    holders are judged by. ``age_s``: of the newest raw sample."""

    now: Mapping[Quantity, FloatArray]
    age_s: FloatArray
    most_busy: FloatArray
    most_engine: FloatArray


@dataclass(frozen=True, slots=True)
class Beliefs:
    """``max_age_s``: how old a sample may be. ``idle_below``: a share."""

    max_age_s: float
    idle_below: float
    fatal_xids: frozenset[int] = field(default_factory=frozenset)
    too_hot: float = float("inf")


NO_BELIEFS = Beliefs(max_age_s=0.0, idle_below=0.0)


def device_use(devices: Devices, readings: DeviceReadings, beliefs: Beliefs) -> DeviceUse:
    """In the order of ``devices``."""
    count = len(devices)
    nothing = np.full(count, np.nan)

    def of(quantity: Quantity) -> FloatArray:
        return readings.now.get(quantity, nothing)

    fresh = readings.age_s <= beliefs.max_age_s  # NaN is not fresh
    part = _is_part(devices)
    busy, engine = of(Quantity.BUSY), of(Quantity.ENGINE)
    opinion = np.where(part, engine, np.where(np.isnan(busy), engine, busy))
    doubts = _doubts(devices, busy, engine, part=part, fresh=fresh)
    believed = fresh & np.array([not doubt for doubt in doubts], dtype=np.bool_)
    reserved = np.nan_to_num(of(Quantity.RESERVED))
    used = of(Quantity.USED) + reserved
    total = np.where(np.isnan(of(Quantity.TOTAL)), used + of(Quantity.FREE), of(Quantity.TOTAL))
    told = np.where(devices.memory_exact, devices.memory_bytes, np.nan)
    total = np.where(np.isnan(total), told, total)
    return DeviceUse(
        busy=np.where(believed, opinion, np.nan),
        memory_bytes=np.where(believed, used, np.nan),
        total_bytes=np.where(fresh, total, told),
        busiest=np.where(believed, _busiest(readings, part=part, idle_below=beliefs.idle_below), np.nan),
        age_s=readings.age_s,
        doubts=doubts,
        ailments=_ailments(of(Quantity.XID), of(Quantity.TEMPERATURE), fresh=fresh, beliefs=beliefs),
    )


def _is_part(devices: Devices) -> BoolArray:
    return np.array([bool(profile) for profile in devices.mig_profiles], dtype=np.bool_) | (devices.instances >= 0)


def _busiest(readings: DeviceReadings, *, part: BoolArray, idle_below: float) -> FloatArray:
    """The higher of the two opinions; one alone counts only as a proof of work. Of an instance there is but one, and it must do."""
    one, other = readings.most_busy, readings.most_engine
    alone = np.where(np.isnan(one), other, one)
    proves = np.where(alone > idle_below, alone, np.nan)
    return np.where(part, other, np.where(np.isnan(one) | np.isnan(other), proves, np.fmax(one, other)))


def _doubts(devices: Devices, busy: FloatArray, engine: FloatArray, *, part: BoolArray, fresh: BoolArray) -> tuple[str, ...]:
    doubts = [""] * len(devices)
    low, high = np.fmin(busy, engine), np.fmax(busy, engine)
    both = ~np.isnan(busy) & ~np.isnan(engine) & ~part & fresh
    for row in np.flatnonzero(both & (low < AT_REST) & (high > AT_WORK)).tolist():
        words = f"its utilisation says {format_percent(float(busy[row]))} and its engine {format_percent(float(engine[row]))}"
        doubts[row] = f"{words}: one of them is stuck"
    return tuple(doubts)


def _ailments(xid: FloatArray, temperature: FloatArray, *, fresh: BoolArray, beliefs: Beliefs) -> tuple[str, ...]:
    ailments = [""] * len(xid)
    fatal = np.isin(np.nan_to_num(xid), sorted(beliefs.fatal_xids)) & fresh
    for row in np.flatnonzero(fatal).tolist():
        ailments[row] = f"its last XID error is {int(xid[row])}"
    for row in np.flatnonzero(fresh & (temperature >= beliefs.too_hot) & ~fatal).tolist():
        ailments[row] = f"it is at {temperature[row]:.0f} °C, where {beliefs.too_hot:.0f} is too hot"
    return tuple(ailments)


def unmeasured(devices: Devices, use: DeviceUse) -> Sequence[int]:
    """Rows of devices that the API tells and no fresh sample measures."""
    found: list[int] = np.flatnonzero(np.isnan(use.busy) & np.isnan(use.memory_bytes)).tolist()
    return found
