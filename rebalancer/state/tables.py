"""The tables of the cluster: one frozen dataclass a table, one column an attribute, one row an object.

Shapes: ``nodes``, ``pods``, ``workloads`` are the numbers of rows; ``resources`` is the axis of what kube-scheduler counts
(cpu in cores, memory in bytes, pods, and every extended name that appears); ``signals`` is the axis of what is measured.
Two axes, because the scheduler counts things that nobody measures and operators measure things that nobody requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.scheduling import Selector, Taint


class PodClass(Enum):
    """What a pod is for; policy says which classes may move."""

    SERVING = "serving"
    TRAINING = "training"
    EXPERIMENT = "experiment"
    BATCH = "batch"
    SYSTEM = "system"
    UNKNOWN = "unknown"


class Phase(IntEnum):
    PENDING = 0
    RUNNING = 1
    SUCCEEDED = 2
    FAILED = 3
    UNKNOWN = 4


class Qos(IntEnum):
    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


@dataclass(frozen=True, slots=True)
class Signal:
    """A measured resource. ``resource`` names the request that it is compared with, or is None (network, PSI)."""

    name: str
    unit: str
    resource: str | None = None
    scoped: bool = False
    """Nodes without a capacity of it have nothing to do with it: they are not judged by it, and not unknown."""


@dataclass(frozen=True, slots=True)
class WorkloadRef:
    """The root owner of a pod, as people name it."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A resource claim of a pod; ``shared`` when the pod names an existing claim instead of a template."""

    name: str
    shared: bool


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What a pod would lose or must take along. ``local`` names disk emptyDir and hostPath volumes; memory emptyDir is neither."""

    local: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class Nodes:
    names: tuple[str, ...]
    labels: tuple[Mapping[str, str], ...]
    annotations: tuple[Mapping[str, str], ...]
    taints: tuple[tuple[Taint, ...], ...]
    unschedulable: BoolArray
    ready: BoolArray
    created_at: FloatArray
    """(nodes,) unix seconds."""
    allocatable: FloatArray
    """(nodes, resources): 0 where a node does not have the resource, as the scheduler reads it."""
    capacity: FloatArray
    """(nodes, signals): what load is a share of (allocatable before any over-sell for cpu and memory); NaN unknown."""
    usage: FloatArray
    """(nodes, signals): measured mean of the window; NaN unknown."""
    departed: FloatArray
    """(nodes, signals): the part of ``usage`` that pods caused which are no longer there; 0 where there is none."""
    sample_age_s: FloatArray
    """(nodes, signals): age of the newest raw sample behind ``usage``; NaN unknown."""
    history: FloatArray
    """(nodes, signals, windows): load ratio at the last confirmation windows, newest last; NaN unknown."""
    unknown: Mapping[tuple[int, int], str]
    """(node, signal) -> why the usage is unknown, in words."""


@dataclass(frozen=True, slots=True)
class Pods:
    uids: tuple[str, ...]
    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    node: IntArray
    """(pods,): row in nodes; -1 pending."""
    workload: IntArray
    """(pods,): row in workloads; -1 for a bare pod."""
    controller: IntArray
    """(pods,): number of the direct controller (one a ReplicaSet, say), equal for its pods; -1 none."""
    tenant: IntArray
    """(pods,): row in ``ClusterState.tenants``; -1 none."""
    labels: IntArray
    """(pods,): row in ``ClusterState.label_sets``."""
    constraints: IntArray
    """(pods,): row in ``ClusterState.constraints``."""
    request: FloatArray
    """(pods, resources): effective request, resize status included; the column ``pods`` is 1."""
    incoming_request: FloatArray
    """(pods, resources): the same from the spec alone: what a replacement will ask for."""
    scored_request: FloatArray
    """(pods, 2): cpu cores and memory bytes with the scheduler's defaults for containers that request nothing."""
    scored_incoming: FloatArray
    """(pods, 2): the same as LeastAllocated sees a replacement: from the spec, without pod-level requests."""
    measured: FloatArray
    """(pods, signals): what Prometheus says, NaN unknown."""
    usage: FloatArray
    """(pods, signals): ``measured``, or an estimate for a pod too young to be measured; NaN unknown."""
    estimated: BoolArray
    """(pods, signals): ``usage`` is an estimate."""
    deviation: FloatArray
    """(pods, signals): standard deviation of the usage over the policy's ``risk.lookback``; NaN unknown, or not asked for."""
    priority: IntArray
    qos: IntArray
    phase: IntArray
    ready: BoolArray
    terminating: BoolArray
    created_at: FloatArray
    started_at: FloatArray
    """(pods,): status.startTime, NaN unknown."""
    ready_after: FloatArray
    """(pods,): seconds from its start to its becoming Ready; NaN unknown, or not Ready."""
    classes: tuple[PodClass, ...]
    mirror: BoolArray
    """Static pods and their mirrors."""
    annotations: tuple[Mapping[str, str], ...]
    """Only the keys that some rule reads."""
    volumes: tuple[PodVolumes, ...]
    budgets: tuple[tuple[int, ...], ...]
    """Rows in ``ClusterState.budgets`` of the disruption budgets that select the pod."""
    restart_policy: tuple[str, ...]
    scheduling_group: tuple[str, ...]
    """Name of the gang the pod belongs to, or an empty string."""


@dataclass(frozen=True, slots=True)
class JobRules:
    """What decides whether an eviction burns a Job. ``ignores_disruption``: a podFailurePolicy rule ignores DisruptionTarget."""

    backoff_limit: float
    failed: int
    ignores_disruption: bool


@dataclass(frozen=True, slots=True)
class Workloads:
    refs: tuple[WorkloadRef, ...]
    uids: tuple[str, ...]
    replicas: FloatArray
    """(workloads,): wanted; NaN where the kind does not say."""
    ready: FloatArray
    """(workloads,): ready replicas; NaN unknown."""
    rollout: tuple[str, ...]
    """Why a rollout is in progress, in words; empty when none is."""
    scaled_at: FloatArray
    """(workloads,): last time an HPA scaled it, unix seconds; NaN never or no HPA."""
    annotations: tuple[Mapping[str, str], ...]
    jobs: tuple[JobRules | None, ...]
    ordered: BoolArray
    """(workloads,): a StatefulSet with OrderedReady: one pod at a time."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget. ``allowed`` is 0 when ``stale`` (its controller has not seen the newest spec)."""

    namespace: str
    name: str
    selector: Selector | None
    allowed: int
    current_healthy: int
    desired_healthy: int
    expected_pods: int
    always_allow_unhealthy: bool
    stale: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
