"""Questions about the devices of a small cluster, by the names of its pods and nodes."""

from __future__ import annotations

import numpy as np

from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.plan.gpu.refusing import why_impossible, why_not
from rebalancer.policy.gpu import Gpu
from rebalancer.state.cluster import ClusterState
from rebalancer.units import parse_quantity
from tests.support.builder import NodeSpec, node
from tests.support.gpu_use import Taken, Used, measured, used
from tests.support.gpus import DeviceSpec

BY_REQUEST = Gpu(unmeasured="by-request")


def gpus_of(name: str, *devices: DeviceSpec) -> NodeSpec:
    return node(name, gpus=devices)


def with_use(
    state: ClusterState, devices: dict[tuple[str, int], Used] | None = None, pods: dict[str, Taken] | None = None, *, idle: str = "0"
) -> ClusterState:
    """Devices that nothing is said of use ``idle`` of their memory."""
    table, given = state.gpus.devices, devices or {}
    first = np.searchsorted(table.node, table.node)
    keys = [(state.nodes.names[at], row - int(start)) for row, (at, start) in enumerate(zip(table.node.tolist(), first, strict=True))]
    return measured(state, {key: given.get(key, used(memory=parse_quantity(idle))) for key in keys}, pods)


def row(state: ClusterState, pod: str) -> int:
    return state.pods.names.index(pod)


def possible(state: ClusterState, pod: str, *, book: DeviceBook | None = None) -> set[str]:
    """Nodes where the pod's scheme would find a device for it."""
    return _names(state, (book or DeviceBook(state)).possible(row(state, pod)))


def fits(state: ClusterState, pod: str, *, book: DeviceBook | None = None, policy: Gpu | None = None) -> set[str]:
    """Nodes that fit the pod."""
    return _names(state, (book or DeviceBook(state, policy)).fits(row(state, pod)))


def why(state: ClusterState, pod: str, at: str, *, book: DeviceBook | None = None, policy: Gpu | None = None) -> str:
    return why_not(book or DeviceBook(state, policy), row(state, pod), state.node_index[at])


def why_never(state: ClusterState, pod: str, at: str) -> str:
    return why_impossible(DeviceBook(state), row(state, pod), state.node_index[at])


def _names(state: ClusterState, mask: np.ndarray) -> set[str]:
    return {state.nodes.names[at] for at in np.flatnonzero(mask).tolist()}
