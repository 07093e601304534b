"""Every GPU of a cluster as a document: what it is, how busy and how full it is, and which pods are on it with which share.

Unknown is null. A share of a pod that is a part of the device's value, and was not measured of the pod, is marked as estimated. What is
given away of a device's memory is known only where all that is on it is known: not of devices of a node on which a pod holds some device
that nobody names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from rebalancer.errors import UsageError
from rebalancer.plan.document import known
from rebalancer.plan.gpu_report import GpuReport
from rebalancer.plan.model import API_VERSION
from rebalancer.report.subjects import find_node, find_pod
from rebalancer.report.text import clean
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import Confidence, Health
from rebalancer.units import format_time

OK, UNMEASURED = "ok", "unmeasured"


class DeviceHolder(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A pod on a device. ``compute`` and ``memoryAllocatedBytes``: what it was given; null: not limited, or unknown."""

    namespace: str
    name: str
    uid: str
    address: str | None
    workload: str | None
    """Kind and name; null for a bare pod."""
    pod_class: str = msgspec.field(name="class")
    tenant: str | None
    compute: float | None
    memory_allocated_bytes: float | None
    exclusive: bool
    busy: float | None
    """Share of the device's time."""
    memory_used_bytes: float | None
    estimated: bool
    """``busy`` or ``memoryUsedBytes`` is a part of the device's value by what is known of its sharers."""
    confidence: str
    """How it is known that the pod is on this device: ``allocated``, ``declared``, ``reported`` or ``inferred``."""
    findings: tuple[str, ...] = ()
    """What is to be said against its use, in sentences."""


class DeviceReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    node: str
    device: str
    """What people call it on its node: its number, or its uuid, or its profile."""
    uuid: str | None
    model: str | None
    profile: str | None
    """Of a MIG instance or partition."""
    scheme: str
    """By which agreement it is handed out."""
    busy: float | None
    memory_used_bytes: float | None
    memory_allocated_bytes: float | None
    memory_bytes: float | None
    condition: str
    """``ok``, ``unmeasured``, ``doubted``, ``ailing``, ``unhealthy``, ``cordoned`` or ``untrusted``."""
    reason: str
    """Why, where it is not ``ok``."""
    pods: tuple[DeviceHolder, ...]


class UnplacedPod(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A pod that holds GPUs of its node, while it is not known which, or not of all of them."""

    namespace: str
    name: str
    uid: str
    node: str
    pod_class: str = msgspec.field(name="class")


class GpusReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """In order of nodes, then devices. ``shown`` says what was asked for, where it was not everything."""

    api_version: str = API_VERSION
    kind: str = "GpusReport"
    cluster: str
    created_at: str
    window_seconds: float
    shown: str = ""
    devices: tuple[DeviceReport, ...]
    unplaced: tuple[UnplacedPod, ...]
    notes: tuple[str, ...] = ()


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for; all of it that is given has to hold. ``pod`` may be ``namespace/name``."""

    node: str | None = None
    pod: str | None = None
    namespace: str | None = None
    address: str | None = None


EVERYTHING = Chosen()


def gpus_report(*, state: ClusterState, holders: GpuReport | None, chosen: Chosen = EVERYTHING) -> GpusReport:
    """``holders``: who is idle and who uses more than asked for. Raises UsageError for a node, pod or address that has no GPUs."""
    devices, pods = _wanted(state, chosen)
    words = [f"{key} {value}" for key, value in (("node", chosen.node), ("pod", chosen.pod), ("address", chosen.address)) if value]
    return GpusReport(
        cluster=state.cluster,
        created_at=format_time(state.at),
        window_seconds=state.window_s,
        shown=" and ".join(words),
        devices=device_reports(state, devices, holders),
        unplaced=tuple(_unplaced(state, pod) for pod in state.gpus.unplaced.tolist() if pods(pod)),
        notes=tuple(fault.sentence for fault in state.gpus.faults) if chosen == EVERYTHING else (),
    )


def device_reports(state: ClusterState, rows: Iterable[int], holders: GpuReport | None = None) -> tuple[DeviceReport, ...]:
    """Of devices by their rows."""
    findings, crowded = _findings(holders), _crowded(state)
    return tuple(_device(state, row, findings, crowded=bool(crowded[state.gpus.devices.node[row]])) for row in rows)


# ---- what is asked for --------------------------------------------------------------------------------------------------------


def _wanted(state: ClusterState, chosen: Chosen) -> tuple[list[int], Callable[[int], bool]]:
    """Rows of the devices, and which unplaced pods."""
    gpus = state.gpus
    mask = np.ones(len(gpus.devices), dtype=np.bool_)
    node, named = -1, None
    if chosen.node is not None:
        node = find_node(state, chosen.node)
        mask &= gpus.devices.node == node
        if not mask.any():
            raise UsageError(f"node {clean(chosen.node)} has no GPU", remedy="list those that have with 'rebalancer gpus -o wide'")
    if chosen.pod is not None or chosen.address is not None:
        named = _named(state, chosen)
        held = np.zeros(len(mask), dtype=np.bool_)
        held[gpus.held.device[np.isin(gpus.held.pod, sorted(named))]] = True
        mask &= held

    def keeps(pod: int) -> bool:
        return (node < 0 or int(state.pods.node[pod]) == node) and (named is None or pod in named)

    return np.flatnonzero(mask).tolist(), keeps


def _named(state: ClusterState, chosen: Chosen) -> set[int]:
    gpus = state.gpus
    rows = set(gpus.pod.tolist())
    if chosen.pod is not None:
        pod = find_pod(state, chosen.pod, chosen.namespace)
        if pod not in rows:
            raise UsageError(f"pod {state.pod_name(pod)} asks for no GPU", remedy="list those that do with 'rebalancer gpus -o wide'")
        rows = {pod}
    if chosen.address is not None:
        if not any(gpus.addresses):
            raise UsageError(
                "this state holds no addresses of pods",
                remedy="ask by --pod, or look at the live cluster: anonymous snapshots leave them out",
            )
        rows &= {pod for pod, address in zip(gpus.pod.tolist(), gpus.addresses, strict=True) if address == chosen.address}
        if not rows:
            raise UsageError(f"no pod with GPUs has the address {clean(chosen.address)}", remedy="list them with 'rebalancer gpus -o wide'")
    return rows


# ---- rows ---------------------------------------------------------------------------------------------------------------------


def _findings(holders: GpuReport | None) -> Mapping[str, tuple[str, ...]]:
    """uid -> sentences."""
    if holders is None:
        return {}
    said = [(one.pod.uid, one.reason) for one in holders.idle] + [(one.pod.uid, one.reason) for one in holders.over_users]
    found: dict[str, tuple[str, ...]] = {}
    for uid, reason in said:
        found[uid] = (*found.get(uid, ()), reason)
    return found


def _crowded(state: ClusterState) -> BoolArray:
    """(nodes,): some pod holds a device of the node, and nobody knows which."""
    mask = np.zeros(len(state.nodes.names) + 1, dtype=np.bool_)  # the last is for none
    mask[state.pods.node[state.gpus.unplaced]] = True
    return mask


def _device(state: ClusterState, row: int, findings: Mapping[str, tuple[str, ...]], *, crowded: bool) -> DeviceReport:
    gpus, devices = state.gpus, state.gpus.devices
    measured = len(gpus.use) > 0
    condition, reason = device_condition(state, row)
    total = float(gpus.use.total_bytes[row]) if measured else float(devices.memory_bytes[row])
    pairs = range(gpus.held.of_device(row).start, gpus.held.of_device(row).stop)
    return DeviceReport(
        node=state.nodes.names[int(devices.node[row])],
        device=devices.name(row),
        uuid=devices.uuids[row] or None,
        model=devices.models[row] or None,
        profile=devices.mig_profiles[row] or None,
        scheme=devices.schemes[row].value,
        busy=known(float(gpus.use.busy[row])) if measured else None,
        memory_used_bytes=known(float(gpus.use.memory_bytes[row])) if measured else None,
        memory_allocated_bytes=None if crowded else _allocated(state, row),
        memory_bytes=known(total),
        condition=condition,
        reason=reason,
        pods=tuple(_holder(state, pair, findings) for pair in pairs),
    )


def device_condition(state: ClusterState, row: int) -> tuple[str, str]:
    """The first that is true of a device, of what keeps things away from it; and why, as a sentence without its subject."""
    gpus, devices = state.gpus, state.gpus.devices
    if not devices.trusted[row]:
        node = state.nodes.names[int(devices.node[row])]
        return "untrusted", next((fault.sentence for fault in gpus.faults if fault.node == node), "what is told of it does not go together")
    if devices.health[row] == Health.UNHEALTHY:
        return "unhealthy", "its device plugin says that it is not healthy"
    if devices.cordoned[row]:
        return "cordoned", "its scheme gives it to nobody for now"
    if len(gpus.use):
        if gpus.use.doubts[row]:
            return "doubted", gpus.use.doubts[row]
        if gpus.use.ailments[row]:
            return "ailing", gpus.use.ailments[row]
    if not len(gpus.use) or np.isnan(gpus.use.busy[row]):
        return UNMEASURED, "no fresh sample of an exporter measures it"
    return OK, ""


def _allocated(state: ClusterState, row: int) -> float | None:
    """Null where a pod has a part that is not limited, or not known."""
    held, own = state.gpus.held, state.gpus.held.of_device(row)
    given = np.where(held.exclusive[own] & np.isnan(held.memory_bytes[own]), state.gpus.devices.memory_bytes[row], held.memory_bytes[own])
    return known(float(given.sum()))


def _holder(state: ClusterState, pair: int, findings: Mapping[str, tuple[str, ...]]) -> DeviceHolder:
    gpus, pods = state.gpus, state.pods
    pod, use = int(gpus.held.pod[pair]), gpus.held_use
    tenant, ref, measured = int(pods.tenant[pod]), state.workload_of(pod), len(gpus.held_use) > 0
    return DeviceHolder(
        namespace=pods.namespaces[pod],
        name=pods.names[pod],
        uid=pods.uids[pod],
        address=_address(state, pod),
        workload=None if ref is None else f"{ref.kind} {ref.name}",
        pod_class=pods.classes[pod].value,
        tenant=None if tenant < 0 else state.tenants[tenant],
        compute=known(float(gpus.held.compute[pair])),
        memory_allocated_bytes=known(float(gpus.held.memory_bytes[pair])),
        exclusive=bool(gpus.held.exclusive[pair]),
        busy=known(float(use.busy[pair])) if measured else None,
        memory_used_bytes=known(float(use.memory_bytes[pair])) if measured else None,
        estimated=measured and bool(use.estimated[pair]),
        confidence=Confidence(int(gpus.held.confidence[pair])).name.lower(),
        findings=findings.get(pods.uids[pod], ()),
    )


def _address(state: ClusterState, pod: int) -> str | None:
    gpus = state.gpus
    if not gpus.addresses:
        return None
    return gpus.addresses[int(np.searchsorted(gpus.pod, pod))] or None


def _unplaced(state: ClusterState, pod: int) -> UnplacedPod:
    pods = state.pods
    return UnplacedPod(
        namespace=pods.namespaces[pod],
        name=pods.names[pod],
        uid=pods.uids[pod],
        node=state.nodes.names[int(pods.node[pod])],
        pod_class=pods.classes[pod].value,
    )
