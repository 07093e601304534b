"""Gauges of GPUs: what is known of devices, who holds them idle or uses more than was asked for, and how busy the GPUs of each workload
are.

The last are made for a HorizontalPodAutoscaler by way of a metrics adapter. They are means over the pods whose share was measured of the
pod itself; a workload of which none was has no sample, since an autoscaler that reads 0 scales down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from prometheus_client.core import GaugeMetricFamily

from rebalancer.plan.gpu_report import GpuReport
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState

GPU_GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "gpu_devices": ("GPUs by what is known of them.", ("state",)),
    "gpu_idle_devices": ("GPUs that are held by pods which do not use them.", ("namespace", "class")),
    "gpu_over_users": ("Pods that use more memory of a shared GPU than they asked for.", ("namespace",)),
    "gpu_overuse_bytes": ("Memory of shared GPUs that is used beyond what was asked for.", ("namespace",)),
    "gpu_free_devices": ("Free parts of GPUs together, in devices, by what pods asked for; absent while nothing is known.", ()),
    "gpu_fragmentation_devices": (
        "What of the free parts of GPUs typical pods of the cluster cannot use, in devices; absent while nothing is known.",
        (),
    ),
    "workload_gpu_busy_ratio": (
        "Mean busy share of the GPUs that a workload's pods hold; absent while none of them is measured by itself.",
        ("namespace", "kind", "workload"),
    ),
    "workload_gpu_memory_bytes": (
        "GPU memory that a workload's pods hold together; absent while not all of them are measured by themselves.",
        ("namespace", "kind", "workload"),
    ),
}
STATES = ("measured", "unmeasured", "doubted", "ailing", "untrusted")


def gpu_families(state: ClusterState, report: GpuReport | None, gauge: Callable[[str], GaugeMetricFamily]) -> Iterator[GaugeMetricFamily]:
    """Without a sample where there are no GPUs."""
    report = report or GpuReport(devices=0, measured=0)
    devices = gauge("gpu_devices")
    for word, count in _devices(state).items() if report.devices else ():
        devices.add_metric((word,), float(count))
    yield devices
    idle = gauge("gpu_idle_devices")
    held: dict[tuple[str, str], float] = {}
    for one in report.idle:
        key = one.pod.namespace, one.pod.pod_class
        held[key] = held.get(key, 0.0) + (math.nan if one.gpus is None else one.gpus)
    for labels, gpus in sorted(held.items()):
        if not math.isnan(gpus):
            idle.add_metric(labels, gpus)
    yield idle
    users, excess = gauge("gpu_over_users"), gauge("gpu_overuse_bytes")
    for namespace in sorted({each.pod.namespace for each in report.over_users}):
        own = [each for each in report.over_users if each.pod.namespace == namespace]
        users.add_metric((namespace,), float(len(own)))
        excess.add_metric((namespace,), sum(each.used_bytes - each.asked_bytes for each in own))
    yield users
    yield excess
    found = report.fragmentation
    for name, value in (("gpu_free_devices", found.free if found else None), ("gpu_fragmentation_devices", found.lost if found else None)):
        family = gauge(name)
        if value is not None:
            family.add_metric((), value)
        yield family
    yield from _workloads(state, gauge)


def _devices(state: ClusterState) -> Mapping[str, int]:
    """Each device once, by the first that is true of it."""
    gpus = state.gpus
    counts = dict.fromkeys(STATES, 0)
    measured = len(gpus.use) > 0
    for row, trusted in enumerate(gpus.devices.trusted.tolist()):
        if not trusted:
            word = "untrusted"
        elif measured and gpus.use.doubts[row]:
            word = "doubted"
        elif measured and gpus.use.ailments[row]:
            word = "ailing"
        else:
            word = "measured" if measured and not np.isnan(gpus.use.busy[row]) else "unmeasured"
        counts[word] += 1
    return counts


def _workloads(state: ClusterState, gauge: Callable[[str], GaugeMetricFamily]) -> Iterator[GaugeMetricFamily]:
    gpus = state.gpus
    busy, memory = gauge("workload_gpu_busy_ratio"), gauge("workload_gpu_memory_bytes")
    if len(gpus.held_use):
        workload, count = state.pods.workload[gpus.held.pod], len(state.workloads.refs)
        own = (workload >= 0) & ~gpus.held_use.estimated
        pairs = np.bincount(workload[workload >= 0], minlength=count)
        shown = _sums(workload, gpus.held_use.busy, own, count)
        held = _sums(workload, gpus.held_use.memory_bytes, own, count)
        for row in np.flatnonzero(shown.known > 0).tolist():
            busy.add_metric(_labels(state, row), float(shown.total[row] / shown.known[row]))
        for row in np.flatnonzero((held.known > 0) & (held.known == pairs)).tolist():
            memory.add_metric(_labels(state, row), float(held.total[row]))
    yield busy
    yield memory


@dataclass(frozen=True, slots=True)
class _Sums:
    """(workloads,) each."""

    known: IntArray
    total: FloatArray


def _sums(workload: IntArray, values: FloatArray, own: BoolArray, count: int) -> _Sums:
    rows = own & ~np.isnan(values)
    known = np.bincount(workload[rows], minlength=count)
    total = np.bincount(workload[rows], weights=values[rows], minlength=count)
    return _Sums(known.astype(np.int64), total.astype(np.float64))


def _labels(state: ClusterState, row: int) -> tuple[str, str, str]:
    ref = state.workloads.refs[row]
    return ref.namespace, ref.kind, ref.name
