"""Room on a node for a pod that waits: the cluster as it would be without some pods, asked by the same filters as for every replacement.

A plan that makes room needs more than sums: whether the pod would then really be scheduled is for all filters to say, devices included. So
the state itself is taken as it would be, and judged afresh. That costs a look at all pods, and is done for a few chosen sets only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.policy.gpu import Gpu
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray, frozen
from rebalancer.state.cluster import ClusterState
from rebalancer.state.device_use import HeldUse
from rebalancer.state.devices import DevicePods, Gpus
from rebalancer.state.tables import Phase


def without(state: ClusterState, gone: Collection[int], *, placed: Mapping[int, int] | None = None) -> ClusterState:
    """The state once the pods in ``gone`` have left, and those in ``placed`` (pod -> node) have come."""
    pods = state.pods
    leaving: IntArray = np.array(sorted(gone), dtype=np.int64)
    phase, node = pods.phase.copy(), pods.node.copy()
    phase[leaving] = int(Phase.SUCCEEDED)
    for pod, at in (placed or {}).items():
        phase[pod], node[pod] = int(Phase.RUNNING), at
    for column in (phase, node):
        frozen(column)
    return replace(state, pods=replace(pods, phase=phase, node=node), gpus=_without(state, leaving, placed or {}))


def _without(state: ClusterState, leaving: IntArray, placed: Mapping[int, int]) -> Gpus:
    """Devices that nobody holds any more; a pod that has come may be on any device of its node."""
    gpus = state.gpus
    if not len(gpus.pod):
        return gpus
    stays = ~np.isin(gpus.held.pod, leaving)
    held, own = gpus.held, gpus.held_use
    come: IntArray = np.array([pod for pod in placed if gpus.asks_of(pod)], dtype=np.int64)
    return replace(
        gpus,
        held=DevicePods(
            device=held.device[stays],
            pod=held.pod[stays],
            compute=held.compute[stays],
            memory_bytes=held.memory_bytes[stays],
            exclusive=held.exclusive[stays],
            confidence=held.confidence[stays],
        ),
        held_use=HeldUse(
            busy=own.busy[stays],
            memory_bytes=own.memory_bytes[stays],
            estimated=own.estimated[stays],
            kernel_idle_s=own.kernel_idle_s[stays],
        )
        if len(own)
        else own,
        use=replace(gpus.use, memory_bytes=_emptied(gpus, stays)) if len(gpus.use) else gpus.use,
        unplaced=np.union1d(gpus.unplaced[~np.isin(gpus.unplaced, leaving)], come),
    )


def _emptied(gpus: Gpus, stays: BoolArray) -> FloatArray:
    """(devices,) memory in use once some pairs are gone: without what each was measured to hold; nothing on a device that nobody is left
    on. Where others stay and it is not known what one takes along, it stays as it is, and what is not
    known of a device is not known without them."""
    held, used = gpus.held, gpus.use.memory_bytes.copy()
    gone = ~stays
    touched = np.unique(held.device[gone])
    taken: FloatArray = np.zeros(len(used))
    if len(gpus.held_use):
        mine = np.nan_to_num(gpus.held_use.memory_bytes[gone])
        taken = np.bincount(held.device[gone], weights=mine, minlength=len(used)).astype(np.float64)
    left = np.bincount(held.device[stays], minlength=len(used))
    used[touched] = np.where(left[touched] == 0, 0.0 * used[touched], np.maximum(0.0, used[touched] - taken[touched]))
    return used


def where_it_fits(state: ClusterState, pod: int, *, gpu: Gpu | None = None) -> BoolArray:
    """(nodes,): where kube-scheduler would put the waiting pod in such a state. Room that others are leaving is not free yet."""
    return Feasibility(state, Placements(state, gpu)).allowed(pod, leaving=False)
