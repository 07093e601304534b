"""The pod that a controller will create for one that leaves: the subject of every filter and every score."""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.plan.ledger import Placements
from rebalancer.state.cluster import ClusterState
from rebalancer.state.scheduling import Constraints, LabelSet

DEFAULT_SCHEDULER = "default-scheduler"


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
