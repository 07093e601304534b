"""The demonstration of tenants: the real controller, over HTTP, gives a starved tenant back what it is guaranteed, in virtual time."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.act.evicting import EvictActuator
from rebalancer.act.outcome import Result
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import EventWriter
from rebalancer.policy.model import Budgets, Cooldown, Mode, RebalancePolicy, built_in_policy
from rebalancer.policy.reclaim import Reclaim
from rebalancer.report.demo_tenants import TenantsDemoCycle, TenantsDemoResult, TenantState
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.demo import CYCLE_TIMEOUT_S, STEP_S, WorldClock
from rebalancer.runtime.store import ProcessStore
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.tenancy import POD_CORES, QUOTAS, TEAMS, claim, tenant_world
from rebalancer.simulate.world import World

STARVED = "speech"
POLICY: RebalancePolicy = built_in_policy(
    mode=Mode.EVICT,
    reclaim=Reclaim(enabled=True, after=60.0),
    budgets=Budgets(total=20, per_node=4, per_namespace=20, per_workload=2, per_tenant="50%"),
    cooldown=Cooldown(workload=120.0, node=0.0),
)


@dataclass(slots=True)
class _Tally:
    evicted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    room: dict[str, str] = field(default_factory=dict)
    """uid of a pod that waited -> node on which room was made for it."""
    course: list[TenantsDemoCycle] = field(default_factory=list)
    under: set[str] = field(default_factory=set)

    def count(self, number: int, result: CycleResult, world: World) -> None:
        plan = result.verdict.decision.plan
        gone = [outcome.move for outcome in result.outcomes if outcome.result is Result.EVICTED]
        self.evicted.update(move.tenant or "nobody" for move in gone)
        self.refused.update(refused.gate for refused in plan.refused)
        self.room |= {move.makes_room_for.uid: move.source for move in gone if move.makes_room_for is not None}
        waits = sum(state.pending_pods for state in states(world) if state.held < state.guaranteed)
        self.course.append(TenantsDemoCycle(cycle=number, method=plan.method, evicted=len(gone), pending_pods=waits, outcome=plan.outcome))

    def watch(self, world: World, before: dict[str, TenantState]) -> None:
        for state in states(world):
            if state.held < state.guaranteed - 1e-9 and before[state.name].held >= state.guaranteed - 1e-9:
                self.under.add(state.name)


def run_tenants_demo(*, seed: int, cycles: int, on_cycle: Callable[[int, str], None] = lambda done, words: None) -> TenantsDemoResult:
    """The same seed gives the same result."""
    world = tenant_world(seed=seed)
    orders = Orders(policy=POLICY, mode=Mode.EVICT, mode_source="the demo", tenants=QUOTAS.spec)
    tally = _Tally()
    with EmbeddedCluster(world) as cluster, tempfile.TemporaryDirectory(prefix="rebalancer-demo-") as folder:
        claim(world)
        cluster.advance(POLICY.spec.interval)
        before = states(world)
        held = {state.name: state for state in before}
        kubeconfig = cluster.write_kubeconfig(Path(folder) / "kubeconfig")
        client = KubeClient.connect(kubeconfig=kubeconfig, context=None)
        prometheus = Prometheus(PrometheusAccess(url=cluster.prometheus_url))
        try:
            controller = Controller(
                client=client,
                prometheus=prometheus,
                actuators={Mode.EVICT: EvictActuator(client, events=EventWriter(client, instance="demo"), attempts=1, hold_s=0.0)},
                store=ProcessStore(),
                clock=WorldClock(world),
            )
            for number in range(1, cycles + 1):
                on_cycle(number - 1, f"cycle {number}: {sum(state.pending_pods for state in states(world))} pods wait")
                result = controller.cycle(orders, deadline=Deadline.after(CYCLE_TIMEOUT_S))
                left = POLICY.spec.interval
                while left > 0:
                    cluster.advance(min(STEP_S, left))
                    left -= STEP_S
                    tally.watch(world, held)
                tally.count(number, result, world)
            on_cycle(cycles, "done")
        finally:
            client.close()
            prometheus.close()
    placed = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in world.objects("pods")}
    return TenantsDemoResult(
        seed=seed,
        cycles=cycles,
        nodes=world.count("nodes"),
        pods=world.count("pods"),
        starved=STARVED,
        before=before,
        after=states(world),
        evictions=dict(sorted(tally.evicted.items())),
        under_guarantee=tuple(sorted(tally.under)),
        named_nodes=sum(placed.get(uid) == node for uid, node in tally.room.items()),
        refused=dict(sorted(tally.refused.items(), key=lambda item: (-item[1], item[0]))),
        course=tuple(tally.course),
    )


def states(world: World) -> tuple[TenantState, ...]:
    """What each team truly holds and waits for."""
    guaranteed = {tenant.name: float((tenant.guaranteed or {}).get("cpu", 0)) for tenant in QUOTAS.spec.leaves()}
    held: Counter[str] = Counter()
    waits: Counter[str] = Counter()
    for pod in world.objects("pods"):
        team = pod["metadata"]["namespace"]
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]:
            held[team] += POD_CORES
        elif not pod["spec"].get("nodeName"):
            waits[team] += 1
    return tuple(
        TenantState(
            name=team,
            guaranteed=guaranteed[team],
            held=float(held[team]),
            waiting=float(waits[team] * POD_CORES),
            pending_pods=waits[team],
        )
        for team in TEAMS
    )
