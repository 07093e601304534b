"""What this project says about the next placement of a pod, from the real API objects: the same calls that a plan makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import read_cluster
from rebalancer.collect.samples import Samples
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.plan.stock_scores import StockScores
from rebalancer.state.cluster import ClusterState

NO_SAMPLES = Samples(signals=(), window_s=300.0, step_s=60.0, windows=1)
READ_S = 30.0


@dataclass(frozen=True)
class Prediction:
    """``allowed``: nodes that pass our filters; ``best``: those of them that share the best score, where the pod is expected."""

    allowed: frozenset[str]
    best: frozenset[str]
    tally: Mapping[str, int]
    """What rejects the other nodes, first rejection each -> nodes."""
    scores: Mapping[str, Mapping[str, int]]
    """node -> plugin -> score before its weight."""
    totals: Mapping[str, float]
    why: Mapping[str, str]
    """node -> what rejects it."""


class Predictor:
    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def state(self, at: float) -> ClusterState:
        return assemble(read_cluster(self._client, deadline=Deadline.after(READ_S)), NO_SAMPLES, at=at)

    def predict(self, uid: str, *, leaving: bool, at: float) -> Prediction:
        """``leaving``: the pod stands on a node and is about to be evicted; else it waits to be scheduled."""
        return predict(self.state(at), uid, leaving=leaving)


def predict(state: ClusterState, uid: str, *, leaving: bool) -> Prediction:
    pod, names = state.pods.uids.index(uid), state.nodes.names
    placements = Placements(state)
    feasibility, scores = Feasibility(state, placements), StockScores(state, placements)
    mask = feasibility.allowed(pod, leaving=leaving)
    allowed = [names[row] for row in mask.nonzero()[0]]
    totals = scores.total(pod, mask)
    return Prediction(
        allowed=frozenset(allowed),
        best=frozenset(names[row] for row in scores.best(pod, mask)),
        tally=feasibility.tally(pod, leaving=leaving),
        scores={name: {plugin: int(row[at]) for plugin, row in scores.by_plugin(pod, mask).items()} for at, name in enumerate(allowed)},
        totals={name: float(totals[row]) for row, name in enumerate(names) if mask[row]},
        why={name: feasibility.why_not(pod, row, leaving=leaving) for row, name in enumerate(names) if not mask[row]},
    )


@contextmanager
def predictor(kubeconfig: Path) -> Iterator[Predictor]:
    client = KubeClient.connect(kubeconfig=kubeconfig, context=None)
    try:
        yield Predictor(client)
    finally:
        client.close()
