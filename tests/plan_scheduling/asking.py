"""Questions about a small cluster, by the names of its pods and nodes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.plan.stock_scores import StockScores
from rebalancer.state.cluster import ClusterState
from rebalancer.state.scheduling import Requirement, Selector

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def row_of(state: ClusterState, name: str) -> int:
    return state.pods.names.index(name)


def app(name: str) -> Selector:
    """The selector ``app=name``."""
    return Selector((Requirement("app", "In", (name,)),))


def names_of(state: ClusterState, rows: Iterable[int]) -> set[str]:
    return {state.nodes.names[row] for row in rows}


def allowed(state: ClusterState, pod: str, *, leaving: bool = True, placements: Placements | None = None) -> set[str]:
    """Names of the nodes where a replacement may go."""
    feasibility = Feasibility(state, placements or Placements(state))
    return names_of(state, np.flatnonzero(feasibility.allowed(row_of(state, pod), leaving=leaving)).tolist())


def why_not(state: ClusterState, pod: str, node: str, *, placements: Placements | None = None) -> str:
    return Feasibility(state, placements or Placements(state)).why_not(row_of(state, pod), state.node_index[node])


def everywhere(state: ClusterState) -> np.ndarray:
    return np.ones(len(state.nodes.names), dtype=np.bool_)


def scores(state: ClusterState, pod: str, plugin: str) -> list[int]:
    """Scores of one plugin over all nodes, before its weight."""
    found = StockScores(state, Placements(state)).by_plugin(row_of(state, pod), everywhere(state))
    return [int(score) for score in found[plugin]]
