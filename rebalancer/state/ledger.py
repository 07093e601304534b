"""The load ledger: what is on a node now, from means that lag behind.

The mean of the last minutes does not fall when a pod leaves; what remains when the pods' own usage is taken out does. So

    residual(node) = max(0, measured(node) - departed(node) - sum of measured(pod) of the pods on it)
    usage(node)    = residual(node) + sum of usage(pod) of the pods on it now

A pod whose usage is unknown is inside the residual already, since its node was measured with it; a pod too young to be measured is
added with its estimate. Unknown node usage stays NaN.
"""

from __future__ import annotations

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase


def on_a_node(state: ClusterState) -> BoolArray:
    """(pods,) bool: bound and not finished, so it uses its node."""
    pods = state.pods
    finished: BoolArray = np.isin(pods.phase, (Phase.SUCCEEDED, Phase.FAILED))
    return np.asarray((pods.node >= 0) & ~finished, dtype=np.bool_)


def sum_by_node(state: ClusterState, values: FloatArray, mask: BoolArray) -> FloatArray:
    """Sum rows of ``values`` (pods, k) over the node of each pod under ``mask``; NaN counts as absent. Returns (nodes, k)."""
    columns = values.shape[1]
    total = np.zeros((len(state.nodes.names), columns))
    rows = np.flatnonzero(mask)
    node = state.pods.node[rows]
    for column in range(columns):
        part = values[rows, column]
        known = ~np.isnan(part)
        total[:, column] = np.bincount(node[known], weights=part[known], minlength=total.shape[0])
    return total


def node_residual(state: ClusterState) -> FloatArray:
    """(nodes, signals): measured usage that no pod explains; NaN where the node's usage is unknown."""
    pods_measured = sum_by_node(state, state.pods.measured, on_a_node(state))
    return np.maximum(0.0, state.nodes.usage - state.nodes.departed - pods_measured)


def node_usage(state: ClusterState) -> FloatArray:
    """(nodes, signals): usage of what is on the node now; NaN unknown."""
    usage = np.where(np.isnan(state.pods.usage), state.pods.measured, state.pods.usage)
    return node_residual(state) + sum_by_node(state, usage, on_a_node(state))


def node_deviation(state: ClusterState) -> FloatArray:
    """(nodes, signals): standard deviation of `node_usage`, as that of a sum of pods that swing each for itself.

    Pods that swing together (replicas that follow one day) swing more than this says; what no pod explains is taken to be steady, and a
    pod whose deviation is unknown adds nothing, so this is the least that is known.
    """
    return np.sqrt(sum_by_node(state, state.pods.deviation**2, on_a_node(state)))


def node_load(state: ClusterState) -> FloatArray:
    """(nodes, signals): `node_usage` as a share of capacity; may exceed 1; NaN unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        load = node_usage(state) / state.nodes.capacity
    return np.where(np.isfinite(load), load, np.nan)


def node_requested(state: ClusterState) -> FloatArray:
    """(nodes, resources): sum of requests of the pods that occupy the node, terminating ones included."""
    return sum_by_node(state, state.pods.request, on_a_node(state))


def node_packing(state: ClusterState) -> FloatArray:
    """(nodes, signals): requested / allocatable of the resource that a signal is compared with; NaN where there is none."""
    requested = node_requested(state)
    packing = np.full((len(state.nodes.names), len(state.signals)), np.nan)
    for column, signal in enumerate(state.signals):
        if signal.resource is None or signal.resource not in state.resource_index:
            continue
        resource = state.resource_index[signal.resource]
        allocatable = state.nodes.allocatable[:, resource]
        with np.errstate(divide="ignore", invalid="ignore"):
            packing[:, column] = np.where(allocatable > 0, requested[:, resource] / allocatable, np.nan)
    return packing
