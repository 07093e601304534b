"""The whole decision: (state, findings, policy, history) -> plan. The same call in dry run, replay, simulation and production."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.detect.findings import Findings
from rebalancer.guard.gate import Booked, Scene
from rebalancer.plan.balance import Balance
from rebalancer.plan.defragment import Defragment
from rebalancer.plan.destination import Destinations
from rebalancer.plan.disturbance import Disturbance
from rebalancer.plan.document import document
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.heat import LoadBook
from rebalancer.plan.hinting import HintRule
from rebalancer.plan.ledger import Placements
from rebalancer.plan.method import Bench, Method, Proposal
from rebalancer.plan.model import Plan
from rebalancer.plan.reclaim import Reclaim
from rebalancer.plan.relieve import Relieve, crowded_nodes
from rebalancer.plan.steering import graded, soft_tainted, taints_then, warm_nodes
from rebalancer.plan.stock_scores import StockScores
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.policy.tenants_in_force import TenantNow
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History

METHODS: tuple[Method, ...] = (Reclaim(), Relieve(), Defragment(), Balance())
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
    hints: bool = False,
    tenants: tuple[TenantNow, ...] = (),
    methods: tuple[Method, ...] = METHODS,
) -> Decision:
    """Try the methods in order; the first proposal with moves is the plan, else the last one, whose outcome says why nothing is done. What
    the methods before it had to say stays in it."""
    proposal: Proposal | None = None
    bench: Bench | None = None
    for method in methods:
        if isinstance(method, Reclaim) and not (tenants and policy.spec.reclaim.enabled):
            continue  # there is nobody to give anything back to, and books cost time
        if isinstance(method, Relieve) and not (len(state.gpus.held_use) and policy.spec.gpu.overuse.action == "move"):
            continue
        if isinstance(method, Defragment) and not (len(state.gpus.pod) and policy.spec.defragment.enabled):
            continue
        bench = lay_bench(state=state, findings=findings, policy=policy, history=history, mode=mode, hints=hints, tenants=tenants)
        proposal = after(proposal, method.propose(bench))
        if proposal.moves:
            break
    if proposal is None or bench is None:
        raise ValueError("no method of planning was given")
    plan = document(state=state, findings=findings, bench=bench, proposal=proposal, policy=policy, mode=mode, mode_source=mode_source)
    return Decision(plan, proposal, bench)


def after(before: Proposal | None, proposal: Proposal) -> Proposal:
    """The proposal with what was said before it, when that had no moves."""
    if before is None:
        return proposal
    told = {pod for pod, _ in proposal.refused}
    refused = (*proposal.refused, *((pod, refusal) for pod, refusal in before.refused if pod not in told))
    return replace(proposal, refused=refused, outcome="; ".join(words for words in (before.outcome, proposal.outcome) if words))


def lay_bench(
    *,
    state: ClusterState,
    findings: Findings,
    policy: RebalancePolicy,
    history: History,
    mode: Mode,
    untainted: Collection[str] = (),
    hints: bool = False,
    tenants: tuple[TenantNow, ...] = (),
) -> Bench:
    """Fresh books for one method. ``untainted``: nodes whose soft taints, although others are wanted, stay as they are. ``hints``: where a
    namespace asks for it, replacements are given their node."""
    steers, steering = mode is not Mode.ANNOTATE, policy.spec.steering
    none: BoolArray = np.zeros(len(state.nodes.names), dtype=np.bool_)
    failed = none.copy()
    failed[[state.node_index[name] for name in untainted]] = True
    crowded = crowded_nodes(state, policy.spec.gpu.overuse) if steering.soft_taint else none
    tainted = (soft_tainted(findings, steering) | crowded) & ~failed if steers else none
    placements = Placements(state, policy.spec.gpu)
    feasibility = Feasibility(state, placements, steered_schedulers=policy.spec.victims.schedulers)
    warm = warm_nodes(findings, steering) | crowded
    grades = graded(findings, steering, warm)
    then = taints_then(state, findings, wanted=tainted, right=grades, failed=failed) if steers else None
    scores = StockScores(state, placements, own_taints=then)
    loads = LoadBook(state, findings)
    return Bench(
        scene=Scene(
            state=state,
            spec=policy.spec,
            history=history,
            booked=Booked(),
            mode=mode,
            judged=findings.judged,
            passing=findings.foreseen.passing,
        ),
        findings=findings,
        placements=placements,
        feasibility=feasibility,
        destinations=Destinations(
            state,
            findings,
            feasibility,
            scores,
            loads,
            devices=placements.devices,
            horizon_s=policy.spec.anticipation.horizon,
            hints=HintRule(state, on=hints and steers, extender_weight=steering.extender_weight if steers else 0),
        ),
        loads=loads,
        disturbance=Disturbance(state, history, policy.spec.gain),
        soft_tainted=tainted,
        warm=warm,
        tenants=tenants,
        grades=grades,
    )
