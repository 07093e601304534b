"""Sentences about the GPUs of a node and of a pod, for `explain`."""

from __future__ import annotations

from rebalancer.report.explanation import Fact
from rebalancer.report.gpus import OK, DeviceHolder, DeviceReport, device_reports
from rebalancer.report.text import counted
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_bytes, format_percent

_SHOWN = 5


def node_gpu_facts(state: ClusterState, node: int) -> list[Fact]:
    """One a device; nothing for a node without."""
    own = state.gpus.devices.of_node(node)
    facts = [
        Fact(topic=f"GPU {device.device}", sentence=_of_device(device)) for device in device_reports(state, range(own.start, own.stop))
    ]
    here = [pod for pod in state.gpus.unplaced.tolist() if int(state.pods.node[pod]) == node]
    if here:
        names = ", ".join(state.pod_name(pod) for pod in here[:_SHOWN]) + (f" and {len(here) - _SHOWN} more" if len(here) > _SHOWN else "")
        facts.append(Fact(topic="GPUs", sentence=f"nobody says on which of them {names} {'is' if len(here) == 1 else 'are'}"))
    return facts


def pod_gpu_facts(state: ClusterState, pod: int) -> list[Fact]:
    """One a device that the pod is on; nothing for a pod that asks for none."""
    gpus = state.gpus
    rows = gpus.held.device[gpus.held.of_pod(pod)].tolist()
    facts = [Fact(topic=f"GPU {device.device}", sentence=_of_pod(device, state.pods.uids[pod])) for device in device_reports(state, rows)]
    if pod in gpus.unplaced:
        also = "further " if rows else ""
        facts.append(Fact(topic="GPUs", sentence=f"it holds {also}GPUs of its node, and nobody says which"))
    elif gpus.asks_of(pod) and not rows and int(state.pods.node[pod]) < 0:
        facts.append(Fact(topic="GPUs", sentence="it waits for GPUs"))
    return facts


def _of_device(device: DeviceReport) -> str:
    holders = [_briefly(pod) for pod in device.pods[:_SHOWN]]
    more = [f"{len(device.pods) - _SHOWN} more"] if len(device.pods) > _SHOWN else []
    parts = (
        _kind(device),
        "" if device.condition == OK else f"{device.condition}: {device.reason}",
        _use(device),
        f"{counted(len(device.pods), 'pod')} on it: {', '.join(holders + more)}" if device.pods else "nobody is known to be on it",
    )
    return "; ".join(part for part in parts if part)


def _kind(device: DeviceReport) -> str:
    words = " ".join(word for word in (device.model or "of an unknown model", device.profile or "") if word)
    return f"{words}, scheme {device.scheme}"


def _use(device: DeviceReport) -> str:
    busy = "busy share unknown" if device.busy is None else f"{format_percent(device.busy)} busy"
    used, given, whole = (format_bytes(x) for x in (device.memory_used_bytes, device.memory_allocated_bytes, device.memory_bytes))
    return f"{busy}, of its memory {used} used and {given} given away of {whole}"


def _briefly(pod: DeviceHolder) -> str:
    mark = "about " if pod.estimated else ""
    return f"{pod.namespace}/{pod.name} ({mark}{format_percent(pod.busy)}, {format_bytes(pod.memory_used_bytes)})"


def _of_pod(device: DeviceReport, uid: str) -> str:
    own = next(pod for pod in device.pods if pod.uid == uid)
    others = len(device.pods) - 1
    given = "all of it" if own.exclusive else f"{format_bytes(own.memory_allocated_bytes)} of its memory"
    mark = ", by its part of what the device uses, not measured of the pod" if own.estimated else ""
    if not own.exclusive and own.memory_allocated_bytes is None:
        given = "a part of it without a limit of memory"
    parts = (
        f"{_kind(device)}, on node {device.node}",
        f"the pod was given {given} ({own.confidence})",
        f"it keeps it {format_percent(own.busy)} busy and uses {format_bytes(own.memory_used_bytes)}{mark}",
        _use(device) + (f", with {counted(others, 'other pod')}" if others else ""),
        "" if device.condition == OK else f"{device.condition}: {device.reason}",
    )
    return "; ".join(part for part in parts if part)
