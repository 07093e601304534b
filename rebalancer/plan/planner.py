"""The whole decision: (state, findings, policy, history) -> plan. The same call in dry run, replay, simulation and production."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.guard.gate import Booked, Scene
from rebalancer.plan.balance import Balance
from rebalancer.plan.destination import Destinations
from rebalancer.plan.document import document
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.heat import LoadBook
from rebalancer.plan.ledger import Placements
from rebalancer.plan.method import Bench, Method, Proposal
from rebalancer.plan.model import Plan
from rebalancer.plan.stock_scores import StockScores
from rebalancer.plan.tolerations import HOT_TAINT, SOFT
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History

METHODS: tuple[Method, ...] = (Balance(),)
"""In the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan as a document, and the rows it was made from, for whoever acts on it or explains it."""

    plan: Plan
    proposal: Proposal
    bench: Bench


def decide(
    *,
    state: ClusterState,
    findings: Findings,
    policy: RebalancePolicy,
    history: History,
    mode: Mode,
    mode_source: str = "",
    methods: tuple[Method, ...] = METHODS,
) -> Decision:
    """Try the methods in order; the first proposal with moves is the plan, else the last one, whose outcome says why nothing is done."""
    proposal: Proposal | None = None
    bench: Bench | None = None
    for method in methods:
        bench = lay_bench(state=state, findings=findings, policy=policy, history=history, mode=mode)
        proposal = method.propose(bench)
        if proposal.moves:
            break
    if proposal is None or bench is None:
        raise ValueError("no method of planning was given")
    plan = document(state=state, findings=findings, bench=bench, proposal=proposal, policy=policy, mode=mode, mode_source=mode_source)
    return Decision(plan, proposal, bench)


def lay_bench(
    *,
    state: ClusterState,
    findings: Findings,
    policy: RebalancePolicy,
    history: History,
    mode: Mode,
    untainted: Collection[str] = (),
) -> Bench:
    """Fresh books for one method. ``untainted``: nodes whose soft taint, although it is wanted, cannot be put."""
    steers = mode is not Mode.ANNOTATE
    tainted = soft_tainted(state, findings, enabled=policy.spec.steering.soft_taint and steers)
    tainted[[state.node_index[name] for name in untainted]] = False
    placements = Placements(state)
    feasibility = Feasibility(state, placements)
    kept = _keeping_taints(state, findings, enabled=policy.spec.steering.soft_taint)
    scores = StockScores(state, placements, soft_tainted=tainted | kept if steers else None)
    loads = LoadBook(state, findings)
    return Bench(
        scene=Scene(state=state, spec=policy.spec, history=history, booked=Booked(), mode=mode, judged=findings.judged),
        findings=findings,
        placements=placements,
        feasibility=feasibility,
        destinations=Destinations(state, findings, feasibility, scores, loads),
        loads=loads,
        soft_tainted=tainted,
    )


def soft_tainted(state: ClusterState, findings: Findings, *, enabled: bool) -> BoolArray:
    """(nodes,) known nodes above ``target`` on a judged signal, in pools that have a hot node.

    None in a pool where every known node is above its target: if all repel, none does. Dry run predicts with these, as evict mode
    would act.
    """
    marked = np.zeros(len(state.nodes.names), dtype=np.bool_)
    if not enabled:
        return marked
    warm = _warm(findings)
    for pool in range(len(findings.pools)):
        here = findings.pool == pool
        if (findings.node_class[here] == NodeClass.HOT).any():
            marked |= here & warm
    return marked


def _warm(findings: Findings) -> BoolArray:
    """(nodes,) known nodes above ``target`` on a judged signal, but for pools where every known node is: if all repel, none does."""
    with np.errstate(invalid="ignore"):
        above: BoolArray = np.asarray((findings.judged & (findings.reach > findings.target)).any(axis=1), dtype=np.bool_)
    known = findings.node_class != NodeClass.UNKNOWN
    warm = np.zeros(len(known), dtype=np.bool_)
    for pool in range(len(findings.pools)):
        here = (findings.pool == pool) & known
        if not above[here].all():
            warm |= here & above
    return warm


def _keeping_taints(state: ClusterState, findings: Findings, *, enabled: bool) -> BoolArray:
    """(nodes,) nodes that carry our soft taint from before and keep it (see `act.tainting`); the others lose it before the first move.

    What a node outside of every pool carries is another controller's, and stays.
    """
    present = np.array(
        [any(taint.key == HOT_TAINT.key and taint.effect == SOFT for taint in taints) for taints in state.nodes.taints], dtype=np.bool_
    )
    foreign = findings.pool < 0
    return np.asarray(present & (foreign | _warm(findings) if enabled else foreign), dtype=np.bool_)
