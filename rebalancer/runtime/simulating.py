"""What `simulate` does with a file: a scenario or a snapshot becomes a world, in which strategies are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rebalancer.detect.classify import detect
from rebalancer.errors import RebalancerError, UsageError
from rebalancer.policy.model import Metadata, RebalancePolicy, built_in_policy
from rebalancer.report.simulation import SimulationReport
from rebalancer.runtime.looking import read_snapshot
from rebalancer.simulate.forward.arranging import arrange
from rebalancer.simulate.forward.fleet import SIGNALS, make_crops, make_demand, make_ground, make_happenings
from rebalancer.simulate.forward.from_snapshot import setting_of
from rebalancer.simulate.forward.gauges import Timing
from rebalancer.simulate.forward.results import report_of
from rebalancer.simulate.forward.running import Contestant, compare
from rebalancer.simulate.forward.scenario import SimulationScenario
from rebalancer.simulate.forward.scenario_file import load_scenario
from rebalancer.simulate.forward.traces import TraceLibrary
from rebalancer.simulate.forward.world import Setting
from rebalancer.state.cluster import ClusterState

DEFAULT_SEED = 7
DEFAULT_HOURS = 24.0
GZIP_MAGIC = b"\x1f\x8b"
SNAPSHOT_TIMING = Timing(interval_s=15.0, delay_s=30.0)
Progress = Callable[[Contestant, float], None]


def scenario_setting(
    scenario: SimulationScenario, *, seed: int | None = None, hours: float | None = None, traces: Path | None = None
) -> Setting:
    """The world of a scenario. Raises ScenarioError."""
    spec = scenario.spec
    seed, hours, library = spec.seed if seed is None else seed, spec.hours if hours is None else hours, TraceLibrary(traces)
    crops = make_crops(spec, seed=seed, hours=hours, traces=library)
    ground = make_ground(spec, crops)
    marks = np.array([getattr(spec.hot, signal.name) / 100 for signal in SIGNALS])
    return Setting(
        name=scenario.metadata.name,
        seed=seed,
        ground=ground,
        demand=make_demand(spec, crops, seed=seed, traces=library),
        happenings=make_happenings(spec, crops, seed=seed, hours=hours),
        timing=Timing(spec.metrics.interval, spec.metrics.delay),
        high=np.tile(marks, (len(ground.nodes.names), 1)),
        placed=arrange(ground, seed=seed),
    )


def snapshot_setting(state: ClusterState, *, name: str, seed: int, policies: Sequence[RebalancePolicy]) -> Setting:
    """A world that begins as the snapshot was; hot is what the first policy calls hot. Raises UsageError."""
    for policy in policies:
        missing = [signal for signal in policy.spec.judged_signals if signal not in state.signal_index]
        if missing:
            raise UsageError(
                f"policy {policy.metadata.name} judges signal {missing[0]}, the snapshot holds {', '.join(state.signal_index) or 'none'}",
                remedy="give the policy that the snapshot was taken with",
            )
    return setting_of(state, name=name, seed=seed, timing=SNAPSHOT_TIMING, high=detect(state, policies[0].spec).high)


@dataclass(frozen=True, slots=True)
class OpenedWorld:
    """What a file on the command line came to: a world, the policies to try in it, and for how long."""

    setting: Setting
    policies: tuple[RebalancePolicy, ...]
    hours: float
    description: str


def open_world(
    path: Path, *, policies: Sequence[RebalancePolicy], seed: int | None, hours: float | None, traces: Path | None
) -> OpenedWorld:
    """A scenario (YAML) or a snapshot, told apart by what is in the file; without policies, the scenario's own or the built-in one.

    Raises ScenarioError, SnapshotError, UsageError, PolicyError.
    """
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise UsageError(f"{path} {what}", remedy="give a scenario file, such as those in config/scenarios, or a snapshot")
    if _is_snapshot(path):
        tried = tuple(policies) or (built_in_policy(),)
        setting = snapshot_setting(read_snapshot(path), name=path.name, seed=DEFAULT_SEED if seed is None else seed, policies=tried)
        return OpenedWorld(setting, tried, DEFAULT_HOURS if hours is None else hours, "every pod keeps the usage it had in the snapshot")
    scenario = load_scenario(path)
    own = RebalancePolicy(metadata=Metadata(name=scenario.metadata.name), spec=scenario.spec.policy)
    tried = tuple(policies) or (own,)
    for policy in tried:
        missing = [name for name in policy.spec.judged_signals if name not in (signal.name for signal in SIGNALS)]
        if missing:
            raise UsageError(
                f"policy {policy.metadata.name} judges signal {missing[0]}, a scenario has cpu and memory", remedy="leave it out"
            )
    hours = scenario.spec.hours if hours is None else hours
    setting = scenario_setting(scenario, seed=seed, hours=hours, traces=traces)
    return OpenedWorld(setting, tried, hours, scenario.metadata.description)


def _is_snapshot(path: Path) -> bool:
    """Snapshots are gzipped or plain JSON objects; scenarios are YAML, which begins otherwise."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="check its permissions") from error
    return head.startswith(GZIP_MAGIC) or head.lstrip().startswith(b"{")


def simulate(
    setting: Setting,
    contestants: Sequence[Contestant],
    *,
    hours: float,
    description: str = "",
    on_progress: Progress = lambda contestant, share: None,
) -> SimulationReport:
    """Every contestant in the same world, side by side."""
    try:
        runs = compare(setting, contestants, hours=hours, on_progress=on_progress)
    except MemoryError as error:
        raise RebalancerError("there is not enough memory for a world of this size", remedy="simulate fewer pods") from error
    return report_of(setting, runs, hours=hours, description=description)
