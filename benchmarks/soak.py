"""A day of 500 nodes in the fast-forward world: does memory stay flat, and is every workload left alone for as long as its cooldown says?

    python -m benchmarks.soak [--scenario FILE] [--hours N]      (or: make soak)

Exit status 1 when a workload was moved before its cooldown had passed. Memory is reported, not judged: the world itself keeps a tally that
grows with the evictions.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rebalancer.guard.windows import rest_after
from rebalancer.policy.model import RebalancePolicy
from rebalancer.runtime.own_strategy import REBALANCER
from rebalancer.runtime.simulating import open_world
from rebalancer.simulate.forward.running import compare, line_up
from rebalancer.simulate.forward.strategy import Actions, Strategy, StrategyKind
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import WorkloadRef

SCENARIO = Path(__file__).parents[1] / "config" / "scenarios" / "soak.yaml"


@dataclass
class Watch:
    """What is noted while the day passes."""

    start: float = float("nan")
    resident_mib: list[tuple[float, float]] = field(default_factory=list)
    """(simulated hours, MiB), once an hour."""
    moves: dict[WorkloadRef, list[float]] = field(default_factory=lambda: defaultdict(list))
    pods: int = 0

    def note(self, state: ClusterState, actions: Actions) -> None:
        if not self.resident_mib:
            self.start = state.at
        hours = (state.at - self.start) / 3600
        if not self.resident_mib or hours - self.resident_mib[-1][0] >= 1:
            gc.collect()
            self.resident_mib.append((hours, resident_mib()))
        self.pods = len(state.pods.names)
        for pod in actions.evictions:
            workload = state.workload_of(pod)
            if workload is not None:
                self.moves[workload].append(state.at)


class Watched:
    """The strategy of production, looked at from beside."""

    name = REBALANCER.name

    def __init__(self, inner: Strategy, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    def decide(self, state: ClusterState, memory: object) -> Actions:
        actions = self._inner.decide(state, memory)
        self._watch.note(state, actions)
        return actions


def resident_mib() -> float:
    """Resident memory now, from the kernel; the peak where it does not say."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def too_early(moves: dict[WorkloadRef, list[float]], policy: RebalancePolicy) -> list[str]:
    """One sentence a move that came before the cooldown of the ones before it had passed."""
    cooldown, found = policy.spec.cooldown, []
    for workload, times in moves.items():
        for number, at in enumerate(times[1:], 1):
            streak = sum(1 for before in times[:number] if at - before <= cooldown.max)
            rest = rest_after(streak, first_s=cooldown.workload, factor=cooldown.backoff, longest_s=cooldown.max)
            if at - times[number - 1] < rest - 1e-6:
                found.append(f"{workload} was moved {at - times[number - 1]:.0f} s after its move number {streak} in a row")
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", type=Path, default=SCENARIO)
    parser.add_argument("--hours", type=float, default=None)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(arguments)
    opened = open_world(options.scenario, policies=(), seed=options.seed, hours=options.hours, traces=None)
    watch = Watch()
    kind = StrategyKind(REBALANCER.name, REBALANCER.describe, lambda policy: Watched(REBALANCER.make(policy), watch))
    (run,) = compare(opened.setting, line_up([kind], opened.policies), hours=opened.hours)
    tally, policy, days = run.tally, run.contestant.policy, opened.hours / 24
    counts = np.array([len(times) for times in watch.moves.values()] or [0])
    print(
        f"{opened.setting.name}: {len(opened.setting.ground.nodes.names)} nodes, {watch.pods} pods, {opened.hours:g} h, {run.cycles} cycles"
    )
    print(f"hot nodes {tally.mean_hot_nodes:.2f} on average, worst load {tally.worst_load:.2f}, mean spread {tally.mean_spread:.3f}")
    print(
        f"evictions {tally.evictions}, {tally.evictions / max(1, watch.pods) / days:.4f} per pod and day; "
        f"workloads moved {len(watch.moves)}, at most {counts.max()} times; budget violations {tally.violations}"
    )
    print(f"a cycle took {1000 * run.deciding_s / max(1, run.cycles):.0f} ms to decide, the whole run {run.wall_s:.0f} s")
    print("resident MiB by hour: " + " ".join(f"{mib:.0f}" for _, mib in watch.resident_mib))
    early = too_early(watch.moves, policy)
    for sentence in early[:10]:
        print(f"TOO EARLY: {sentence}")
    print("no workload was moved before its cooldown had passed" if not early else f"{len(early)} moves came too early")
    return 1 if early else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
