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

from msgspec import UNSET

from rebalancer.act.evicting import EvictActuator
from rebalancer.act.outcome import Result
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import EventWriter
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.gpu_holders import Overuse
from rebalancer.policy.hotness import Pool, Threshold
from rebalancer.policy.model import Mode, RebalancePolicy, Steering, built_in_policy
from rebalancer.policy.quantities import LabelSelector
from rebalancer.report.demo import DemoCycle, DemoResult, DemoState, Landing
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.demo_truth import Truth
from rebalancer.runtime.memory import LandingResult
from rebalancer.runtime.store import ProcessStore
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.gpu.nodes import PRESENT
from rebalancer.simulate.scenario import Scenario, build_world, gpu_scenario
from rebalancer.simulate.world import World

STEP_S = 30.0
"""How often the true loads are looked at while time passes."""
CYCLE_TIMEOUT_S = 60.0
GPU_MARKS = {"gpu": Threshold(low=50, target=70, high=85), "gpu_memory": Threshold(low=70, target=85, high=92)}


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
    gpu: bool = False,
    on_cycle: Callable[[int, str], None] = lambda done, words: None,
) -> DemoResult:
    """Before, course and after of one run; the same seed gives the same result. ``gpu``: a cluster with GPUs, judged by them too."""
    world = build_world(gpu_scenario(seed) if gpu else Scenario(seed=seed))
    policy = demo_policy(soft_taints=soft_taints, gpu=gpu)
    orders = Orders(policy=policy, mode=Mode.EVICT, mode_source="the demo")
    truth, tally = Truth(world, policy), _Tally()
    before = truth.state()
    with EmbeddedCluster(world) as cluster, tempfile.TemporaryDirectory(prefix="rebalancer-demo-") as folder:
        kubeconfig = cluster.write_kubeconfig(Path(folder) / "kubeconfig")
        client = KubeClient.connect(kubeconfig=kubeconfig, context=None)
        prometheus = Prometheus(PrometheusAccess(url=cluster.prometheus_url))
        try:
            actuator = EvictActuator(client, events=EventWriter(client, instance="demo"), attempts=1, hold_s=0.0)
            controller = Controller(
                client=client,
                prometheus=prometheus,
                actuators={Mode.EVICT: actuator},
                store=ProcessStore(),
                clock=WorldClock(world),
            )
            for number in range(1, cycles + 1):
                on_cycle(number - 1, f"cycle {number}: {_words(truth.state())}")
                result = controller.cycle(orders, deadline=Deadline.after(CYCLE_TIMEOUT_S))
                tally.count(result)
                _pass_time(cluster, policy.spec.interval, truth)
                plan = result.verdict.decision.plan
                tally.course.append(DemoCycle(cycle=number, state=truth.state(), moves=len(plan.moves), outcome=plan.outcome))
            on_cycle(cycles, "done")
        finally:
            client.close()
            prometheus.close()
    return _result(world, truth, seed=seed, cycles=cycles, soft_taints=soft_taints, before=before, tally=tally)


def demo_policy(*, soft_taints: bool, gpu: bool) -> RebalancePolicy:
    """The built-in one; with GPUs, nodes that have them are a pool of their own, which is judged by them beside CPU and memory, and pods
    that crowd a device with what they did not ask for are moved."""
    built_in = built_in_policy(mode=Mode.EVICT, steering=Steering(soft_taint=soft_taints))
    if not gpu:
        return built_in
    (plain,) = built_in.spec.pools
    selector = LabelSelector(match_labels={PRESENT: "true"})
    own = Pool(name="gpu", node_selector=selector, signals={**plain.signals, **GPU_MARKS})
    more = {"pools": (own, plain), "gpu": Gpu(overuse=Overuse(action="move"))}
    return built_in.model_copy(update={"spec": built_in.spec.model_copy(update=more)})


def _pass_time(cluster: EmbeddedCluster, interval_s: float, truth: Truth) -> None:
    """Let one interval pass, and look at the world on the way."""
    left = interval_s
    while left > 0:
        cluster.advance(min(STEP_S, left))
        left -= STEP_S
        truth.look()


def _words(state: DemoState) -> str:
    full = f", {state.overfull_devices} over-full GPUs" if state.overfull_devices else ""
    return f"{state.hot_nodes} hot nodes, the worst at {(state.max_load or 0) * 100:.0f} %{full}"


def _result(world: World, truth: Truth, *, seed: int, cycles: int, soft_taints: bool, before: DemoState, tally: _Tally) -> DemoResult:
    planned = tally.landings[LandingResult.AS_PLANNED]
    return DemoResult(
        seed=seed,
        cycles=cycles,
        nodes=world.count("nodes"),
        pods=world.count("pods"),
        gpus=truth.devices or UNSET,
        soft_taints=soft_taints,
        before=before,
        after=truth.state(),
        worst_load_seen=round(truth.worst_load, 6),
        devices_overfilled=len(truth.overfilled) if truth.devices else UNSET,
        gangs_broken=len(truth.broken) if truth.devices else UNSET,
        evictions=tally.evictions,
        refused=dict(sorted(tally.refused.items(), key=lambda item: (-item[1], item[0]))),
        examples=tally.examples,
        landing=Landing(as_planned=planned, elsewhere=tally.landings.total() - planned, pending=tally.evictions - tally.landings.total()),
        course=tuple(tally.course),
    )
