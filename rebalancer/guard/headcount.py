"""How many pods there are of everything that a limit is a share of, counted once a scene instead of once a candidate.

Counts are of the state as it was read; what the growing plan adds is in `Booked`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress

import numpy as np

from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase


@dataclass(frozen=True, slots=True)
class Headcount:
    """``total`` and the first four ``by_*`` count running pods: bound, phase Running, terminating ones included."""

    total: int
    by_node: IntArray
    """(nodes,)"""
    by_namespace: Mapping[str, int]
    by_workload: IntArray
    """(workloads,)"""
    by_tenant: IntArray
    """(tenants,)"""
    terminating: IntArray
    """(workloads,): pods that are on their way out."""
    unready: IntArray
    """(workloads,): pods that are neither Ready nor finished nor terminating."""
    arriving: BoolArray
    """(pods,): pods that look like a replacement under way: Pending at any age, or not Ready and younger than ``settle_s``."""
    arrivals: IntArray
    """(workloads,): how many of them."""
    group_members: Mapping[tuple[str, str], int]
    """(namespace, scheduling group) -> pods that are not finished, pending ones included."""


def _by(rows: IntArray, mask: BoolArray, size: int) -> IntArray:
    """(size,): how often each row is named under the mask; -1 names nothing."""
    chosen = rows[mask]
    return np.bincount(chosen[chosen >= 0], minlength=size).astype(np.int64)


def count_heads(state: ClusterState, *, settle_s: float) -> Headcount:
    """Count. A pod that has not become Ready ``settle_s`` after its creation is broken rather than arriving."""
    pods = state.pods
    running: BoolArray = (pods.phase == Phase.RUNNING) & (pods.node >= 0)
    unfinished: BoolArray = ~np.isin(pods.phase, (Phase.SUCCEEDED, Phase.FAILED))
    live: BoolArray = unfinished & ~pods.terminating
    unready: BoolArray = live & ~pods.ready
    settled: BoolArray = state.at - pods.created_at >= settle_s
    arriving: BoolArray = unready & ((pods.phase == Phase.PENDING) | ~settled)
    workloads = len(state.workloads.refs)
    return Headcount(
        total=int(running.sum()),
        by_node=_by(pods.node, running, len(state.nodes.names)),
        by_namespace=Counter(compress(pods.namespaces, running.tolist())),
        by_workload=_by(pods.workload, running, workloads),
        by_tenant=_by(pods.tenant, running, len(state.tenants)),
        terminating=_by(pods.workload, pods.terminating, workloads),
        unready=_by(pods.workload, unready, workloads),
        arriving=arriving,
        arrivals=_by(pods.workload, arriving, workloads),
        group_members=Counter(
            (pods.namespaces[row], pods.scheduling_group[row]) for row in np.flatnonzero(unfinished).tolist() if pods.scheduling_group[row]
        ),
    )
