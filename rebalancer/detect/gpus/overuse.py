"""Pods that use more memory of a shared GPU than they asked for: a danger to their neighbours, who were promised the rest.

Only what was measured of the pod itself counts; a part of the device's value that was estimated accuses nobody. A pod that has a device to
itself cannot take anything from anybody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.policy.gpu_holders import Overuse
from rebalancer.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class OverUser:
    pod: int
    """Row in pods."""
    device: int
    """Row in devices."""
    asked_bytes: float
    used_bytes: float
    neighbours: int
    """Other pods that are known to be on the device."""
    device_used_bytes: float
    """NaN unknown."""
    device_bytes: float
    """NaN unknown."""

    @property
    def excess_bytes(self) -> float:
        return self.used_bytes - self.asked_bytes


def over_users(state: ClusterState, rules: Overuse) -> tuple[OverUser, ...]:
    """Largest excess first, then by name of the pod."""
    gpus = state.gpus
    held, use, own = gpus.held, gpus.use, gpus.held_use
    if not len(use) or not len(own):
        return ()
    device = held.device
    believed = gpus.devices.trusted[device] & np.array([not doubt for doubt in use.doubts], dtype=np.bool_)[device]
    over = own.memory_bytes > held.memory_bytes * (1 + rules.above / 100)  # NaN on either side is no excess
    rows = np.flatnonzero(believed & over & ~own.estimated & ~held.exclusive)
    on_device = np.bincount(device, minlength=len(gpus.devices))
    total = np.where(np.isnan(use.total_bytes), gpus.devices.memory_bytes, use.total_bytes)
    found = [
        OverUser(
            pod=int(held.pod[row]),
            device=int(device[row]),
            asked_bytes=float(held.memory_bytes[row]),
            used_bytes=float(own.memory_bytes[row]),
            neighbours=int(on_device[device[row]]) - 1,
            device_used_bytes=float(use.memory_bytes[device[row]]),
            device_bytes=float(total[device[row]]),
        )
        for row in rows.tolist()
    ]
    return tuple(sorted(found, key=lambda each: (-each.excess_bytes, state.pod_name(each.pod), each.device)))
