"""What a move says of the GPUs that its pod leaves: how busy and full they are, and what of it is the pod's."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from rebalancer.state.cluster import ClusterState


class MoveDevice(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A GPU that the pod is on. Shares are of its time; unknown is null."""

    device: str
    model: str | None
    busy: float | None
    memory_used_bytes: float | None
    memory_bytes: float | None
    pod_busy: float | None
    pod_memory_bytes: float | None
    pod_asked_bytes: float | None
    """What of its memory the pod was given; null: no limit, or unknown."""
    estimated: bool
    """What is said of the pod is its part of the device's use, and was not measured of the pod."""
    other_pods: int


def moved_devices(state: ClusterState, pod: int) -> tuple[MoveDevice, ...]:
    """Nothing for a pod of which it is not known where it is, and for one without GPUs."""
    held = state.gpus.held
    return tuple(_device(state, pair) for pair in held.of_pod(pod).tolist()) if len(held) else ()


def _device(state: ClusterState, pair: int) -> MoveDevice:
    gpus = state.gpus
    row, use, own = int(gpus.held.device[pair]), gpus.use, gpus.held_use
    measured, told = len(use) > 0, len(own) > 0
    return MoveDevice(
        device=gpus.devices.name(row),
        model=gpus.devices.models[row] or None,
        busy=_known(use.busy[row]) if measured else None,
        memory_used_bytes=_known(use.memory_bytes[row]) if measured else None,
        memory_bytes=_known(use.total_bytes[row] if measured else gpus.devices.memory_bytes[row]),
        pod_busy=_known(own.busy[pair]) if told else None,
        pod_memory_bytes=_known(own.memory_bytes[pair]) if told else None,
        pod_asked_bytes=_known(gpus.held.memory_bytes[pair]),
        estimated=told and bool(own.estimated[pair]),
        other_pods=int(np.count_nonzero(gpus.held.device == row)) - 1,
    )


def _known(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None
