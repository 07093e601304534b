"""From a scenario to a ground, a demand and a calendar: columns instead of objects, everything drawn from the seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from rebalancer.simulate.forward.chance import Stream, stream
from rebalancer.simulate.forward.crops import Crop, grow
from rebalancer.simulate.forward.demand import DAY_S, DemandPlan, Replay
from rebalancer.simulate.forward.drawing import between
from rebalancer.simulate.forward.ground import BudgetRules, Ground, NodeColumns, OwnerColumns, Renewal, SlotColumns
from rebalancer.simulate.forward.happenings import Happening, What, burst, in_order, moments, outage
from rebalancer.simulate.forward.scenario import DailyPeaks, Machines, Protection, ScenarioSpec, Trace
from rebalancer.simulate.forward.traces import TraceLibrary
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.scheduling import Constraints, LabelSet, Requirement, Selector
from rebalancer.state.tables import JobRules, PodClass, PodVolumes, Qos, Signal, WorkloadRef

START = 1_749_945_600.0
"""Midnight (UTC) of a Sunday: when scenarios begin."""
RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
SIGNALS = (Signal("cpu", "cores", "cpu"), Signal("memory", "bytes", "memory"))
CPU, MEMORY = 0, 1
_DEFAULT_REQUESTS = np.array([0.1, 200 * 2.0**20])
"""What the scheduler scores a container with that requests nothing: cores, bytes."""
_AMPLE_STORAGE = 1e12
_MONTH_S = 30 * 86400.0
_COLUMN = {"planetlab-cpu": CPU, "genai-memory": MEMORY}


def make_crops(spec: ScenarioSpec, *, seed: int, hours: float, traces: TraceLibrary) -> list[Crop]:
    return grow(spec, start=START, hours=hours, traces=traces, fleet=stream(seed, Stream.FLEET))


def make_ground(spec: ScenarioSpec, crops: Sequence[Crop]) -> Ground:
    label_sets = tuple(LabelSet(crop.namespace, (("app", crop.name),)) for crop in crops)
    budgets = [(row, crop, crop.population.disruption_budget) for row, crop in enumerate(crops)]
    covered = {row: number for number, row in enumerate(row for row, _, rules in budgets if rules is not None)}
    refs = tuple(WorkloadRef(crop.population.kind, crop.namespace, crop.name) for crop in crops)
    return Ground(
        cluster="simulated",
        start=START,
        resources=RESOURCES,
        signals=SIGNALS,
        nodes=_nodes(spec.fleet),
        slots=_slots(crops, covered),
        owners=_owners(crops, refs),
        budgets=tuple(_budget(crop, rules) for _, crop, rules in budgets if rules is not None),
        label_sets=label_sets,
        constraints=(Constraints(),),
        controllers=tuple(f"controller-of-{ref}" for ref in refs),
        namespaces={crop.namespace: {"kubernetes.io/metadata.name": crop.namespace} for crop in crops},
        priorities={"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000},
        tenants=(),
    )


def _nodes(fleet: Sequence[Machines]) -> NodeColumns:
    made = [(machines, number) for machines in fleet for number in range(machines.count)]
    names = tuple(f"{machines.name}-{place:04d}" for place, (machines, _) in enumerate(made))
    labels = tuple(
        {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % machines.zones:02d}", **machines.labels}
        for name, (machines, number) in zip(names, made, strict=True)
    )
    size = np.array([(machines.cores, machines.memory) for machines, _ in made])
    room = np.array([machines.pods for machines, _ in made], dtype=np.float64)
    return NodeColumns(
        names=names,
        labels=labels,
        annotations=({},) * len(made),
        taints=((),) * len(made),
        unschedulable=np.zeros(len(made), dtype=np.bool_),
        ready=np.ones(len(made), dtype=np.bool_),
        created_at=np.full(len(made), START - _MONTH_S),
        allocatable=np.column_stack((size, np.full(len(made), _AMPLE_STORAGE), room)),
        capacity=size.copy(),
        system=np.array([(machines.system_cpu, machines.system_memory) for machines, _ in made]),
    )


def _slots(crops: Sequence[Crop], covered: dict[int, int]) -> SlotColumns:
    of = np.repeat(np.arange(len(crops)), [crop.replicas for crop in crops])
    count = len(of)
    request = np.zeros((count, len(RESOURCES)))
    request[:, :2] = np.stack([crop.request for crop in crops])[of]
    request[:, RESOURCES.index("pods")] = 1.0
    scored = np.where(request[:, :2] > 0, request[:, :2], _DEFAULT_REQUESTS)
    kinds = [crop.population.kind for crop in crops]
    classes = [PodClass.BATCH if kind == "Job" else PodClass.SERVING for kind in kinds]
    numbers = of.tolist()
    return SlotColumns(
        owner=of,
        controller=of.copy(),
        names=tuple(chain.from_iterable((f"{crop.name}-{number}" for number in range(crop.replicas)) for crop in crops)),
        namespaces=tuple(crops[row].namespace for row in numbers),
        tenant=np.full(count, -1, dtype=np.int64),
        labels=of.copy(),
        constraints=np.zeros(count, dtype=np.int64),
        request=request,
        incoming_request=request.copy(),
        scored_request=scored,
        scored_incoming=scored.copy(),
        priority=np.zeros(count, dtype=np.int64),
        qos=np.where((request[:, :2] > 0).any(axis=1), int(Qos.BURSTABLE), int(Qos.BEST_EFFORT)).astype(np.int64),
        classes=tuple(classes[row] for row in numbers),
        mirror=np.zeros(count, dtype=np.bool_),
        annotations=({},) * count,
        volumes=(PodVolumes(),) * count,
        budgets=tuple((covered[row],) if row in covered else () for row in numbers),
        restart_policy=tuple("OnFailure" if kinds[row] == "Job" else "Always" for row in numbers),
        scheduling_group=("",) * count,
        base=np.concatenate([crop.level for crop in crops]),
        startup_s=np.array([(c.population.startup.from_, c.population.startup.to) for c in crops])[of],
        shutdown_s=np.array([crop.population.shutdown for crop in crops])[of],
        born_at=np.concatenate([crop.born_at for crop in crops]),
        leaves_at=np.array([crop.leaves_at for crop in crops])[of],
    )


def _owners(crops: Sequence[Crop], refs: tuple[WorkloadRef, ...]) -> OwnerColumns:
    at_once = np.array([crop.population.kind == "Deployment" for crop in crops])
    rules = JobRules(backoff_limit=6, failed=0, ignores_disruption=True)
    return OwnerColumns(
        refs=refs,
        uids=tuple(f"uid-{ref.namespace}-{ref.name}" for ref in refs),
        renewal=np.where(at_once, int(Renewal.AT_ONCE), int(Renewal.WHEN_GONE)).astype(np.int64),
        counted=np.ones(len(crops), dtype=np.bool_),
        scaled_at=np.full(len(crops), np.nan),
        annotations=({},) * len(crops),
        jobs=tuple(rules if crop.population.kind == "Job" else None for crop in crops),
        ordered=np.array([crop.population.kind == "StatefulSet" for crop in crops], dtype=np.bool_),
    )


def _budget(crop: Crop, rules: Protection) -> BudgetRules:
    if rules.min_available is not None:
        desired = _rounded_up(rules.min_available, crop.replicas)
    else:
        desired = max(0, crop.replicas - _rounded_up(rules.max_unavailable or 0, crop.replicas))
    selector = Selector((Requirement("app", "In", (crop.name,)),))
    return BudgetRules(namespace=crop.namespace, name=crop.name, selector=selector, desired=desired)


def _rounded_up(value: int | str, of: int) -> int:
    """As the disruption controller reads it: a percentage is rounded up."""
    return value if isinstance(value, int) else math.ceil(float(value.rstrip("%")) / 100 * of - 1e-9)


# ---- what they want, and what happens -----------------------------------------------------------------------------------


def make_demand(spec: ScenarioSpec, crops: Sequence[Crop], *, seed: int, traces: TraceLibrary) -> DemandPlan:
    rng = stream(seed, Stream.DEMAND)
    replicas = [crop.replicas for crop in crops]
    of = np.repeat(np.arange(len(crops)), replicas)
    base = np.concatenate([crop.level for crop in crops])
    waves = [crop.population.wave for crop in crops]
    periods = np.concatenate([between(wave.period, count, rng) for wave, count in zip(waves, replicas, strict=True)])
    peaks = spec.diurnal.peak + spec.diurnal.scatter * rng.standard_normal(len(crops))
    replays, replayed = _replays(crops, of, base, traces=traces, rng=rng)
    return DemandPlan(
        base=base,
        busy=CPU,
        wave_share=np.where(replayed, 0.0, np.array([wave.share / 100 for wave in waves])[of]),
        wave_period_s=np.maximum(periods, 1.0),
        wave_phase=rng.uniform(0, 2 * math.pi, len(of)),
        day_share=np.where(replayed, 0.0, spec.diurnal.share / 100),
        day_peak_s=peaks[of],
        noise_share=np.array([crop.population.noise.share / 100 for crop in crops])[of],
        noise_hold_s=np.array([crop.population.noise.hold for crop in crops])[of],
        replays=replays,
    )


def _replays(
    crops: Sequence[Crop], of: IntArray, base: FloatArray, *, traces: TraceLibrary, rng: np.random.Generator
) -> tuple[tuple[Replay, ...], BoolArray]:
    """The replays, and (slots,) which slots follow one on CPU."""
    wanted: dict[Trace, list[int]] = {}
    for row, crop in enumerate(crops):
        for trace in crop.population.traces:
            wanted.setdefault(trace, []).append(row)
    replayed = np.zeros(len(of), dtype=np.bool_)
    found: list[Replay] = []
    for trace, rows in wanted.items():
        series = traces.series(trace)
        follows = np.isin(of, rows)
        count, column = int(follows.sum()), _COLUMN[trace.kind]
        turns = [rng.permutation(series.values.shape[1]) for _ in range(-(-count // series.values.shape[1]))]
        which = np.full(len(of), -1, dtype=np.int64)
        which[follows] = np.concatenate(turns)[:count]
        carried = series.carried
        scale = base[:, column] / max(float(carried.mean()), 1e-9)
        most = _ceilings(crops, column)[of]
        found.append(Replay(column, series.times, series.values, carried, which, scale, most))
        if column == CPU:
            replayed |= follows
    return tuple(found), replayed


def _ceilings(crops: Sequence[Crop], column: int) -> FloatArray:
    """(crops,): the most that a pod of each may use."""
    uses = [(crop.population.use.cpu, crop.population.use.memory)[column] for crop in crops]
    return np.array([use.most * crop.request[column] for use, crop in zip(uses, crops, strict=True)])


def make_happenings(spec: ScenarioSpec, crops: Sequence[Crop], *, seed: int, hours: float) -> tuple[Happening, ...]:
    rng, seconds = stream(seed, Stream.HAPPENINGS), hours * 3600
    there = [row for row, crop in enumerate(crops) if crop.arrives_at is None]
    found: list[Happening] = []
    for at in moments(rng, per_day=spec.bursts.per_day, start=START, seconds=seconds):
        lasts = float(rng.uniform(spec.bursts.lasts.from_, spec.bursts.lasts.to))
        found += burst(there[int(rng.integers(len(there)))], at=at, lasts_s=lasts, factor=spec.bursts.factor)
    nodes = sum(machines.count for machines in spec.fleet)
    back: dict[int, float] = {}
    for at in moments(rng, per_day=spec.failures.per_day, start=START, seconds=seconds):
        node, lasts = int(rng.integers(nodes)), float(rng.uniform(spec.failures.lasts.from_, spec.failures.lasts.to))
        if back.get(node, 0.0) < at:  # one that is down already cannot fail
            back[node] = at + lasts
            found += outage(node, at=at, lasts_s=lasts)
    deployments = [row for row in there if crops[row].population.kind == "Deployment"]
    for at in moments(rng, per_day=spec.rollouts.per_day, start=START, seconds=seconds):
        if deployments:
            found.append(Happening(at, What.ROLL_OUT, deployments[int(rng.integers(len(deployments)))]))
    for row, crop in enumerate(crops):
        if crop.arrives_at is not None:
            found += [Happening(crop.arrives_at, What.ARRIVE, row), Happening(crop.leaves_at, What.LEAVE, row)]
    found += _daily_peaks(spec.daily_peaks, there, rng, days=math.ceil(seconds / DAY_S))
    return in_order(found)


def _daily_peaks(peaks: DailyPeaks, owners: Sequence[int], rng: np.random.Generator, *, days: int) -> Iterator[Happening]:
    """From the day before the start on, so that yesterday is like the days to come."""
    for owner in rng.permutation(owners)[: round(peaks.share / 100 * len(owners))].tolist():
        begins, lasts = rng.uniform(peaks.at.from_, peaks.at.to), rng.uniform(peaks.lasts.from_, peaks.lasts.to)
        for day in range(-1, days):
            at = START + day * DAY_S + begins + rng.normal(0.0, peaks.jitter)
            yield from burst(owner, at=float(at), lasts_s=float(lasts), factor=peaks.factor)
