"""What each pod uses of the devices that it is on: measured of the pod where that is possible, else a part of the device's value, and then
it says so.

A pod that has a device to itself uses what the device does. Of pods that share one, only what is told of each by itself is measured: by
processes (dcgm-exporter since 4.8.2, with the process ids at hand) or by the scheme's own library (HAMi). A value that was copied to every
sharer is the device's, and no sum. Zeros for all sharers of a device at work are what an exporter writes that cannot see the processes:
unknown, not idle.

A device's value is split by memory that is known of each sharer, else evenly; the parts add up to the device, and are estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.state.device_use import DeviceUse, HeldUse
from rebalancer.state.devices import DevicePods

WORKS = 0.01
"""Share of a device's time from which it is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReadings:
    """(pairs,) each, in the order of the pairs; NaN where nothing is told of the pod by itself."""

    busy: FloatArray
    memory_bytes: FloatArray
    kernel_age_s: FloatArray


def nothing_told(pairs: int) -> PodReadings:
    nothing = np.full(pairs, np.nan)
    return PodReadings(busy=nothing, memory_bytes=nothing, kernel_age_s=nothing)


def held_use(held: DevicePods, use: DeviceUse, told: PodReadings, *, alone: BoolArray) -> HeldUse:
    """``alone`` (pairs,): the pod is known to be the only one on the device."""
    device = held.device
    single = held.exclusive | alone
    busy_told = _seen(held, use, told.busy)
    busy = np.where(single, use.busy[device], busy_told)
    memory = np.where(single, use.memory_bytes[device], told.memory_bytes)
    share = _shares(held, told.memory_bytes)
    no_busy, no_memory = np.isnan(busy) & ~single, np.isnan(memory) & ~single
    return HeldUse(
        busy=np.where(no_busy, use.busy[device] * share, busy),
        memory_bytes=np.where(no_memory, use.memory_bytes[device] * share, memory),
        estimated=(no_busy & ~np.isnan(use.busy[device])) | (no_memory & ~np.isnan(use.memory_bytes[device])),
        kernel_idle_s=told.kernel_age_s,
    )


def _seen(held: DevicePods, use: DeviceUse, busy: FloatArray) -> FloatArray:
    """What is told of each pod, without the zeros of all pods of a device that works."""
    total = np.bincount(held.device, weights=np.nan_to_num(busy), minlength=len(use))
    blind = (total == 0) & (use.busy > WORKS)
    return np.where(blind[held.device], np.nan, busy)


def _shares(held: DevicePods, told_bytes: FloatArray) -> FloatArray:
    """(pairs,) by what each is known to hold or was given of memory; evenly on devices where that is not known of all."""
    devices = int(held.device.max(initial=-1)) + 1
    weight = np.where(np.isnan(told_bytes), held.memory_bytes, told_bytes)
    lacking = np.bincount(held.device, weights=np.isnan(weight) | (weight <= 0), minlength=devices) > 0
    count = np.bincount(held.device, minlength=devices)
    total = np.bincount(held.device, weights=np.nan_to_num(weight), minlength=devices)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_memory, evenly = weight / total[held.device], 1.0 / count[held.device]
    return np.where(lacking[held.device], evenly, by_memory)
