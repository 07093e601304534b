"""`RebalancePolicy`: what hot means, what may be moved, and how much of it.

Every default is safe: dry run, finite budgets, nothing in kube-system, no pod without a measurement.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

from pydantic import Field, model_validator

from rebalancer.policy.quantities import (
    CountOrPercent,
    DnsLabel,
    Duration,
    LabelSelector,
    MisplacedValue,
    Percent,
    Priority,
    SignalName,
    Strict,
)
from rebalancer.units import format_duration

API_VERSION = "rebalancer.dev/v1alpha1"
BUILT_IN_SIGNALS = ("cpu", "memory")


class Mode(Enum):
    DRY_RUN = "dry-run"
    ANNOTATE = "annotate"
    EVICT = "evict"


class Threshold(Strict):
    """``low`` <= ``target`` <= ``high``, percent of capacity; as deviations, percentage points around the pool's mean:
    cold under mean - low, drained to mean + target, hot over mean + high."""

    low: Percent
    target: Percent
    high: Percent
    weight: float = Field(default=1.0, ge=0, le=100)


class Pool(Strict):
    name: DnsLabel
    node_selector: LabelSelector = LabelSelector()
    thresholds: Literal["absolute", "deviation"] = "absolute"
    signals: dict[str, Threshold] = Field(min_length=1)

    @model_validator(mode="after")
    def _ordered(self) -> Pool:
        for name, threshold in self.signals.items():
            if self.thresholds == "absolute":
                if not threshold.low <= threshold.target <= threshold.high:
                    raise MisplacedValue(
                        f"low {threshold.low:g} <= target {threshold.target:g} <= high {threshold.high:g} fails in pool {self.name}; "
                        "order the three marks",
                        at=("signals", name),
                    )
            elif threshold.target > threshold.high:
                raise MisplacedValue(
                    f"as deviations target {threshold.target:g} must not be above high {threshold.high:g} in pool {self.name}; "
                    "lower target or raise high",
                    at=("signals", name),
                )
        return self


class Capacity(Strict):
    """Where the capacity of a signal comes from: exactly one of the three."""

    query: str | None = None
    resource: str | None = None
    value: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _exactly_one(self) -> Capacity:
        given = [name for name in ("query", "resource", "value") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"capacity needs exactly one of query, resource, value; it has {', '.join(given) or 'none'}")
        return self


class SignalQueries(Strict):
    """A signal of the operator's own, or a replacement for a built-in one.

    In the queries ``{window}`` becomes the policy's window. ``nodeQuery`` yields one series a node (label ``node``, or ``instance``),
    ``podQuery`` one a pod (labels ``namespace`` and ``pod``). ``nodeAgeQuery`` (seconds since the last raw sample, one series a node) lets
    staleness be seen behind an aggregation; without it the sample's own timestamp is all there is.
    """

    name: SignalName
    unit: str = Field(min_length=1, max_length=20)
    node_query: str = Field(min_length=1)
    pod_query: str = Field(min_length=1)
    capacity: Capacity
    node_age_query: str | None = None
    maximum: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Samples above it are absurd and dropped."""


class Metrics(Strict):
    window: Duration = Field(default=300.0, ge=30)
    statistic: Literal["mean", "max", "p95"] = "mean"
    max_age: Duration = Field(default=180.0, gt=0)
    min_coverage: Percent = 90
    node_label: str = "auto"
    """``auto``, or the label of the node series that holds the node's name, IP or IP:port."""


class Confirm(Strict):
    windows: int = Field(default=10, ge=1, le=120)
    at_least: int = Field(default=8, ge=1)
    step: Duration = Field(default=60.0, ge=10)

    @model_validator(mode="after")
    def _can_happen(self) -> Confirm:
        if self.at_least > self.windows:
            raise MisplacedValue(
                f"{self.at_least} of {self.windows} windows can never be reached; lower atLeast or raise windows", at=("atLeast",)
            )
        return self


class Budgets(Strict):
    """How many evictions a sliding window may hold. Percentages: of nodes' pods, of a namespace's, a workload's, a tenant's pods."""

    window: Duration = Field(default=600.0, gt=0)
    total: CountOrPercent = 20
    per_node: CountOrPercent = 2
    per_namespace: CountOrPercent = 10
    per_workload: CountOrPercent = 1
    per_tenant: CountOrPercent = "10%"


class Cooldown(Strict):
    """A workload rests after a move: ``workload``, times ``backoff`` for each further move in a row, at most ``max``."""

    workload: Duration = 900.0
    node: Duration = 120.0
    backoff: float = Field(default=2.0, ge=1, le=10)
    max: Duration = 21600.0

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
    exclude: tuple[str, ...] = ("kube-system",)


class ClassRules(Strict):
    """What may be done with the pods of each class."""

    serving: Literal["allow", "annotate", "refuse"] = "allow"
    batch: Literal["allow", "annotate", "refuse"] = "allow"
    experiment: Literal["allow", "annotate", "refuse"] = "allow"
    training: Literal["allow", "annotate", "refuse"] = "annotate"
    system: Literal["allow", "annotate", "refuse"] = "refuse"
    unknown: Literal["allow", "annotate", "refuse"] = "allow"


class Victims(Strict):
    priority_below: Priority = "system-cluster-critical"
    """A PriorityClass by name, or a value; pods of that priority or above are never moved."""
    min_age: Duration = 600.0
    min_replicas: int = Field(default=2, ge=1)
    local_storage: Literal["refuse", "allow"] = "refuse"
    persistent_volumes: Literal["refuse", "allow"] = "allow"
    classes: ClassRules = ClassRules()
    namespaces: Names = Names()
    require_opt_in: bool = False
    """Move only pods (or workloads) that are annotated ``rebalancer.dev/evict: "true"``."""
    schedulers: tuple[str, ...] = Field(default=("default-scheduler",), min_length=1)
    """Schedulers whose choice of a node can be predicted by the stock scores; pods of any other are never moved."""
    bare_pods: Literal["refuse"] = "refuse"
    """A pod without a controller would be gone for good; there is nothing to choose, the key is here to say so."""


class Gain(Strict):
    min_relative: Percent = 2
    """Percent of the source's excess that a move must cure."""
    disruption_cost: float = Field(default=0.001, ge=0, allow_inf_nan=False)
    """Heat that one eviction must at least win (heat: sum of weight * max(0, load - target)^2)."""


class Steering(Strict):
    soft_taint: bool = True
    annotate_nodes: Literal["none"] = "none"
    hints: Literal[False] = False


class Breaker(Strict):
    """What stops all evictions: sick nodes, pods left pending after our evictions, moves that do not deliver."""

    max_not_ready: CountOrPercent = "20%"
    max_pending_after_move: int = Field(default=3, ge=1)
    pending_after: Duration = 300.0
    min_realised_gain: Percent = 20
    """Percent of the predicted gain that the last verified moves must have realised on average."""
    min_moves: int = Field(default=5, ge=1)
    """Verified moves needed before the realised gain is judged."""
    hold: Duration = 1800.0
    """How long verified moves are looked back on."""


class Quarantine(Strict):
    """A workload whose replacement came back to the node it was moved from ``returns`` times rests for ``hold``."""

    returns: int = Field(default=1, ge=1)
    hold: Duration = 21600.0


DEFAULT_SIGNALS = {
    "cpu": Threshold(low=40, target=55, high=70, weight=1),
    "memory": Threshold(low=50, target=70, high=85, weight=1),
}


class Spec(Strict):
    mode: Mode = Mode.DRY_RUN
    interval: Duration = Field(default=120.0, ge=10)
    pools: tuple[Pool, ...] = Field(default=(Pool(name="default", signals=DEFAULT_SIGNALS),), min_length=1)
    signals: tuple[SignalQueries, ...] = ()
    metrics: Metrics = Metrics()
    confirm: Confirm = Confirm()
    budgets: Budgets = Budgets()
    cooldown: Cooldown = Cooldown()
    victims: Victims = Victims()
    gain: Gain = Gain()
    steering: Steering = Steering()
    breaker: Breaker = Breaker()
    quarantine: Quarantine = Quarantine()
    events: bool = True
    """Write Events on pods and owners in evict mode."""

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
    name: str = Field(default="default", min_length=1, max_length=253)
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class RebalancePolicy(Strict):
    api_version: Literal["rebalancer.dev/v1alpha1"] = "rebalancer.dev/v1alpha1"
    kind: Literal["RebalancePolicy"] = "RebalancePolicy"
    metadata: Metadata = Metadata()
    spec: Spec = Spec()


def built_in_policy(**spec: Any) -> RebalancePolicy:
    """The policy that is in force when no file is given; keyword arguments replace fields of the spec."""
    return RebalancePolicy(spec=Spec(**spec))
