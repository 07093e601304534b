"""Where kube-scheduler would put a replacement: its default scores over the nodes that are feasible, and the nodes within the maximum.

Weights and formulas of 1.36: NodeResourcesFit 1, NodeResourcesBalancedAllocation 1, TaintToleration 3, NodeAffinity 2,
PodTopologySpread 2, InterPodAffinity 2. Left out: ImageLocality (weight 1), since image lists are long and say little between nodes that
run the same workloads; and DynamicResources, since pods with resource claims are not moved. Normalised scores depend on which nodes are
feasible, so a score of one node means nothing without its companions.

In clusters of 100 nodes and more the scheduler looks at a window of `sample_size` feasible nodes, not at all of them; the best nodes here
are then the likely destinations, not the certain ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rebalancer.plan.ledger import Placements
from rebalancer.plan.replacement import Replacement
from rebalancer.plan.scores_nodes import node_affinity, taint_toleration
from rebalancer.plan.scores_pods import inter_pod_affinity
from rebalancer.plan.scores_resources import balanced_allocation, least_allocated
from rebalancer.plan.scores_spread import topology_spread
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState

WEIGHTS: Mapping[str, int] = {
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
}


def sample_size(nodes: int) -> int:
    """How many feasible nodes the scheduler looks for before it stops, with the default percentageOfNodesToScore."""
    if nodes < 100:
        return nodes
    percent = max(5, 50 - nodes // 125)
    return max(100, nodes * percent // 100)


class StockScores:
    """``own_taints``: (nodes, `grades.SOFT_TAINTS`) who will carry which soft taint of this project; None: as in the state."""

    def __init__(self, state: ClusterState, placements: Placements, *, own_taints: BoolArray | None = None) -> None:
        if placements.state is not state:
            raise ValueError("the placements were made from another state")
        self._nodes = len(state.nodes.names)
        self._placements = placements
        self._own_taints = own_taints

    def by_plugin(self, pod: int, feasible: BoolArray) -> Mapping[str, IntArray]:
        """Plugin -> (feasible nodes,) score 0..100 before its weight, in the order of ``np.flatnonzero(feasible)``."""
        rows, replacement = np.flatnonzero(feasible), Replacement(pod, self._placements)
        return {
            "NodeResourcesFit": least_allocated(replacement, rows),
            "NodeResourcesBalancedAllocation": balanced_allocation(replacement, rows),
            "TaintToleration": taint_toleration(replacement, rows, self._own_taints),
            "NodeAffinity": node_affinity(replacement, rows),
            "PodTopologySpread": topology_spread(replacement, rows),
            "InterPodAffinity": inter_pod_affinity(replacement, rows),
        }

    def total(self, pod: int, feasible: BoolArray) -> FloatArray:
        """(nodes,) weighted sum for a replacement of the pod, which is leaving its node; -inf where not feasible."""
        total = np.full(self._nodes, -np.inf)
        scores = self.by_plugin(pod, feasible)
        total[feasible] = sum((WEIGHTS[name] * score for name, score in scores.items()), np.zeros(int(feasible.sum()), dtype=np.int64))
        return total

    def best(self, pod: int, feasible: BoolArray) -> IntArray:
        """Rows of all nodes with the maximum score, ascending; empty when none is feasible.

        Ties are arbitrary to an outsider: the scheduler breaks them by positions that depend on parallel workers and a rotating start.
        """
        if not feasible.any():
            return np.empty(0, dtype=np.int64)
        total = self.total(pod, feasible)
        return np.flatnonzero(total == total.max())
