"""A small cluster in a few readable lines, as the pure code sees it.

    state = cluster(
        nodes=[node("hot", cpu=8, load={"cpu": 0.9}), node("cool", cpu=8, load={"cpu": 0.2})],
        pods=[pod("web-1", on="hot", workload="web", cpu=1, uses={"cpu": 2.0})],
    )

GPUs of nodes and asks of pods are written with `tests.support.gpus`, gangs with `tests.support.gangs`.

Every pod gets a workload of three ready replicas unless ``workload=None`` (bare) or an explicit `workload(...)` says otherwise. A node
without ``load`` or ``usage`` uses what its pods use. A pod without ``uses`` is unmeasured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalancer.state.cluster import ClusterState, Coverage, Share
from rebalancer.state.devices import DeviceFault
from rebalancer.state.gpu import GpuAsk
from rebalancer.state.scheduling import Constraints, LabelSet, Selector, Taint
from rebalancer.state.tables import (
    Budget,
    JobRules,
    Nodes,
    Phase,
    PodClass,
    Pods,
    PodVolumes,
    Qos,
    Signal,
    WorkloadRef,
    Workloads,
)
from rebalancer.units import parse_quantity
from tests.support.gangs import GangSpec, gang_table
from tests.support.gpus import DeviceSpec, Holds, PodGpus, gpu_tables

NOW = 1_750_000_000.0
CPU = Signal("cpu", "cores", "cpu")
MEMORY = Signal("memory", "bytes", "memory")
GPU = Signal("gpu", "devices", scoped=True)
GPU_MEMORY = Signal("gpu_memory", "bytes", scoped=True)
WINDOWS = 10


def _amount(value: float | str) -> float:
    return parse_quantity(value) if isinstance(value, str) else float(value)


@dataclass(frozen=True)
class NodeSpec:
    name: str
    cpu: float = 8.0
    memory: float | str = "32Gi"
    pods: int = 110
    extended: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Taint] = ()
    load: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    departed: Mapping[str, float] = field(default_factory=dict)
    history: Mapping[str, Sequence[float]] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    unschedulable: bool = False
    ready: bool = True
    zone: str | None = None
    age_s: float = 30.0
    gpus: Sequence[DeviceSpec] = ()


@dataclass(frozen=True)
class PodSpec:
    name: str
    on: str | None = None
    namespace: str = "default"
    workload: str | WorkloadRef | None = "app"
    controller: str | None = None
    cpu: float = 1.0
    memory: float | str = "1Gi"
    extended: Mapping[str, float] = field(default_factory=dict)
    uses: Mapping[str, float] = field(default_factory=dict)
    estimated: Iterable[str] = ()
    deviation: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] | None = None
    constraints: Constraints = Constraints()
    priority: int = 0
    qos: Qos = Qos.BURSTABLE
    phase: Phase = Phase.RUNNING
    ready: bool = True
    terminating: bool = False
    age_s: float = 86400.0
    ready_after_s: float = np.nan
    pod_class: PodClass = PodClass.SERVING
    mirror: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)
    volumes: PodVolumes = PodVolumes()
    budgets: Sequence[str] = ()
    restart_policy: str = "Always"
    scheduling_group: str = ""
    gang: str = ""
    tenant: str | None = None
    uid: str | None = None
    gpu: GpuAsk | Sequence[GpuAsk] = ()
    holds: Holds = field(default_factory=dict)


@dataclass(frozen=True)
class WorkloadSpec:
    ref: WorkloadRef
    replicas: float = 3
    ready: float | None = None
    rollout: str = ""
    scaled_at: float = np.nan
    annotations: Mapping[str, str] = field(default_factory=dict)
    job: JobRules | None = None
    ordered: bool = False


node = NodeSpec
pod = PodSpec


def workload(
    name: str,
    *,
    kind: str = "Deployment",
    namespace: str = "default",
    replicas: float = 3,
    ready: float | None = None,
    rollout: str = "",
    scaled_at: float = np.nan,
    annotations: Mapping[str, str] | None = None,
    job: JobRules | None = None,
    ordered: bool = False,
) -> WorkloadSpec:
    return WorkloadSpec(
        ref=WorkloadRef(kind, namespace, name),
        replicas=replicas,
        ready=ready,
        rollout=rollout,
        scaled_at=scaled_at,
        annotations=annotations or {},
        job=job,
        ordered=ordered,
    )


def budget(
    name: str,
    *,
    namespace: str = "default",
    allowed: int = 1,
    healthy: int = 3,
    desired: int = 2,
    expected: int = 3,
    always_allow: bool = False,
    stale: bool = False,
) -> Budget:
    """A disruption budget; pods name it in ``budgets=["name"]``."""
    return Budget(
        namespace=namespace,
        name=name,
        selector=Selector(),
        allowed=0 if stale else allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        always_allow_unhealthy=always_allow,
        stale=stale,
    )


def _ref(spec: PodSpec) -> WorkloadRef | None:
    if spec.workload is None or isinstance(spec.workload, WorkloadRef):
        return spec.workload
    return WorkloadRef("Deployment", spec.namespace, spec.workload)


def _by_signal(values: Sequence[Mapping[str, float]], column: Mapping[str, int]) -> np.ndarray:
    """(pods, signals), NaN where nothing is given."""
    found = np.full((len(values), len(column)), np.nan)
    for row, given in enumerate(values):
        for name, value in given.items():
            found[row, column[name]] = value
    return found


def cluster(
    *,
    nodes: Sequence[NodeSpec],
    pods: Sequence[PodSpec] = (),
    workloads: Sequence[WorkloadSpec] = (),
    budgets: Sequence[Budget] = (),
    signals: Sequence[Signal] = (CPU, MEMORY),
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    gpu_faults: Sequence[DeviceFault] = (),
    gangs: Sequence[GangSpec] = (),
    at: float = NOW,
    window_s: float = 300.0,
    step_s: float = 60.0,
) -> ClusterState:
    """Assemble a `ClusterState` from the specs; history is flat at the node's load unless a node gives its own."""
    extended = sorted({name for spec in [*nodes, *pods] for name in spec.extended})
    resources = ("cpu", "memory", "ephemeral-storage", "pods", *extended)
    node_row = {spec.name: row for row, spec in enumerate(nodes)}
    explicit = {spec.ref: spec for spec in workloads}
    refs = list(dict.fromkeys([*explicit, *(ref for ref in map(_ref, pods) if ref is not None)]))
    workload_row = {ref: row for row, ref in enumerate(refs)}
    budget_row = {(b.namespace, b.name): row for row, b in enumerate(budgets)}
    signal_row = {signal.name: column for column, signal in enumerate(signals)}
    tenants = tuple(dict.fromkeys(spec.tenant for spec in pods if spec.tenant is not None))

    pod_usage = np.full((len(pods), len(signals)), np.nan)
    estimated = np.zeros((len(pods), len(signals)), dtype=bool)
    deviation = _by_signal([p.deviation for p in pods], signal_row)
    for row, p in enumerate(pods):
        for name, value in p.uses.items():
            pod_usage[row, signal_row[name]] = _amount(value)
        for name in p.estimated:
            estimated[row, signal_row[name]] = True

    capacity = np.full((len(nodes), len(signals)), np.nan)
    usage = np.full((len(nodes), len(signals)), np.nan)
    departed = np.zeros((len(nodes), len(signals)))
    history = np.full((len(nodes), len(signals), WINDOWS), np.nan)
    unknown: dict[tuple[int, int], str] = {}
    for row, n in enumerate(nodes):
        for column, signal in enumerate(signals):
            base = _base(n, signal)
            capacity[row, column] = base
            if signal.name in n.unknown:
                unknown[row, column] = n.unknown[signal.name]
                continue
            if signal.name in n.usage:
                usage[row, column] = _amount(n.usage[signal.name])
            elif signal.name in n.load:
                usage[row, column] = n.load[signal.name] * base
            else:
                here = [i for i, p in enumerate(pods) if p.on == n.name]
                usage[row, column] = np.nansum(pod_usage[here, column]) + 0.0 * base if here else 0.0 * base
            departed[row, column] = n.departed.get(signal.name, 0.0)
            own = n.history.get(signal.name)
            history[row, column] = own if own is not None else (usage[row, column] - departed[row, column]) / base

    label_sets: dict[LabelSet, int] = {}
    constraints: dict[Constraints, int] = {}
    controllers: dict[str, int] = {}
    label_rows, constraint_rows, controller_rows = [], [], []
    for p in pods:
        labels = {"app": p.workload} if p.labels is None and isinstance(p.workload, str) else (p.labels or {})
        label_rows.append(label_sets.setdefault(LabelSet(p.namespace, tuple(sorted(labels.items()))), len(label_sets)))
        constraint_rows.append(constraints.setdefault(p.constraints, len(constraints)))
        ref = _ref(p)
        owner = p.controller or (f"uid-{ref}" if ref is not None else None)
        controller_rows.append(-1 if owner is None else controllers.setdefault(owner, len(controllers)))

    request = np.zeros((len(pods), len(resources)))
    allocatable = np.zeros((len(nodes), len(resources)))
    for row, p in enumerate(pods):
        request[row, 0], request[row, 1], request[row, 3] = p.cpu, _amount(p.memory), 1.0
        for name, value in p.extended.items():
            request[row, resources.index(name)] = value
    for row, n in enumerate(nodes):
        allocatable[row, 0], allocatable[row, 1], allocatable[row, 2], allocatable[row, 3] = (
            n.cpu,
            _amount(n.memory),
            1e12,
            n.pods,
        )
        for name, value in n.extended.items():
            allocatable[row, resources.index(name)] = value

    labels_of = [
        {"kubernetes.io/hostname": n.name, **({"topology.kubernetes.io/zone": n.zone} if n.zone else {}), **n.labels} for n in nodes
    ]
    specs = [explicit.get(ref, WorkloadSpec(ref=ref)) for ref in refs]
    known_nodes = {s.name: Share(int((~np.isnan(usage[:, c])).sum()), len(nodes)) for c, s in enumerate(signals)}
    known_pods = {s.name: Share(int((~np.isnan(pod_usage[:, c])).sum()), len(pods)) for c, s in enumerate(signals)}
    scored = request[:, :2].copy()
    scored[:, 0] = np.where(scored[:, 0] == 0, 0.1, scored[:, 0])
    scored[:, 1] = np.where(scored[:, 1] == 0, 209715200.0, scored[:, 1])
    return ClusterState(
        cluster="test-cluster",
        at=at,
        resources=resources,
        signals=tuple(signals),
        nodes=Nodes(
            names=tuple(n.name for n in nodes),
            labels=tuple(labels_of),
            annotations=tuple(n.annotations for n in nodes),
            taints=tuple(tuple(n.taints) for n in nodes),
            unschedulable=np.array([n.unschedulable for n in nodes], dtype=bool),
            ready=np.array([n.ready for n in nodes], dtype=bool),
            created_at=np.full(len(nodes), at - 30 * 86400.0),
            allocatable=allocatable,
            capacity=capacity,
            usage=usage,
            departed=departed,
            sample_age_s=np.tile(np.array([n.age_s for n in nodes])[:, None], (1, len(signals))).reshape(len(nodes), len(signals)),
            history=history,
            unknown=unknown,
        ),
        pods=Pods(
            uids=tuple(p.uid or f"uid-{p.namespace}-{p.name}" for p in pods),
            names=tuple(p.name for p in pods),
            namespaces=tuple(p.namespace for p in pods),
            node=np.array([-1 if p.on is None else node_row[p.on] for p in pods], dtype=np.int64),
            workload=np.array([-1 if (ref := _ref(p)) is None else workload_row[ref] for p in pods], dtype=np.int64),
            controller=np.array(controller_rows, dtype=np.int64),
            tenant=np.array([-1 if p.tenant is None else tenants.index(p.tenant) for p in pods], dtype=np.int64),
            labels=np.array(label_rows, dtype=np.int64),
            constraints=np.array(constraint_rows, dtype=np.int64),
            request=request,
            incoming_request=request.copy(),
            scored_request=scored,
            scored_incoming=scored.copy(),
            measured=np.where(estimated, np.nan, pod_usage),
            usage=pod_usage,
            estimated=estimated,
            deviation=deviation,
            priority=np.array([p.priority for p in pods], dtype=np.int64),
            qos=np.array([int(p.qos) for p in pods], dtype=np.int64),
            phase=np.array([int(p.phase if p.on is not None else Phase.PENDING) for p in pods], dtype=np.int64),
            ready=np.array([p.ready and p.on is not None for p in pods], dtype=bool),
            terminating=np.array([p.terminating for p in pods], dtype=bool),
            created_at=np.array([at - p.age_s for p in pods], dtype=np.float64),
            started_at=np.array([at - p.age_s if p.on is not None else np.nan for p in pods], dtype=np.float64),
            ready_after=np.array([p.ready_after_s for p in pods], dtype=np.float64),
            classes=tuple(p.pod_class for p in pods),
            mirror=np.array([p.mirror for p in pods], dtype=bool),
            annotations=tuple(p.annotations for p in pods),
            volumes=tuple(p.volumes for p in pods),
            budgets=tuple(tuple(budget_row[p.namespace, name] for name in p.budgets) for p in pods),
            restart_policy=tuple(p.restart_policy for p in pods),
            scheduling_group=tuple(p.scheduling_group for p in pods),
        ),
        workloads=Workloads(
            refs=tuple(refs),
            uids=tuple(f"uid-{ref}" for ref in refs),
            replicas=np.array([w.replicas for w in specs], dtype=np.float64),
            ready=np.array([w.replicas if w.ready is None else w.ready for w in specs], dtype=np.float64),
            rollout=tuple(w.rollout for w in specs),
            scaled_at=np.array([w.scaled_at for w in specs], dtype=np.float64),
            annotations=tuple(w.annotations for w in specs),
            jobs=tuple(w.job for w in specs),
            ordered=np.array([w.ordered for w in specs], dtype=bool),
        ),
        budgets=tuple(budgets),
        label_sets=tuple(label_sets),
        constraints=tuple(constraints),
        controllers=tuple(controllers),
        namespaces=namespaces if namespaces is not None else {p.namespace: {} for p in pods},
        priorities={"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000},
        tenants=tenants,
        coverage=Coverage(nodes=known_nodes, pods=known_pods, oldest_sample_s={s.name: 30.0 for s in signals}, dropped={}),
        window_s=window_s,
        step_s=step_s,
        gangs=gang_table([(p.namespace, p.gang, p.phase not in (Phase.SUCCEEDED, Phase.FAILED)) for p in pods], gangs),
        gpus=gpu_tables([n.gpus for n in nodes], [_gpus_of(p, node_row) for p in pods], gpu_faults),
    )


def _base(spec: NodeSpec, signal: Signal) -> float:
    """Capacity of the signal; NaN for one of GPUs on a node without."""
    if not signal.scoped:
        return {"cpu": float(spec.cpu), "memory": _amount(spec.memory)}.get(signal.resource or "", 1.0)
    if not spec.gpus:
        return float("nan")
    return float(len(spec.gpus)) if signal == GPU else sum(_amount(device.memory) for device in spec.gpus)


def _gpus_of(spec: PodSpec, node_row: Mapping[str, int]) -> PodGpus:
    asks = (spec.gpu,) if isinstance(spec.gpu, GpuAsk) else tuple(spec.gpu)
    active = spec.on is not None and spec.phase not in (Phase.SUCCEEDED, Phase.FAILED)
    return PodGpus(node=-1 if spec.on is None else node_row[spec.on], asks=asks, holds=spec.holds, active=active)
