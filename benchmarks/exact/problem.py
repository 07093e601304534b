"""What a plan may do, as arrays: which pods may go, where each may go to, what it takes along, and how many may go of each kind.

The yardstick keeps to these rules:

- Pods: those that the gates let go when nothing is planned yet (`guard.gate.first_refusal`; ``limits=False``: only the static gates).
- Places: nodes of the source's pool whose load is known on every judged signal, and that the scheduler's filters leave when nothing is
  planned yet (`plan.feasibility`): labels, taints, affinity, spreading, ports and room as they are at the start.
- Room: all that come to a node fit, by request, into what it has free and what leaves it in the same plan.
- Loads are known means, constant, and move with the pod; room for swings (``risk.deviations``) is not asked for. Which load a node may have
  at most is the question's matter (`ceilings`).
- Each pod moves once, and (``limits=True``) no more pods move than disruption budgets, the rule of one pod of a workload at a time and the
  policy's budgets let go.

It does not keep to what is a rule of ours, and no law of the cluster: that a destination must be at or under target before (unless
``Places.UNDER_TARGET``), that the scheduler chooses (unless ``Places.PREDICTED``), that a move must win so and so much, that one hot node
is drained after the other. What a plan changes in the scheduler's filters, but for room, is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from benchmarks.exact.caps import Caps, caps_of
from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.guard.gate import Candidate, first_refusal
from rebalancer.plan.destination import Landing
from rebalancer.plan.ledger import whole_units
from rebalancer.plan.method import Bench
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.ledger import on_a_node


class Places(Enum):
    """Where a pod may go, of the nodes that pass the filters."""

    FREE = "any node"
    UNDER_TARGET = "nodes at or under target before the plan"
    PREDICTED = "the nodes that kube-scheduler would choose for it if it were the first to go"


@dataclass(frozen=True, slots=True)
class Problem:
    """``P`` pods that may move, ``N`` nodes, ``S`` signals, ``R`` resources. One use: not changed by solving."""

    findings: Findings
    pods: IntArray
    """(P,): row in `Pods`."""
    source: IntArray
    """(P,): row in `Nodes`."""
    capacity: FloatArray
    """(N, S)."""
    load: FloatArray
    """(N, S): before the plan; NaN unknown."""
    share: FloatArray
    """(P, N, S): what the pod would take of each node; 0 where the node is not judged by the signal."""
    open: BoolArray
    """(P, N): the pod may go to the node; never its source."""
    free: FloatArray
    """(N, R): what is not requested, whole units; NaN where unknown, and then nobody may go there."""
    asked: FloatArray
    """(P, R): what a replacement asks for."""
    given_back: FloatArray
    """(P, R): what the pod frees on its source."""
    caps: tuple[Caps, ...]

    @property
    def known(self) -> BoolArray:
        """(N,): nodes of a pool, known on every judged signal."""
        return np.asarray(self.findings.node_class != int(NodeClass.UNKNOWN), dtype=np.bool_)

    def strain(self, load: FloatArray) -> float:
        """The worst load of the cluster as a share of its ``high`` mark, over known nodes and judged signals; 0 when there are none."""
        f = self.findings
        counted = f.judged & self.known[:, None]
        return float(np.max((load / f.high)[counted], initial=0.0))

    def load_after(self, moves: tuple[tuple[int, int], ...]) -> FloatArray:
        """(N, S) when the pods (positions in ``pods``) have gone to the nodes."""
        load = self.load.copy()
        for position, node in moves:
            source = self.source[position]
            load[source] -= self.share[position, source]
            load[node] += self.share[position, node]
        return load


def pose(bench: Bench, *, limits: bool = True, places: Places = Places.FREE) -> Problem:
    """The problem of a fresh bench (`plan.planner.lay_bench`), on which nothing is booked. Raises ValueError when something is."""
    if bench.scene.booked.total:
        raise ValueError("something is booked on the bench already")
    state, f = bench.scene.state, bench.findings
    known: BoolArray = np.asarray(f.node_class != int(NodeClass.UNKNOWN), dtype=np.bool_)
    there = [pod for pod in np.flatnonzero(on_a_node(state)).tolist() if known[state.pods.node[pod]]]
    gates = None if limits else True
    free_to_go = [pod for pod in there if first_refusal(Candidate(pod, int(state.pods.node[pod])), bench.scene, static=gates) is None]
    pods: IntArray = np.array(free_to_go, dtype=np.int64)
    source: IntArray = np.asarray(state.pods.node[pods], dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = state.pods.usage[pods][:, None, :] / state.nodes.capacity[None, :, :]
    judged = f.judged[None, :, :] & known[None, :, None]
    here = bench.placements
    return Problem(
        findings=f,
        pods=pods,
        source=source,
        capacity=state.nodes.capacity,
        load=f.load,
        share=np.where(judged, share, 0.0),
        open=_open(bench, pods, source, known, places),
        free=here.free_units.copy(),
        asked=whole_units(state.pods.incoming_request[pods], here.scale),
        given_back=whole_units(state.pods.request[pods], here.scale),
        caps=caps_of(bench.scene, pods) if limits else (),
    )


def _open(bench: Bench, pods: IntArray, source: IntArray, known: BoolArray, places: Places) -> BoolArray:
    """(P, N)."""
    f = bench.findings
    table = np.zeros((len(pods), len(known)), dtype=np.bool_)
    for position, pod in enumerate(pods.tolist()):
        if places is Places.PREDICTED:
            landing = bench.destinations.predict(pod, int(source[position]))
            if isinstance(landing, Landing):
                table[position, [landing.destination, *landing.alternatives]] = True
        else:
            table[position] = bench.feasibility.allowed(pod)
    table &= known[None, :] & (f.pool[None, :] == f.pool[source][:, None])
    table[np.arange(len(pods)), source] = False
    if places is Places.UNDER_TARGET:
        with np.errstate(invalid="ignore"):
            warm = np.flatnonzero((f.judged & (f.load > f.target)).any(axis=1))
        table[:, warm] = False
    return table


def ceilings(problem: Problem) -> FloatArray:
    """(N, S): the load that each node may have after a plan that cures. Inf where a load is not judged or not known.

    A hot node: its target. Another: the limit of a destination, half way from ``target`` to ``high`` (`plan.destination`), or what it has
    already if that is more.
    """
    f = problem.findings
    hot = (f.node_class == int(NodeClass.HOT))[:, None]
    limit = f.target + (f.high - f.target) / 2
    counted = f.judged & problem.known[:, None]
    return np.where(counted, np.where(hot, f.target, np.fmax(limit, f.load)), np.inf)
