"""Letting strategies live through one world, each from its beginning, and counting what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.policy.model import RebalancePolicy, Spec
from rebalancer.simulate.forward.gauges import Gauges, Lens
from rebalancer.simulate.forward.strategy import StrategyKind
from rebalancer.simulate.forward.tally import Tally
from rebalancer.simulate.forward.world import ForwardWorld, Setting

_EPSILON_S = 1e-6


@dataclass(frozen=True, slots=True)
class Contestant:
    """A strategy under a policy; ``label`` is how the results call it."""

    label: str
    kind: StrategyKind
    policy: RebalancePolicy


@dataclass(frozen=True, slots=True)
class Run:
    """One contestant's life in the world."""

    contestant: Contestant
    tally: Tally
    cycles: int
    wall_s: float
    """Real seconds that it took, the world and the strategy together; of them ``deciding_s`` in the strategy."""
    deciding_s: float
    undecided: int
    """Cycles in which the strategy could not decide, and why it could not in the last of them."""
    undecided_why: str


def line_up(kinds: Sequence[StrategyKind], policies: Sequence[RebalancePolicy]) -> tuple[Contestant, ...]:
    """Each strategy under each policy; one that does not depend on the policy only once."""
    found: list[Contestant] = []
    for kind in kinds:
        for policy in policies if kind.by_policy else policies[:1]:
            several = kind.by_policy and len(policies) > 1
            found.append(Contestant(f"{kind.name} ({policy.metadata.name})" if several else kind.name, kind, policy))
    return tuple(found)


def compare(
    setting: Setting,
    contestants: Sequence[Contestant],
    *,
    hours: float,
    on_progress: Callable[[Contestant, float], None] = lambda contestant, share: None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Run, ...]:
    """One after the other in worlds that are alike to the last draw of chance; ``on_progress`` hears how far each is, 0 to 1."""
    warm_up = max((_warm_up_ticks(setting, each) for each in contestants), default=0)
    return tuple(_live(setting, each, hours=hours, warm_up_ticks=warm_up, on_progress=on_progress, clock=clock) for each in contestants)


def _warm_up_ticks(setting: Setting, contestant: Contestant) -> int:
    """Samples that the policy's oldest window reaches back on."""
    return Gauges(start=0.0, timing=setting.timing, lens=lens_of(contestant.policy.spec), nodes=0, signals=1, pods=0).warm_up_ticks


def lens_of(spec: Spec) -> Lens:
    """What the policy asks the metrics for."""
    swing_s = spec.risk.lookback if spec.risk.deviations else 0.0
    return Lens(
        window_s=spec.metrics.window,
        statistic=spec.metrics.statistic,
        windows=spec.confirm.windows,
        step_s=spec.confirm.step,
        swing_s=swing_s,
        swing_step_s=spec.risk.step,
        ahead_s=2 * spec.anticipation.horizon,
        day_step_s=spec.anticipation.step,
    )


def _live(
    setting: Setting,
    contestant: Contestant,
    *,
    hours: float,
    warm_up_ticks: int,
    on_progress: Callable[[Contestant, float], None],
    clock: Callable[[], float],
) -> Run:
    begun, deciding = clock(), 0.0
    spec, start = contestant.policy.spec, setting.ground.start
    ticks = max(1, math.ceil(hours * 3600 / setting.timing.interval_s - _EPSILON_S))
    tally = Tally(setting.high, setting.ground.nodes.capacity, start, ticks * setting.timing.interval_s)
    world = ForwardWorld(setting, metrics=spec.metrics, lens=lens_of(spec), warm_up_ticks=warm_up_ticks, tally=tally)
    strategy = contestant.kind.make(contestant.policy)
    memory: object = None
    due, cycles, undecided, why = start, 0, 0, ""
    for tick in range(ticks):
        if world.now >= due - _EPSILON_S:
            view = world.look()
            before = clock()
            actions = strategy.decide(view.state, memory)
            deciding += clock() - before
            memory = actions.memory
            world.act(view, actions)
            due, cycles, undecided = due + spec.interval, cycles + 1, undecided + bool(actions.undecided)
            why = actions.undecided or why
            on_progress(contestant, tick / ticks)
        world.tick()
    on_progress(contestant, 1.0)
    return Run(contestant, tally, cycles, clock() - begun, deciding, undecided, why)


def workloads_in(setting: Setting) -> int:
    """Owners that are there at the start."""
    slots = setting.ground.slots
    there = (slots.born_at <= setting.ground.start) & (slots.owner >= 0)
    return len(np.unique(slots.owner[there]))
