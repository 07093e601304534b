"""The bookings of a growing plan: what each node still has to give, and who stands where.

Copy-on-write over the state: `Placements` never changes the `ClusterState` it was made from, and one plan uses one instance. Amounts are
kept in the scheduler's own whole units (millicores, bytes, pieces), so that ten times 100m is exactly 1; `free` shows them in
canonical units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.plan.holders import Holders
from rebalancer.plan.neighbours import Neighbours
from rebalancer.plan.node_rules import NodeRules
from rebalancer.plan.occupancy import Occupancy
from rebalancer.policy.gpu import Gpu
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState

MILLI = 1000.0
_NOISE = 1e-6
"""What floating point may have added to a whole number of millicores; far below one, far above the error of 1e5 cores."""


def whole_units(values: FloatArray, scale: FloatArray) -> FloatArray:
    """Amounts in whole units, rounded up as kube-scheduler does; NaN stays NaN."""
    return np.ceil(values * scale - _NOISE) + 0.0


@dataclass(frozen=True, slots=True)
class _Before:
    """The row of a node as it was before a booking; restored as it was, not computed back."""

    node: int
    requested: FloatArray
    free_units: FloatArray
    free: FloatArray
    scored: FloatArray
    devices: int
    """Mark of the book of devices."""


class Placements:
    """Amounts and neighbours of every node under the plan so far.

    The replacement that `book` places counts on its destination at once. The evicted pod still occupies its source with everything but
    topology spread, until its object is gone; what a pod leaves behind for its own replacement, `Replacement` knows.
    """

    def __init__(self, state: ClusterState, gpu: Gpu | None = None) -> None:
        self.state = state
        self.devices = DeviceBook(state, gpu)
        self.occupancy = Occupancy(state)
        self.rules = NodeRules(state)
        self.neighbours = Neighbours(self.occupancy)
        self.holders = Holders(self.occupancy, self.neighbours)
        self.scale: FloatArray = np.where(np.array(state.resources) == "cpu", MILLI, 1.0)
        """(resources,): whole units in one canonical unit."""
        self.allocatable_units: FloatArray = whole_units(state.nodes.allocatable, self.scale)
        """(nodes, resources)."""
        self.requested_units: FloatArray = self._sum(state.pods.request, self.scale)
        """(nodes, resources): the scheduler's ``Requested``."""
        self.free_units: FloatArray = np.asfortranarray(self.allocatable_units - self.requested_units)
        """(nodes, resources): may be negative; NaN, which nothing fits into, where a request is unknown."""
        self.scored_units: FloatArray = self._sum(state.pods.scored_request, np.array([MILLI, 1.0]))
        """(nodes, 2): millicores and bytes, the scheduler's ``NonZeroRequested``."""
        amounts = np.concatenate((self.free_units, self.scored_units), axis=1)
        self.known: BoolArray = np.asarray(np.isfinite(amounts).all(axis=1), dtype=np.bool_)
        """(nodes,): every amount of the node is known. Nothing is placed on the others."""
        self.pod_count: IntArray = np.bincount(state.pods.node[self.occupancy.occupying], minlength=len(state.nodes.names)).astype(np.int64)
        """(nodes,): pods that the scheduler sees on the node."""
        self._free: FloatArray = self.free_units / self.scale
        self._before: list[_Before] = []

    @cached_property
    def free(self) -> FloatArray:
        """(nodes, resources) in canonical units: allocatable - requested, bookings included. A live, read-only view."""
        view = self._free.view()
        view.setflags(write=False)
        return view

    def book(self, pod: int, destination: int) -> None:
        """Place a replacement of the pod. Raises ValueError when the pod is booked already or the destination is not a node."""
        self.occupancy.book(pod, destination)
        rows = (self.requested_units, self.free_units, self._free, self.scored_units)
        requested, free_units, free, scored = (row[destination].copy() for row in rows)
        self._before.append(_Before(destination, requested, free_units, free, scored, self.devices.mark()))
        asked = self.incoming_units(pod)
        self.requested_units[destination] += asked
        self.free_units[destination] -= asked
        self._free[destination] = self.free_units[destination] / self.scale
        self.scored_units[destination] += self.scored_bound_units(pod)
        self.pod_count[destination] += 1
        if self.devices.asks(pod):
            self.devices.book(pod, destination)

    def mark(self) -> int:
        """Where `rewind` goes back to."""
        return len(self._before)

    def rewind(self, mark: int) -> None:
        """Take back everything that was booked since the mark."""
        while len(self._before) > mark:
            before = self._before.pop()
            self.requested_units[before.node], self.free_units[before.node] = before.requested, before.free_units
            self._free[before.node], self.scored_units[before.node] = before.free, before.scored
            self.pod_count[before.node] -= 1
            self.devices.undo(before.devices)
        self.occupancy.rewind(mark)

    def incoming_units(self, pod: int) -> FloatArray:
        """(resources,): what a replacement asks for."""
        return whole_units(self.state.pods.incoming_request[pod], self.scale)

    def bound_units(self, pod: int) -> FloatArray:
        """(resources,): what the pod takes from its node as long as it is there."""
        return whole_units(self.state.pods.request[pod], self.scale)

    def scored_bound_units(self, pod: int) -> FloatArray:
        """(2,): millicores and bytes of the pod on a node with the scheduler's defaults for containers that request nothing."""
        return whole_units(self.state.pods.scored_request[pod], np.array([MILLI, 1.0]))

    def scored_incoming_units(self, pod: int) -> FloatArray:
        """(2,): the same while a replacement is scored, without pod-level requests."""
        return whole_units(self.state.pods.scored_incoming[pod], np.array([MILLI, 1.0]))

    def _sum(self, amounts: FloatArray, scale: FloatArray) -> FloatArray:
        """Sum (pods, k) over the node of each pod that occupies one. Unlike a load, an unknown request is not left out: it stays NaN."""
        rows = self.occupancy.rows(terminating=True)
        units, node = whole_units(amounts[rows], scale), self.state.pods.node[rows]
        size = len(self.state.nodes.names)
        total = np.zeros((size, amounts.shape[1]))
        for column in range(amounts.shape[1]):
            total[:, column] = np.bincount(node, weights=units[:, column], minlength=size)
        return total
