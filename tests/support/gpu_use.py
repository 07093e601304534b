"""What was measured of the GPUs of a state from `builder`: by node and place, and by pod.

measured(state, {("n1", 0): used(busy=0.9, memory="30Gi")}, {"serve": taken(busy=0.4, memory="11Gi")})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.state.cluster import ClusterState
from rebalancer.state.device_use import DeviceUse, HeldUse
from rebalancer.state.gpu import UNKNOWN
from rebalancer.units import parse_quantity


@dataclass(frozen=True)
class Used:
    """Of a device."""

    busy: float = UNKNOWN
    memory: float | str = UNKNOWN
    total: float | str = UNKNOWN
    busiest: float = UNKNOWN
    doubt: str = ""
    ailment: str = ""


@dataclass(frozen=True)
class Taken:
    """By a pod, of each device that it is on."""

    busy: float = UNKNOWN
    memory: float | str = UNKNOWN
    estimated: bool = False
    kernel_idle_s: float = UNKNOWN


used, taken = Used, Taken
NOT_MEASURED, NOTHING_KNOWN = Used(), Taken()


def measured(state: ClusterState, devices: Mapping[tuple[str, int], Used], pods: Mapping[str, Taken] | None = None) -> ClusterState:
    """The state with these measurements; of all other devices and pods nothing is known."""
    gpus = state.gpus
    first = np.searchsorted(gpus.devices.node, gpus.devices.node)
    names = [state.nodes.names[node] for node in gpus.devices.node.tolist()]
    places = (np.arange(len(gpus.devices)) - first).tolist()
    each = [devices.get(key, NOT_MEASURED) for key in zip(names, places, strict=True)]
    own = [(pods or {}).get(state.pods.names[pod], NOTHING_KNOWN) for pod in gpus.held.pod.tolist()]
    use = DeviceUse(
        busy=_column(one.busy for one in each),
        memory_bytes=_column(one.memory for one in each),
        total_bytes=_column(one.total for one in each),
        busiest=_column(one.busiest for one in each),
        age_s=np.full(len(each), 15.0),
        doubts=tuple(one.doubt for one in each),
        ailments=tuple(one.ailment for one in each),
    )
    held = HeldUse(
        busy=_column(one.busy for one in own),
        memory_bytes=_column(one.memory for one in own),
        estimated=np.array([one.estimated for one in own], dtype=np.bool_),
        kernel_idle_s=_column(one.kernel_idle_s for one in own),
    )
    return replace(state, gpus=replace(gpus, use=use, held_use=held))


def _column(values: Iterable[float | str]) -> np.ndarray:
    return np.array([parse_quantity(value) if isinstance(value, str) else float(value) for value in values], dtype=np.float64)
