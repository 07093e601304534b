"""How many pods there are of everything that a limit is a share of, counted once a scene instead of once a candidate.

Counts are of the state as it was read; what the growing plan adds is in `Booked`. Each is made when a gate first asks for it: most policies
give their limits as numbers, and a count of 300,000 pods that nobody asks for is time lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np

from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase


@dataclass(frozen=True)
class Headcount:
    """``total`` and the first four ``by_*`` count running pods: bound, phase Running, terminating ones included.

    ``settle_s``: a pod that has not become Ready so long after its creation is broken rather than arriving. Not slotted, for the counts.
    """

    state: ClusterState
    settle_s: float

    @cached_property
    def running(self) -> BoolArray:
        """(pods,)"""
        pods = self.state.pods
        return np.asarray((pods.phase == int(Phase.RUNNING)) & (pods.node >= 0), dtype=np.bool_)

    @cached_property
    def unfinished(self) -> BoolArray:
        """(pods,)"""
        phase = self.state.pods.phase
        return np.asarray((phase != int(Phase.SUCCEEDED)) & (phase != int(Phase.FAILED)), dtype=np.bool_)

    @cached_property
    def total(self) -> int:
        return int(self.running.sum())

    @cached_property
    def by_node(self) -> IntArray:
        """(nodes,)"""
        return _by(self.state.pods.node, self.running, len(self.state.nodes.names))

    @cached_property
    def by_namespace(self) -> Mapping[str, int]:
        return Counter(compress(self.state.pods.namespaces, self.running.tolist()))

    @cached_property
    def by_workload(self) -> IntArray:
        """(workloads,)"""
        return self._by_workload(self.running)

    @cached_property
    def by_tenant(self) -> IntArray:
        """(tenants,)"""
        return _by(self.state.pods.tenant, self.running, len(self.state.tenants))

    @cached_property
    def terminating(self) -> IntArray:
        """(workloads,): pods that are on their way out."""
        return self._by_workload(self.state.pods.terminating)

    @cached_property
    def not_ready(self) -> BoolArray:
        """(pods,): neither Ready nor finished nor terminating."""
        pods = self.state.pods
        return np.asarray(self.unfinished & ~pods.terminating & ~pods.ready, dtype=np.bool_)

    @cached_property
    def unready(self) -> IntArray:
        """(workloads,): pods that are neither Ready nor finished nor terminating."""
        return self._by_workload(self.not_ready)

    @cached_property
    def arriving(self) -> BoolArray:
        """(pods,): pods that look like a replacement under way: Pending at any age, or not Ready and younger than ``settle_s``."""
        pods = self.state.pods
        settled = self.state.at - pods.created_at >= self.settle_s
        return np.asarray(self.not_ready & ((pods.phase == int(Phase.PENDING)) | ~settled), dtype=np.bool_)

    @cached_property
    def arrivals(self) -> IntArray:
        """(workloads,): how many of them."""
        return self._by_workload(self.arriving)

    @cached_property
    def group_members(self) -> Mapping[tuple[str, str], int]:
        """(namespace, scheduling group) -> pods that are not finished, pending ones included."""
        pods = self.state.pods
        members = compress(zip(pods.namespaces, pods.scheduling_group, strict=True), self.unfinished.tolist())
        return Counter(member for member in members if member[1])

    def _by_workload(self, mask: BoolArray) -> IntArray:
        return _by(self.state.pods.workload, mask, len(self.state.workloads.refs))


def _by(rows: IntArray, mask: BoolArray, size: int) -> IntArray:
    """(size,): how often each row is named under the mask; -1 names nothing."""
    chosen = rows[mask]
    return np.bincount(chosen[chosen >= 0], minlength=size).astype(np.int64)
