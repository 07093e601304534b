"""One call from a built state to a decision, for the tests of planning."""

from __future__ import annotations

from collections.abc import Mapping

from rebalancer.detect.classify import detect
from rebalancer.plan.model import Plan
from rebalancer.plan.planner import Decision, decide
from rebalancer.policy.model import Mode, RebalancePolicy, Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED, History


def decision(state: ClusterState, spec: Spec | None = None, *, history: History = NOTHING_HAPPENED, mode: Mode = Mode.EVICT) -> Decision:
    policy = RebalancePolicy(spec=spec or Spec())
    return decide(state=state, findings=detect(state, policy.spec), policy=policy, history=history, mode=mode)


def planned(state: ClusterState, spec: Spec | None = None, *, history: History = NOTHING_HAPPENED, mode: Mode = Mode.EVICT) -> Plan:
    return decision(state, spec, history=history, mode=mode).plan


def moved(plan: Plan) -> list[str]:
    return [move.pod.name for move in plan.moves]


def refusals(plan: Plan) -> Mapping[str, str]:
    """pod name -> gate."""
    return {refused.pod.name: refused.gate for refused in plan.refused}


def why(plan: Plan, pod: str) -> str:
    return next(refused.reason for refused in plan.refused if refused.pod.name == pod)
