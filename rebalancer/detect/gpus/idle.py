"""Pods that hold GPUs and do not use them.

A pod is an idle holder if each of its devices was idle for all of the policy's time: the device itself, which clears everybody on it, or
the pod's own kernels where others keep the device busy. A share that was only estimated proves nothing. A device that is not trusted, or
whose measurements are doubted, proves nothing either: two signals that agree were asked for before its values came to be believed.

A notebook may be at work in a terminal while its GPU rests, so for an experiment its CPU must rest too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.policy.gpu_holders import Idle
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase, PodClass


@dataclass(frozen=True, slots=True)
class IdleHolder:
    pod: int
    """Row in pods."""
    devices: tuple[int, ...]
    """Rows in devices."""
    gpus: float
    """Devices that nobody else can have because of it: 1 for a whole one, its share of a shared one; NaN where that is unknown."""
    busiest: float
    """The highest busy share of any of its devices within the time; NaN where its own kernels speak for it."""
    idle_s: float
    """At least so long."""
    memory_bytes: float
    """What it holds of their memory by measurement; NaN unknown."""


@dataclass(frozen=True, slots=True)
class IdleHolders:
    holders: tuple[IdleHolder, ...]
    """Those that hold most first, then by name."""
    unknown: int
    """Pods that hold GPUs of which it cannot be said whether they are idle."""


def idle_holders(state: ClusterState, rules: Idle) -> IdleHolders:
    """Every running pod with GPUs is a holder, is known not to be, or is counted as unknown."""
    gpus = state.gpus
    rests, works = _verdicts(state, rules)
    holds, busy, unclear = (np.zeros(len(state.pods.names), dtype=np.bool_) for _ in range(3))
    holds[gpus.held.pod] = holds[gpus.unplaced] = unclear[gpus.unplaced] = True
    busy[gpus.held.pod[works]] = True
    unclear[gpus.held.pod[~rests & ~works]] = True
    found: list[IdleHolder] = []
    unknown = 0
    for pod in np.flatnonzero(holds & ~busy & _may_be_idle(state, rules)).tolist():
        rested = _cpu_rests(state, pod, rules)
        if rested is False:
            continue
        if unclear[pod] or rested is None:
            unknown += 1
            continue
        found.append(_holder(state, pod, gpus.held.of_pod(pod), rules))
    found.sort(key=lambda each: (-_first(each.gpus), -_first(each.memory_bytes), state.pod_name(each.pod)))
    return IdleHolders(tuple(found), unknown)


def _first(value: float) -> float:
    return value if value == value else 0.0


def _verdicts(state: ClusterState, rules: Idle) -> tuple[BoolArray, BoolArray]:
    """(pairs,) each: the pod was idle on the device, and it was not; neither where nobody can tell."""
    gpus = state.gpus
    if not len(gpus.use):
        nothing = np.zeros(len(gpus.held), dtype=np.bool_)
        return nothing, nothing
    mark, device = rules.busy_below / 100, gpus.held.device
    believed = gpus.devices.trusted[device] & np.array([not doubt for doubt in gpus.use.doubts], dtype=np.bool_)[device]
    rests = believed & (gpus.use.busiest[device] <= mark)  # NaN is not at rest
    works = believed & gpus.held.exclusive & (gpus.use.busiest[device] > mark)
    if len(gpus.held_use):
        own = gpus.held_use
        rests |= believed & (own.kernel_idle_s >= rules.after) & ~(own.busy > mark)
        works |= believed & ~rests & ((~own.estimated & (own.busy > mark)) | (own.kernel_idle_s < rules.after))
    return rests, works & ~rests


def _may_be_idle(state: ClusterState, rules: Idle) -> BoolArray:
    """(pods,) it runs, and has for long enough to be called idle."""
    pods = state.pods
    since = np.where(np.isnan(pods.started_at), pods.created_at, pods.started_at)
    return np.asarray((pods.phase == int(Phase.RUNNING)) & ~pods.terminating & (state.at - since >= rules.after), dtype=np.bool_)


def _cpu_rests(state: ClusterState, pod: int, rules: Idle) -> bool | None:
    """Whether an experiment's CPU rests; True for pods of other classes, whose GPU is what they are for."""
    if state.pods.classes[pod] is not PodClass.EXPERIMENT:
        return True
    column = state.signal_index.get("cpu", -1)
    if column < 0 or bool(state.pods.estimated[pod, column]):
        return None
    used = float(state.pods.measured[pod, column])
    return None if used != used else used <= rules.cpu_below


def _holder(state: ClusterState, pod: int, at: IntArray, rules: Idle) -> IdleHolder:
    gpus = state.gpus
    held, device = gpus.held, gpus.held.device[at]
    busiest = gpus.use.busiest[device]
    by_device = np.flatnonzero(busiest <= rules.busy_below / 100)
    share = np.where(held.exclusive[at], 1.0, _share(state, at))
    memory = gpus.held_use.memory_bytes[at] if len(gpus.held_use) else np.full(len(at), np.nan)
    return IdleHolder(
        pod=pod,
        devices=tuple(device.tolist()),
        gpus=float(share.sum()),
        busiest=float(busiest[by_device].max()) if len(by_device) == len(at) else float("nan"),
        idle_s=rules.after,
        memory_bytes=float(memory.sum()),
    )


def _share(state: ClusterState, rows: IntArray) -> FloatArray:
    """(rows,) the larger of the shares of compute and of memory that each pair was given; NaN where neither is known."""
    held, devices = state.gpus.held, state.gpus.devices
    with np.errstate(divide="ignore", invalid="ignore"):
        memory = held.memory_bytes[rows] / devices.memory_bytes[held.device[rows]]
    return np.asarray(np.minimum(1.0, np.fmax(held.compute[rows], memory)), dtype=np.float64)
