"""Who stands on which node while a plan grows: the pods of the state, and the replacements that the plan has booked.

A pod that a plan evicts is terminating, not gone: until its object disappears it keeps its requests, host ports, claims and its part in
inter-pod affinity. Only topology spread forgets it at once. Its replacement counts on the destination from the moment it is booked. So
nothing ever leaves a node here, except from the counts of topology spread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, IntArray, frozen
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import on_a_node


@dataclass(frozen=True, slots=True)
class Booking:
    """A replacement of ``pod`` stands on ``destination``; ``source`` is -1 when the pod was pending."""

    pod: int
    source: int
    destination: int


class Occupancy:
    """The pods that the scheduler sees, with a log of bookings that every count can catch up on."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.occupying: BoolArray = on_a_node(state)
        """(pods,) bool: bound and not finished; finished pods are not seen by the scheduler at all."""
        frozen(self.occupying)
        self.bookings: list[Booking] = []
        self.rewinds = 0
        """How often bookings were taken back: whatever has caught up with the log before begins anew then."""
        self._booked: set[int] = set()

    def book(self, pod: int, destination: int) -> Booking:
        """Raises ValueError when the pod is booked already or the destination is not a node: a plan moves a pod once, to a place."""
        if pod in self._booked:
            raise ValueError(f"pod {self.state.pod_name(pod)} is booked already")
        if not 0 <= destination < len(self.state.nodes.names):
            raise ValueError(f"pod {self.state.pod_name(pod)} cannot be booked on node {destination}: there is no such row")
        source = int(self.state.pods.node[pod]) if self.occupying[pod] else -1
        booking = Booking(pod, source, destination)
        self._booked.add(pod)
        self.bookings.append(booking)
        return booking

    def rewind(self, count: int) -> None:
        """Forget all bookings but the first ``count``."""
        self._booked.difference_update(booking.pod for booking in self.bookings[count:])
        del self.bookings[count:]
        self.rewinds += 1

    def booked(self, pod: int) -> bool:
        return pod in self._booked

    def spread_source(self, pod: int) -> int:
        """The node where topology spread counts the pod before it is evicted, or -1 where it does not count it at all."""
        if not self.occupying[pod] or self.state.pods.terminating[pod]:
            return -1
        return int(self.state.pods.node[pod])

    def rows(self, *, terminating: bool) -> IntArray:
        """Rows of the pods that occupy a node in the state, with or without the terminating ones; bookings are not among them."""
        seen = self.occupying if terminating else self.occupying & ~self.state.pods.terminating
        return np.flatnonzero(seen)
