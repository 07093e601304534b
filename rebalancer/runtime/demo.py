"""The demonstration: the real controller, over HTTP, against the embedded cluster, in evict mode, for a few cycles of virtual time.

Nothing here decides anything; it opens the connections, lets time pass and measures the true loads of the world, which the controller only
knows through Prometheus and late.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rebalancer.act.evicting import EvictActuator
from rebalancer.act.outcome import Result
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import EventWriter
from rebalancer.policy.model import Mode, RebalancePolicy, Steering, built_in_policy
from rebalancer.report.demo import DemoCycle, DemoResult, DemoState, Landing
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.memory import LandingResult
from rebalancer.runtime.store import ProcessStore
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.scenario import Scenario, build_world
from rebalancer.simulate.world import World

STEP_S = 30.0
"""How often the true loads are looked at while time passes."""
CYCLE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class WorldClock:
    world: World

    def now(self) -> float:
        return self.world.now


@dataclass(slots=True)
class _Tally:
    evictions: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    landings: Counter[LandingResult] = field(default_factory=Counter)
    course: list[DemoCycle] = field(default_factory=list)
    worst: float = 0.0

    def count(self, result: CycleResult) -> None:
        plan = result.verdict.decision.plan
        self.evictions += sum(outcome.result is Result.EVICTED for outcome in result.outcomes)
        self.landings.update(landing.result for landing in result.verdict.landings)
        for refused in plan.refused:
            self.refused[refused.gate] += 1
            self.examples.setdefault(refused.gate, refused.reason)


def run_demo(
    *,
    seed: int,
    cycles: int,
    soft_taints: bool = True,
    on_cycle: Callable[[int, str], None] = lambda done, words: None,
) -> DemoResult:
    """Before, course and after of one run; the same seed gives the same result."""
    world = build_world(Scenario(seed=seed))
    policy = built_in_policy(mode=Mode.EVICT, steering=Steering(soft_taint=soft_taints))
    orders = Orders(policy=policy, mode=Mode.EVICT, mode_source="the demo")
    before, tally = _measured(world, policy), _Tally()
    tally.worst = before.max_load or 0.0
    with EmbeddedCluster(world) as cluster, tempfile.TemporaryDirectory(prefix="rebalancer-demo-") as folder:
        kubeconfig = cluster.write_kubeconfig(Path(folder) / "kubeconfig")
        client = KubeClient.connect(kubeconfig=kubeconfig, context=None)
        prometheus = Prometheus(PrometheusAccess(url=cluster.prometheus_url))
        try:
            actuator = EvictActuator(client, events=EventWriter(client, instance="demo"), attempts=1)
            controller = Controller(
                client=client,
                prometheus=prometheus,
                actuators={Mode.EVICT: actuator},
                store=ProcessStore(),
                clock=WorldClock(world),
            )
            for number in range(1, cycles + 1):
                on_cycle(number - 1, f"cycle {number}: {_words(_measured(world, policy))}")
                result = controller.cycle(orders, deadline=Deadline.after(CYCLE_TIMEOUT_S))
                tally.count(result)
                _pass_time(cluster, policy, tally)
                plan = result.verdict.decision.plan
                state = _measured(world, policy)
                tally.course.append(DemoCycle(cycle=number, state=state, moves=len(plan.moves), outcome=plan.outcome))
            on_cycle(cycles, "done")
        finally:
            client.close()
            prometheus.close()
    return _result(world, policy, seed=seed, cycles=cycles, soft_taints=soft_taints, before=before, tally=tally)


def _pass_time(cluster: EmbeddedCluster, policy: RebalancePolicy, tally: _Tally) -> None:
    """Let one interval pass and keep the worst load that was seen on the way."""
    left = policy.spec.interval
    while left > 0:
        cluster.advance(min(STEP_S, left))
        left -= STEP_S
        tally.worst = max(tally.worst, _measured(cluster.world, policy).max_load or 0.0)


def _measured(world: World, policy: RebalancePolicy) -> DemoState:
    """The true state of the world by the marks of the policy's pool."""
    hot: set[str] = set()
    worst, spreads = 0.0, []
    for signal, marks in policy.spec.pools[0].signals.items():
        loads = world.node_loads(signal)
        values = np.array(list(loads.values()))
        hot |= {name for name, load in loads.items() if load > marks.high / 100}
        worst = max(worst, float(values.max()))
        spreads.append(float(values.std()))
    return DemoState(hot_nodes=len(hot), max_load=round(worst, 6), stddev=round(max(spreads), 6))


def _words(state: DemoState) -> str:
    return f"{state.hot_nodes} hot nodes, the worst at {(state.max_load or 0) * 100:.0f} %"


def _result(
    world: World, policy: RebalancePolicy, *, seed: int, cycles: int, soft_taints: bool, before: DemoState, tally: _Tally
) -> DemoResult:
    planned = tally.landings[LandingResult.AS_PLANNED]
    return DemoResult(
        seed=seed,
        cycles=cycles,
        nodes=world.count("nodes"),
        pods=world.count("pods"),
        soft_taints=soft_taints,
        before=before,
        after=_measured(world, policy),
        worst_load_seen=round(tally.worst, 6),
        evictions=tally.evictions,
        refused=dict(sorted(tally.refused.items(), key=lambda item: (-item[1], item[0]))),
        examples=tally.examples,
        landing=Landing(as_planned=planned, elsewhere=tally.landings.total() - planned, pending=tally.evictions - tally.landings.total()),
        course=tuple(tally.course),
    )
