"""From a state and a memory to a verdict: what `run` acts on, and what `plan`, `explain` and `skew` show. The same call for all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import msgspec

from rebalancer.detect.classify import detect
from rebalancer.detect.findings import Findings
from rebalancer.detect.tenants.accounts import Accounts, accounts_of, in_force
from rebalancer.detect.tenants.membership import with_tenants
from rebalancer.guard.breaker import BreakerFinding, breaker_findings
from rebalancer.guard.gate import Booked, Scene
from rebalancer.guard.landings import LandingRate
from rebalancer.plan.model import Plan
from rebalancer.plan.planner import Decision, decide, lay_bench
from rebalancer.plan.recheck import recheck
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.policy.tenants import NO_TENANTS, TenantSpec
from rebalancer.runtime.collector import collector_at_rest
from rebalancer.runtime.memory import Landing, Memory, settle
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.runtime.verification import earlier_moves, landing_rate_of, landing_report
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History


@dataclass(frozen=True, slots=True)
class Orders:
    """What is to be done in this cycle, as the operator last said it."""

    policy: RebalancePolicy
    mode: Mode
    mode_source: str
    hints: bool = False
    """Replacements are given their planned node where their namespace asks for it, so that the plan chooses it."""
    tenants: TenantSpec = NO_TENANTS.spec
    """Who shares the cluster, by the tenants file."""


@dataclass(frozen=True, slots=True)
class Verdict:
    state: ClusterState
    findings: Findings
    decision: Decision
    memory: Memory
    """With what this look settled."""
    history: History
    """What the decision saw of the memory."""
    landings: tuple[Landing, ...]
    """Earlier moves that this look settled."""
    breaker: tuple[BreakerFinding, ...]
    accounts: Accounts | None
    """Of the tenants; None without a file."""
    landing_rate: LandingRate
    """Of the moves that settled within ``breaker.hold``."""

    @property
    def fresh_scene(self) -> Scene:
        """What the gates see before anything of the plan is booked: for explaining one pod at a time."""
        return replace(self.decision.bench.scene, booked=Booked())


def consider(state: ClusterState, memory: Memory, orders: Orders, *, stopwatch: Stopwatch | None = None) -> Verdict:
    """Settle earlier moves, ask the breaker, detect, plan. Raises PolicyError when two pools claim one node."""
    stopwatch, spec = stopwatch or Stopwatch(), orders.policy.spec
    with stopwatch.stage("detect"), collector_at_rest():
        state = with_tenants(state, orders.tenants)
        tenants = in_force(state, orders.tenants)
        memory, landings = settle(memory, state, spec)
        rate = landing_rate_of(memory, since=state.at - spec.breaker.hold)
        breaker = breaker_of(state, memory, orders)
        history = memory.history("; ".join(finding.words for finding in breaker))
        findings = detect(state, spec)
    with stopwatch.stage("plan"), collector_at_rest():
        decision = decide(
            state=state,
            findings=findings,
            policy=orders.policy,
            history=history,
            mode=orders.mode,
            mode_source=orders.mode_source,
            hints=orders.hints,
            tenants=tenants,
        )
        plan = msgspec.structs.replace(decision.plan, earlier=earlier_moves(memory), landings=landing_report(rate))
    return Verdict(
        state=state,
        findings=findings,
        decision=replace(decision, plan=plan),
        memory=memory,
        history=history,
        landings=landings,
        breaker=breaker,
        accounts=accounts_of(state, tenants) if tenants else None,
        landing_rate=rate,
    )


def without_taints(plan: Plan, nodes: Collection[str], verdict: Verdict, orders: Orders) -> Mapping[str, str]:
    """UID of a planned pod -> why it has to stay when the soft taints of ``nodes`` cannot be put; a pod that may go is absent."""
    bench = lay_bench(
        state=verdict.state,
        findings=verdict.findings,
        policy=orders.policy,
        history=verdict.history,
        mode=orders.mode,
        untainted=nodes,
        hints=orders.hints,
    )
    _, dropped = recheck(plan, bench)
    return {move.pod.uid: why for move, why in dropped}


def breaker_of(state: ClusterState, memory: Memory, orders: Orders) -> tuple[BreakerFinding, ...]:
    """Why nothing may be evicted now, from what the cluster shows and what earlier moves came to."""
    since = state.at - orders.policy.spec.breaker.hold
    verified = tuple((1.0, landing.realised_share) for landing in memory.landings if landing.at >= since)
    # A pod that is still there, with a long grace period say, is not missed yet.
    opened = tuple(move.eviction.at for move in memory.open_moves if move.eviction.pod_uid not in state.pod_index)
    return breaker_findings(
        state=state,
        spec=orders.policy.spec,
        open_since=opened,
        verified=verified,
        landings=landing_rate_of(memory, since=since),
    )
