"""The tables of GPUs in sentences: what was found, how sure it is, and what does not go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rebalancer.gpu.meters.devices import unmeasured
from rebalancer.state.devices import Confidence, DeviceFault, FaultReason, Gpus

_SURE = (Confidence.ALLOCATED, Confidence.DECLARED, Confidence.REPORTED, Confidence.INFERRED)
_WORDS = {
    Confidence.ALLOCATED: "as allocated",
    Confidence.DECLARED: "by their scheduler's word",
    Confidence.REPORTED: "by labels of exporters",
    Confidence.INFERRED: "by counting",
}
_SHOWN = 5
UNMEASURED_REMEDY = "see whether the exporter runs on those nodes, and whether Prometheus scrapes it there"
REMEDIES: Mapping[FaultReason, str] = {
    FaultReason.UNREADABLE_ASK: "mend the annotation or resource of the pod, or name the resource in the policy's gpu section",
    FaultReason.MIXED_ASK: "ask for devices in one way",
    FaultReason.UNREADABLE_NODE: "see the agent that writes the label or annotation",
    FaultReason.DEVICES_DISAGREE: "see which agent of the node is out of date, and restart it",
    FaultReason.TWO_SCHEMES: "leave one device plugin on the node",
    FaultReason.UNREADABLE_PLACE: "see the scheduler that writes the annotation",
    FaultReason.NO_SUCH_DEVICE: "see whether the device is lost, or its agent has not registered it yet",
    FaultReason.WRONG_NODE: "restart the pod, so that its scheduler places it anew",
    FaultReason.MISSING_OBJECT: "see what became of the claim or of the reservation pod",
}


def summary(gpus: Gpus) -> str:
    """How many devices there are, and of how many pods they are known; empty where there are none and nobody asks."""
    devices = gpus.devices
    if not len(devices) and not len(gpus.pod):
        return ""
    schemes = Counter(scheme.value for scheme in devices.schemes)
    by_scheme = ", ".join(f"{count} {scheme}" for scheme, count in sorted(schemes.items()))
    nodes = len(np.unique(devices.node))
    # A pod is placed as surely as the least sure of its devices.
    pods, first = np.unique(gpus.held.pod, return_index=True)
    sure = np.minimum.reduceat(gpus.held.confidence[np.argsort(gpus.held.pod, kind="stable")], first) if len(pods) else gpus.held.confidence
    ways = ", ".join(f"{count} {_WORDS[way]}" for way in _SURE if (count := int((sure == way).sum())))
    found = f"{len(devices)} devices on {nodes} nodes ({by_scheme})" if by_scheme else "no devices"
    lost = f"; of {len(gpus.unplaced)} pods the device is not known" if len(gpus.unplaced) else ""
    return f"{found}; {len(pods)} pods are placed on them{f' ({ways})' if ways else ''}{lost}"


def unmeasured_words(gpus: Gpus, nodes: Sequence[str]) -> str:
    """Which nodes have devices that no fresh sample measures, where exporters measure some; empty where all are, or none is. ``nodes``:
    names by row."""
    silent, count = unmeasured(gpus.devices, gpus.use), len(gpus.use)
    if not silent or len(silent) == count:
        return ""
    rows = np.unique(gpus.devices.node[silent]).tolist()
    shown = ", ".join(nodes[row] for row in rows[:_SHOWN]) + (f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else "")
    of = len(np.unique(gpus.devices.node))
    return f"exporters measure {count - len(silent)} of {count} devices; some are not measured on {len(rows)} of {of} nodes: {shown}"


def by_reason(faults: Sequence[DeviceFault]) -> Mapping[FaultReason, Sequence[DeviceFault]]:
    """In the order of the reasons, without those that do not occur."""
    return {reason: found for reason in FaultReason if (found := [fault for fault in faults if fault.reason is reason])}


def fault_words(faults: Sequence[DeviceFault]) -> str:
    """Of faults of one reason: the first, and how many more."""
    more = f" (and {len(faults) - 1} more like it)" if len(faults) > 1 else ""
    return f"{faults[0].sentence}{more}"


NOTE = "GPUs: "
"""How notes about them begin."""


def notes_of(gpus: Gpus) -> tuple[str, ...]:
    """For the coverage: each sort of fault once."""
    return tuple(f"{NOTE}{fault_words(found)}" for found in by_reason(gpus.faults).values())
