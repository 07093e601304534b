"""What a plan says of GPUs beside its moves: who holds them idle, who uses more of one than was asked for, what of the free ones is of no
use to anybody, and how much of it is known.

These are findings for people. Nothing here moves anybody.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from rebalancer.detect.gpus.fragmentation import Fragmentation, fragmentation
from rebalancer.detect.gpus.idle import IdleHolder, idle_holders
from rebalancer.detect.gpus.overuse import OverUser, over_users
from rebalancer.policy.gpu import Gpu
from rebalancer.state.cluster import ClusterState


class GpuPod(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Of a pod that holds GPUs. ``workload``: kind and name, empty for a bare pod."""

    namespace: str
    name: str
    uid: str
    workload: str
    tenant: str | None
    pod_class: str = msgspec.field(name="class")
    node: str
    devices: tuple[str, ...]
    """As `Devices.name` says."""
    models: tuple[str, ...] = ()


class IdleReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pod: GpuPod
    gpus: float | None
    """Devices that nobody else can have because of it."""
    busiest: float | None
    """Highest busy share of any of them within the time; null where its own kernels speak for it."""
    idle_seconds: float
    """At least."""
    memory_bytes: float | None
    reason: str


class OverUseReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pod: GpuPod
    asked_bytes: float
    used_bytes: float
    device_used_bytes: float | None
    device_bytes: float | None
    neighbours: int
    reason: str


class NodeFragmentation(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    node: str
    free: float
    """Free parts of its devices together, in devices."""
    lost: float
    """What of them typical pods cannot use, in devices."""


class FragmentationReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """All in devices; null where nothing is known, or no pod asks for GPUs."""

    free: float | None
    lost: float | None
    typical: int
    """Distinct asks that it is held against."""
    unknown_devices: int
    """Of which it is not known what is free; they are in none of the sums."""
    unknown_pods: int
    """Pods whose ask is not held against anything."""
    nodes: tuple[NodeFragmentation, ...]
    """Those that lose anything, the most first."""


class GpuReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    devices: int
    measured: int
    """Of which it is known how busy they are."""
    idle: tuple[IdleReport, ...] = ()
    idle_unknown: int = 0
    """Pods of which it cannot be said whether they are idle."""
    over_users: tuple[OverUseReport, ...] = ()
    fragmentation: FragmentationReport | None = None


GIB = 2.0**30


def gpu_report(state: ClusterState, rules: Gpu) -> GpuReport | None:
    """None for a cluster without GPUs."""
    gpus = state.gpus
    if not len(gpus.devices):
        return None
    idle = idle_holders(state, rules.idle)
    return GpuReport(
        devices=len(gpus.devices),
        measured=int((~np.isnan(gpus.use.busy)).sum()),
        idle=tuple(_idle(state, holder) for holder in idle.holders),
        idle_unknown=idle.unknown,
        over_users=tuple(_over(state, user) for user in over_users(state, rules.overuse)),
        fragmentation=_fragmentation(state, fragmentation(state)),
    )


def _fragmentation(state: ClusterState, found: Fragmentation) -> FragmentationReport:
    rows = [row for row in np.argsort(-found.nodes, kind="stable").tolist() if round(float(found.nodes[row]), 6) > 0]
    return FragmentationReport(
        free=_known(found.total_free),
        lost=_known(found.total),
        typical=len(found.typical),
        unknown_devices=found.unknown_devices,
        unknown_pods=found.unknown_pods,
        nodes=tuple(
            NodeFragmentation(node=state.nodes.names[row], free=round(float(found.free[row]), 6), lost=round(float(found.nodes[row]), 6))
            for row in rows
        ),
    )


def _known(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _pod(state: ClusterState, pod: int, devices: tuple[int, ...]) -> GpuPod:
    pods, tenant = state.pods, int(state.pods.tenant[pod])
    ref, table = state.workload_of(pod), state.gpus.devices
    return GpuPod(
        namespace=pods.namespaces[pod],
        name=pods.names[pod],
        uid=pods.uids[pod],
        workload="" if ref is None else f"{ref.kind} {ref.name}",
        tenant=None if tenant < 0 else state.tenants[tenant],
        pod_class=pods.classes[pod].value,
        node=state.nodes.names[int(pods.node[pod])],
        devices=tuple(table.name(device) for device in devices),
        models=tuple(sorted({table.models[device] for device in devices if table.models[device]})),
    )


def _idle(state: ClusterState, holder: IdleHolder) -> IdleReport:
    minutes = holder.idle_s / 60
    if math.isfinite(holder.busiest):
        reason = f"its devices were never busier than {holder.busiest * 100:.0f} % for {minutes:.0f} minutes"
    else:
        reason = f"it has run no kernel for {minutes:.0f} minutes"
    if math.isfinite(holder.memory_bytes):
        reason += f", and it holds {holder.memory_bytes / GIB:.1f} GiB of their memory"
    return IdleReport(
        pod=_pod(state, holder.pod, holder.devices),
        gpus=_known(holder.gpus),
        busiest=_known(holder.busiest),
        idle_seconds=holder.idle_s,
        memory_bytes=_known(holder.memory_bytes),
        reason=reason,
    )


def _over(state: ClusterState, user: OverUser) -> OverUseReport:
    reason = f"it asked for {user.asked_bytes / GIB:.1f} GiB of the device and uses {user.used_bytes / GIB:.1f} GiB"
    if math.isfinite(user.device_used_bytes) and math.isfinite(user.device_bytes):
        reason += f"; {user.device_used_bytes / GIB:.1f} of {user.device_bytes / GIB:.1f} GiB are taken"
    if user.neighbours:
        reason += f", with {user.neighbours} other pod{'s' if user.neighbours > 1 else ''} on it"
    return OverUseReport(
        pod=_pod(state, user.pod, (user.device,)),
        asked_bytes=user.asked_bytes,
        used_bytes=user.used_bytes,
        device_used_bytes=_known(user.device_used_bytes),
        device_bytes=_known(user.device_bytes),
        neighbours=user.neighbours,
        reason=reason,
    )
