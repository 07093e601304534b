"""`RebalancePolicy`: what hot means, what may be moved, and how much of it.

Every default is safe: dry run, finite budgets, nothing in kube-system, no pod without a measurement.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

from pydantic import Field, model_validator

from rebalancer.policy.defragment import Defragment
from rebalancer.policy.gpu import Gpu
from rebalancer.policy.hotness import Anticipation, Capacity, Confirm, Metrics, Pool, Risk, SignalQueries, Threshold
from rebalancer.policy.quantities import CountOrPercent, Duration, MisplacedValue, Percent, Priority, Strict, TimeZone
from rebalancer.policy.reclaim import Reclaim
from rebalancer.units import format_duration

__all__ = [
    "API_VERSION",
    "BUILT_IN_SIGNALS",
    "Anticipation",
    "Breaker",
    "Budgets",
    "Capacity",
    "ClassRules",
    "Confirm",
    "Cooldown",
    "Gain",
    "Metadata",
    "Metrics",
    "Mode",
    "Names",
    "Pool",
    "Quarantine",
    "RebalancePolicy",
    "SignalQueries",
    "Spec",
    "Steering",
    "Threshold",
    "Victims",
    "built_in_policy",
]

API_VERSION = "rebalancer.dev/v1alpha1"
BUILT_IN_SIGNALS = ("cpu", "memory", "gpu", "gpu_memory")


class Mode(Enum):
    DRY_RUN = "dry-run"
    ANNOTATE = "annotate"
    EVICT = "evict"


class Budgets(Strict):
    """How many evictions a sliding window may hold. Percentages are of the running pods there, rounded down, but at least 1 above 0%."""

    window: Duration = Field(default=600.0, gt=0)
    """Length of the sliding window that the limits below count in."""
    total: CountOrPercent = 20
    """Evictions in the whole cluster."""
    per_node: CountOrPercent = 2
    """Evictions from one node."""
    per_namespace: CountOrPercent = 10
    """Evictions in one namespace."""
    per_workload: CountOrPercent = 1
    """Evictions of one workload's pods; a gang that moves whole counts once."""
    per_tenant: CountOrPercent = "10%"
    """Evictions of one tenant's pods; nothing is counted for pods of no tenant."""


class Cooldown(Strict):
    """A workload rests after a move: ``workload``, times ``backoff`` for each further move in a row, at most ``max``."""

    workload: Duration = 900.0
    """How long a workload rests after its first move, and after a HorizontalPodAutoscaler has scaled it."""
    node: Duration = 120.0
    """How long a node rests after a pod was evicted from it."""
    backoff: float = Field(default=2.0, ge=1, le=10)
    """Factor on the rest of a workload for each further move in a row; no unit."""
    max: Duration = 21600.0
    """The longest rest of a workload, and how far apart two moves may be to be in a row."""

    @model_validator(mode="after")
    def _bounded(self) -> Cooldown:
        if self.max < self.workload:
            raise MisplacedValue(
                f"{format_duration(self.max)} is shorter than cooldown.workload, {format_duration(self.workload)}; raise max", at=("max",)
            )
        return self


class Names(Strict):
    """``include`` empty means every one; ``exclude`` wins over ``include``. A trailing ``*`` matches any ending."""

    include: tuple[str, ...] = ()
    """Names, or beginnings with a trailing ``*``, of which pods may be moved."""
    exclude: tuple[str, ...] = ("kube-system",)
    """Names, or beginnings with a trailing ``*``, of which no pod is ever moved. A list of your own replaces the default."""


class ClassRules(Strict):
    """What may be done with the pods of each class: moved, marked as candidates in annotate mode only, or nothing."""

    serving: Literal["allow", "annotate", "refuse"] = "allow"
    """Pods of Deployments, ReplicaSets and StatefulSets, of RayServices and LeaderWorkerSets, and what KServe, Knative, Seldon or llm-d
    serve."""
    batch: Literal["allow", "annotate", "refuse"] = "allow"
    """Pods of Jobs and CronJobs that are no gang."""
    experiment: Literal["allow", "annotate", "refuse"] = "allow"
    """Pods of Notebooks, JupyterHub, dev workspaces and RayClusters of nobody's job."""
    training: Literal["allow", "annotate", "refuse"] = "annotate"
    """Pods of distributed training: PyTorchJob, MPIJob, RayJob, TrainJob, JobSet and their kin, and members of gangs that nothing else
    names. Under ``annotate`` those still move that are annotated ``rebalancer.dev/checkpointed: "true"`` or surplus of an elastic job."""
    system: Literal["allow", "annotate", "refuse"] = "refuse"
    """Pods of DaemonSets, static pods, and pods of system-cluster-critical priority and above."""
    unknown: Literal["allow", "annotate", "refuse"] = "allow"
    """Pods of owners of any other kind; ``rebalancer.dev/class`` on pod or workload says what they are."""
    unknown_gpu: Literal["allow", "annotate", "refuse"] = "annotate"
    """Those of them that ask for GPUs, where this is stricter: nobody says what is lost when they begin anew."""


class Victims(Strict):
    """Which pods may leave a hot node. Whatever these keys allow, the other gates still protect."""

    priority_below: Priority = "system-cluster-critical"
    """A PriorityClass by name, or a value; pods of that priority or above are never moved."""
    min_age: Duration = 600.0
    """Pods that started less than this ago stay."""
    min_replicas: int = Field(default=2, ge=1)
    """Pods of a workload that wants or has fewer Ready replicas stay; moving one would be an outage."""
    local_storage: Literal["refuse", "allow"] = "refuse"
    """Whether pods with a disk emptyDir or a hostPath may move, and leave that data behind."""
    persistent_volumes: Literal["refuse", "allow"] = "allow"
    """Whether pods with a persistent volume claim may move."""
    classes: ClassRules = ClassRules()
    """What may be done with pods by what they are for."""
    gangs: Literal["refuse", "checkpointed", "whole"] = "checkpointed"
    """Whether gangs may move. A gang moves whole, when every member has a place, or not at all; only members above its minimum go alone.
    ``checkpointed``: whole gangs whose members are all annotated ``rebalancer.dev/checkpointed``, and surplus; ``whole``: others too, if
    their class may move; ``refuse``: neither gangs nor their surplus."""
    namespaces: Names = Names()
    """In which namespaces pods may move."""
    require_opt_in: bool = False
    """Move only pods (or workloads) that are annotated ``rebalancer.dev/evict: "true"``."""
    require_preemptible: bool = False
    """Move only pods that their scheduler calls preemptible: ``volcano.sh/preemptable``, ``kai.scheduler/preemptibility`` or
    ``quota.scheduling.koordinator.sh/preemptible``."""
    schedulers: tuple[str, ...] = Field(default=("default-scheduler",), min_length=1)
    """Schedulers whose choice of a node can be predicted by the stock scores; pods of any other are never moved."""
    bare_pods: Literal["refuse"] = "refuse"
    """A pod without a controller would be gone for good; there is nothing to choose, the key is here to say so."""


class Gain(Strict):
    """What a move must at least win to be worth an eviction."""

    min_relative: Percent = 2
    """Percent of the source's excess that a move must cure."""
    disruption_cost: float = Field(default=0.0005, ge=0, allow_inf_nan=False)
    """Heat that one eviction must at least win (heat: sum of weight * max(0, load - target)^2)."""
    start_up: Duration = 60.0
    """Workloads whose pods take longer than this to become Ready cost more to move, in proportion to the time and to the share of the
    workload that is away for so long; 0s: nobody asks how long it takes."""


class Steering(Strict):
    """What is done so that the scheduler puts replacements, and other new pods, where the plan wants them."""

    soft_taint: bool = True
    """In evict mode, warm nodes of a pool with a hot node carry ``rebalancer.dev/hot:PreferNoSchedule`` until they are cool."""
    grades: Literal[1, 2] = 1
    """2: warm nodes carry ``rebalancer.dev/warm`` instead, and those over ``high`` both, so that hot ones repel more than warm ones."""
    taint_above: float = Field(default=75.0, ge=10, le=100, allow_inf_nan=False)
    """Percent of ``target`` above which a node counts as warm for that; 100: only nodes above their target."""
    annotate_nodes: Literal["none", "own", "crane", "both"] = "none"
    """In annotate and evict mode, nodes tell schedulers their load: ``own`` as ``rebalancer.dev/load``, ``crane`` as crane-scheduler, or
    ``both``."""
    crane_time_zone: TimeZone = "Asia/Shanghai"
    """``TZ`` of the scheduler that reads the crane annotations, since their times are local ones. With a wrong one they count as stale."""
    load_expiry: Duration = Field(default=600.0, ge=60, le=86400)
    """How long ``rebalancer.dev/load`` is good for when nobody renews it."""
    extender_weight: int = Field(default=0, ge=0, le=100)
    """The weight with which kube-scheduler is configured to ask `rebalancer extender`, with reservations; 0: it is not asked. Plans then
    choose the node of a replacement, where that weight outdoes kube-scheduler's own scores, instead of predicting it."""
    hints: bool = False
    """In evict mode, replacements in namespaces with the label ``rebalancer.dev/hints: enabled`` are given their planned node."""
    hint_wait: Duration = Field(default=5.0, ge=1, le=60)
    """The longest time that a new pod waits for its hint; then it is scheduled without."""

    @property
    def own_annotation(self) -> bool:
        return self.annotate_nodes in ("own", "both")

    @property
    def crane_annotations(self) -> bool:
        return self.annotate_nodes in ("crane", "both")


class Breaker(Strict):
    """What stops all evictions: sick nodes, pods left pending after our evictions, moves that do not deliver or land elsewhere."""

    max_not_ready: CountOrPercent = "20%"
    """More nodes than this that are not Ready open the breaker; a percentage is of all nodes."""
    max_pending_after_move: int = Field(default=3, ge=1)
    """So many evicted pods without a Ready replacement open the breaker."""
    pending_after: Duration = 300.0
    """How long after the eviction a replacement that is not Ready counts as pending."""
    min_realised_gain: Percent = 20
    """Percent of the predicted gain that the last verified moves must have realised on average."""
    min_landing_rate: Percent = 20
    """Percent of the last replacements that must have landed on a node that their plan named; 0: never mind. With the stock scheduler most
    do, steered or not; plans that could name only a few of many equal nodes, as in clusters of thousands, do not count."""
    min_moves: int = Field(default=5, ge=1)
    """Settled moves needed before the realised gain, and where replacements land, are judged."""
    hold: Duration = 1800.0
    """How long settled moves are looked back on."""


class Quarantine(Strict):
    """A workload whose replacement came back to the node it was moved from ``returns`` times rests for ``hold``."""

    returns: int = Field(default=1, ge=1)
    """How many returns to the node they left send a workload's pods into quarantine."""
    hold: Duration = 21600.0
    """How long the workload rests then."""


DEFAULT_SIGNALS = {
    "cpu": Threshold(low=40, target=55, high=70, weight=1),
    "memory": Threshold(low=50, target=70, high=85, weight=1),
}


class Spec(Strict):
    """Everything that an operator may want. Each key has a safe default, so a file holds only what differs."""

    mode: Mode = Mode.DRY_RUN
    """``dry-run`` only reports, ``annotate`` marks the pods that should move, ``evict`` evicts them through the Eviction API."""
    interval: Duration = Field(default=120.0, ge=10)
    """Time from the start of one cycle to the next."""
    pools: tuple[Pool, ...] = Field(default=(Pool(name="default", signals=DEFAULT_SIGNALS),), min_length=1)
    """The pools that nodes are balanced in, with the marks of each."""
    signals: tuple[SignalQueries, ...] = ()
    """Signals of your own, and other queries for cpu and memory."""
    metrics: Metrics = Metrics()
    """What counts as usage, and as known."""
    confirm: Confirm = Confirm()
    """How long a node must have been hot."""
    risk: Risk = Risk()
    """How much room is left for the swings of pods."""
    anticipation: Anticipation = Anticipation()
    """What yesterday says of the hours to come."""
    budgets: Budgets = Budgets()
    """How many evictions at most."""
    cooldown: Cooldown = Cooldown()
    """How long workloads and nodes rest."""
    victims: Victims = Victims()
    """Which pods may be moved."""
    gain: Gain = Gain()
    """What a move must win."""
    steering: Steering = Steering()
    """What helps replacements to the right place."""
    breaker: Breaker = Breaker()
    """What stops all evictions."""
    quarantine: Quarantine = Quarantine()
    """What happens to workloads that come back."""
    reclaim: Reclaim = Reclaim()
    """When tenants are given back what they are guaranteed."""
    defragment: Defragment = Defragment()
    """When pods are moved aside for one that waits for GPUs."""
    events: bool = True
    """Write Events on pods and owners in evict mode."""
    gpu: Gpu = Gpu()
    """What GPUs are called here, and what is asked about them."""

    @model_validator(mode="after")
    def _pools_differ(self) -> Spec:
        for row, pool in enumerate(self.pools):
            for other in self.pools[:row]:
                if pool.name == other.name:
                    raise MisplacedValue(f"two pools are called {pool.name}; rename one", at=("pools", row, "name"))
                if pool.node_selector == other.node_selector:
                    raise MisplacedValue(
                        f"pools {other.name} and {pool.name} select the same nodes; give them different selectors, a node is in one pool",
                        at=("pools", row),
                    )
        return self

    @model_validator(mode="after")
    def _signals_and_pools_agree(self) -> Spec:
        own = [signal.name for signal in self.signals]
        known = {*BUILT_IN_SIGNALS, *own}
        for row, pool in enumerate(self.pools):
            for name in pool.signals:
                if name not in known:
                    raise MisplacedValue(
                        f"pool {pool.name} judges signal {name}, for which there is no query; "
                        f"define it under spec.signals or use one of {', '.join(sorted(known))}",
                        at=("pools", row, "signals", name),
                    )
        judged = {name for pool in self.pools for name in pool.signals}
        for row, name in enumerate(own):
            if name in own[:row]:
                raise MisplacedValue(f"signal {name} is defined twice; keep one", at=("signals", row, "name"))
            if name not in judged:
                raise MisplacedValue(
                    f"signal {name} has queries, but no pool judges it; give a pool its marks or delete it", at=("signals", row, "name")
                )
        return self

    @property
    def judged_signals(self) -> tuple[str, ...]:
        """Every signal that some pool is judged by, in a stable order: built-in ones first, then the operator's."""
        judged = {name for pool in self.pools for name in pool.signals}
        order = [*BUILT_IN_SIGNALS, *(signal.name for signal in self.signals if signal.name not in BUILT_IN_SIGNALS)]
        return tuple(name for name in order if name in judged)


class Metadata(Strict):
    """What the policy is called. Labels and annotations are for your own tools; nothing here reads them."""

    name: str = Field(default="default", min_length=1, max_length=253)
    """How reports and logs call the policy."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Of your own; not read."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Of your own; not read."""


class RebalancePolicy(Strict):
    """A policy file: what is wanted, as opposed to the settings, which say where things are."""

    api_version: Literal["rebalancer.dev/v1alpha1"] = "rebalancer.dev/v1alpha1"
    """The version of the format; a file must give it."""
    kind: Literal["RebalancePolicy"] = "RebalancePolicy"
    """A file must give it."""
    metadata: Metadata = Metadata()
    """What the policy is called."""
    spec: Spec = Spec()
    """What is wanted; a file must give it, ``{}`` for the defaults."""


def built_in_policy(**spec: Any) -> RebalancePolicy:
    """The policy that is in force when no file is given; keyword arguments replace fields of the spec."""
    return RebalancePolicy(spec=Spec(**spec))
