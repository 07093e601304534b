"""The project's own rules as a strategy of the fast-forward world, and the strategies that can be named.

It is no imitation: each cycle is the `consider` of production with the memory of production, the coverage that a cycle asks for, and the
soft taints that acting would write. Only observing and acting are the world's.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from rebalancer.act.tainting import taint_work
from rebalancer.errors import MetricsError, UsageError
from rebalancer.plan.grades import carried, row_of
from rebalancer.plan.model import Plan
from rebalancer.policy.mistakes import nearest
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.runtime.acting import open_move
from rebalancer.runtime.considering import Orders, consider
from rebalancer.runtime.memory import MOST_OPEN, Memory, remember
from rebalancer.runtime.observe import require_coverage
from rebalancer.simulate.forward.eviction import EvictionApi
from rebalancer.simulate.forward.strategy import DO_NOTHING, Actions, StrategyKind
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState


class Rebalancing:
    """This project in evict mode."""

    name = "rebalancer"

    def __init__(self, policy: RebalancePolicy) -> None:
        self._orders = Orders(policy=policy, mode=Mode.EVICT, mode_source="the simulation")

    def decide(self, state: ClusterState, memory: object) -> Actions:
        remembered = memory if isinstance(memory, Memory) else Memory()
        try:
            require_coverage(state, self._orders.policy.spec)
        except MetricsError as error:  # the cycle fails, and nothing is forgotten
            return Actions(memory=remembered, undecided=error.message)
        verdict = consider(state, remembered, self._orders)
        plan, remembered = verdict.decision.plan, verdict.memory
        loads = {report.name: {n: s.load for n, s in report.signals.items() if s.load is not None} for report in plan.nodes}
        api, evictions = EvictionApi(state), []
        for move in plan.moves:
            pod = state.pod_index[move.pod.uid]
            if len(remembered.open_moves) >= MOST_OPEN:
                break
            if not api.evict(pod):
                remembered = remember(remembered, open_move(move, state, at=state.at, loads=loads.get(move.source, {})))
            evictions.append(pod)
        return Actions(tuple(evictions), _taints(state, plan), remembered)


def _taints(state: ClusterState, plan: Plan) -> BoolArray:
    """(nodes, taints): who carries which soft taint after what acting on the plan would change."""
    present = carried(state.nodes.taints)
    work = taint_work(plan)
    for name, keys in (*work.put, *((name, ()) for name in work.remove)):
        present[state.node_index[name]] = row_of(keys)
    return present


REBALANCER = StrategyKind("rebalancer", "This project: plans and gates as in production, in evict mode.", Rebalancing)


def built_in_strategies() -> Mapping[str, StrategyKind]:
    return {kind.name: kind for kind in (DO_NOTHING, REBALANCER)}


def find_strategy(name: str, known: Mapping[str, StrategyKind] | None = None) -> StrategyKind:
    """A strategy by its name, or ``package.module:NAME`` of a `StrategyKind` somewhere else. Raises UsageError."""
    known = built_in_strategies() if known is None else known
    if name in known:
        return known[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        close = nearest(name, known)
        remedy = f"did you mean {close}?" if close else f"use {', '.join(known)}, or package.module:NAME"
        raise UsageError(f"there is no strategy {name}", remedy=remedy)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"strategy {name} cannot be loaded: {error}", remedy="name a module that Python finds and a name in it") from error
    if not isinstance(found, StrategyKind):
        raise UsageError(f"{name} is no StrategyKind but a {type(found).__name__}", remedy="wrap the strategy in a StrategyKind")
    return found
