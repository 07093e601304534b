"""The pod that a controller will create for one that leaves: the subject of every filter and every score.

Most controllers create it while the old pod is still terminating, which then still holds its place. A StatefulSet cannot: its pods keep
their names, so the next one comes when the old one is gone, and finds the old place free.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.plan.ledger import Placements
from rebalancer.plan.neighbours import Crowd, without_one
from rebalancer.state.arrays import IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.scheduling import Constraints, LabelSet

DEFAULT_SCHEDULER = "default-scheduler"
NAMED = "statefulset.kubernetes.io/pod-name"
"""The label that StatefulSets, and what stands in for them, put on each of their pods."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """``leaving``: the pod itself is being evicted for it, so topology spread no longer counts the pod where it stands."""

    pod: int
    placements: Placements
    leaving: bool = True
    steered: frozenset[str] = frozenset((DEFAULT_SCHEDULER,))
    """Scheduler names whose placement can be predicted."""

    @property
    def state(self) -> ClusterState:
        return self.placements.state

    @property
    def constraints(self) -> Constraints:
        return self.state.constraints[int(self.state.pods.constraints[self.pod])]

    @property
    def label_set(self) -> int:
        """Row in ``ClusterState.label_sets``."""
        return int(self.state.pods.labels[self.pod])

    @property
    def labels(self) -> LabelSet:
        return self.state.label_sets[self.label_set]

    @property
    def namespace(self) -> str:
        return self.labels.namespace

    @property
    def vacated(self) -> int:
        """The node whose place the old pod has left altogether before the replacement comes; -1 where it is still there."""
        occupancy = self.placements.occupancy
        if not self.leaving or not occupancy.occupying[self.pod] or occupancy.booked(self.pod) or self.labels.get(NAMED) is None:
            return -1
        return int(self.state.pods.node[self.pod])

    @property
    def gone(self) -> int:
        """The old pod where nothing of it is left, else -1."""
        return self.pod if self.vacated >= 0 else -1

    def standing(self, crowd: Crowd) -> IntArray:
        """The nodes of a crowd as the replacement meets it, one entry a pod."""
        nodes, vacated = crowd.nodes(), self.vacated
        return without_one(nodes, vacated) if vacated >= 0 and crowd.has(self.pod) else nodes
