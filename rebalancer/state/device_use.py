"""What was measured of devices, beside what is allocated of them: columns in the order of `Devices` and of `DevicePods`.

A device's value is one value, however many share it: nothing here is a sum over sharers. What cannot be believed is unknown, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray


def _floats() -> FloatArray:
    return np.zeros(0, dtype=np.float64)


def _bools() -> BoolArray:
    return np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """All (devices,), or all empty where no exporter was asked."""

    busy: FloatArray = field(default_factory=_floats)
    """Share of the window in which the device worked, 0 to 1; NaN unknown, and where ``doubts`` says why."""
    memory_bytes: FloatArray = field(default_factory=_floats)
    """What is used of its memory, what the driver reserves included; NaN unknown."""
    total_bytes: FloatArray = field(default_factory=_floats)
    """Its memory as the exporter tells it, else as it is told of this very device; NaN unknown."""
    busiest: FloatArray = field(default_factory=_floats)
    """The highest busy share within the policy's time for idle holders; NaN unknown, or not known for all of that time."""
    age_s: FloatArray = field(default_factory=_floats)
    """Age of the newest raw sample behind ``busy``; NaN unknown."""
    doubts: tuple[str, ...] = ()
    """Why a device's measurements are not believed, as a clause with numbers: then it takes part in nothing. Empty: nothing speaks against
    them."""
    ailments: tuple[str, ...] = ()
    """Why nothing should be put on it (a fatal XID, throttling), as a clause with numbers. Empty: nothing is known of the kind."""

    def __len__(self) -> int:
        return len(self.busy)


@dataclass(frozen=True, slots=True)
class HeldUse:
    """What each pair of device and pod uses of the device: all (pairs,), or all empty where no exporter was asked."""

    busy: FloatArray = field(default_factory=_floats)
    """Share of the device's compute that the pod keeps busy, 0 to 1; NaN unknown."""
    memory_bytes: FloatArray = field(default_factory=_floats)
    """Bytes of the device's memory that the pod holds; NaN unknown."""
    estimated: BoolArray = field(default_factory=_bools)
    """``busy`` or ``memory_bytes`` is a part of the device's value and was not measured of the pod: good for reports, never alone for an
    eviction."""
    kernel_idle_s: FloatArray = field(default_factory=_floats)
    """Seconds since the pod last ran a kernel on the device; NaN unknown."""

    def __len__(self) -> int:
        return len(self.busy)


NO_DEVICE_USE = DeviceUse()
NO_HELD_USE = HeldUse()
