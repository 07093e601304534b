"""The half of the policy that says when a node is hot: pools and their marks, signals, what is measured, and what confirms it.

It is apart from `model`, where everything else of a policy is put together, because it is read by `detect` and `collect` alone.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rebalancer.policy.quantities import DnsLabel, Duration, LabelSelector, MisplacedValue, Percent, SignalName, Strict


class Threshold(Strict):
    """``low`` <= ``target`` <= ``high``, percent of capacity; as deviations, percentage points around the pool's mean:
    cold under mean - low, drained to mean + target, hot over mean + high."""

    low: Percent
    """A node is cold when it is under this mark on every signal. Percent of capacity, or percentage points under the mean."""
    target: Percent
    """A hot node is drained down to this mark, and a node over it takes no pod. Percent of capacity, or points over the mean."""
    high: Percent
    """A node is hot when it is over this mark on one signal. Percent of capacity, or percentage points over the mean."""
    weight: float = Field(default=1.0, ge=0, le=100)
    """How much heat of this signal counts beside that of others; no unit. With 0 a node can be hot by it, but no move gains by it."""


class Pool(Strict):
    """Nodes that are balanced among themselves. A node is in one pool; a pod never moves from one to another."""

    name: DnsLabel
    """How reports, metrics and refusals call the pool."""
    node_selector: LabelSelector = LabelSelector()
    """Labels of the nodes that belong to it; without a selector, all nodes that no other pool claims."""
    thresholds: Literal["absolute", "deviation"] = "absolute"
    """Whether marks are percent of capacity, or percentage points around the mean of the pool's known nodes."""
    signals: dict[str, Threshold] = Field(min_length=1)
    """Marks by the name of a signal: cpu, memory, or one of ``spec.signals``. What is not named here is not judged."""

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
    """PromQL that yields one series a node, in the unit of the signal."""
    resource: str | None = None
    """A resource in ``status.allocatable`` of the nodes, in its base unit (cores, bytes, pieces)."""
    value: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The same for every node, in the unit of the signal."""

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
    """How pools, reports and metrics call the signal; cpu and memory replace the built-in queries."""
    unit: str = Field(min_length=1, max_length=20)
    """What the numbers are, for reports only: bytes/s, ratio, ..."""
    node_query: str = Field(min_length=1)
    """PromQL of the usage of nodes, one series a node, in the unit of the signal."""
    pod_query: str = Field(min_length=1)
    """PromQL of the usage of pods, one series a pod, in the same unit as the nodes'."""
    capacity: Capacity
    """What a node has of it: load is usage over capacity."""
    node_age_query: str | None = None
    """PromQL of the age of the newest raw sample behind ``nodeQuery``, in seconds, one series a node."""
    maximum: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Samples above it are absurd and dropped, in the unit of the signal."""


class Metrics(Strict):
    """What is taken for the usage of a node or a pod, and when it is too old or too little to decide by."""

    window: Duration = Field(default=300.0, ge=30)
    """The time that usage is a statistic over, at least four scrape intervals."""
    statistic: Literal["mean", "max", "p95"] = "mean"
    """Of the window, for the built-in signals; queries of your own say it themselves."""
    max_age: Duration = Field(default=180.0, gt=0)
    """A node or a pod whose newest sample is older is unknown, and nothing is done to it."""
    min_coverage: Percent = 90
    """Percent of the nodes and of the pods whose usage must be known before anything is moved."""
    node_label: str = "auto"
    """``auto``, or the label of the node series that holds the node's name, IP or IP:port."""


class Risk(Strict):
    """How much room a node keeps for the swings of its pods: it is judged by its load plus so many standard deviations of it."""

    deviations: float = Field(default=0.0, ge=0, le=5, allow_inf_nan=False)
    """Added to the load of a node before it is compared with a mark; 0: loads alone are compared."""
    lookback: Duration = Field(default=3600.0, ge=300, le=86400)
    """The time over which the standard deviation of each pod's usage is taken."""
    step: Duration = Field(default=300.0, ge=10)
    """Time from one usage to the next in it; each is over ``metrics.window``."""

    @model_validator(mode="after")
    def _enough_points(self) -> Risk:
        if self.lookback < 3 * self.step:
            raise MisplacedValue("a standard deviation of fewer than three usages says nothing; raise lookback or lower step", at=("step",))
        return self


class Anticipation(Strict):
    """What a node used at the same hour of yesterday: a peak that passes by itself moves nobody, and none that comes is filled up.

    Yesterday counts for a node only while the last windows are like those of a day ago, and while at least four fifths of what it uses come
    from pods that were there a day ago. Where Prometheus does not know, nothing is anticipated.
    """

    horizon: Duration = Field(default=0.0, le=6 * 3600)
    """How far ahead is looked: a hot node that went under its mark within this time yesterday, and stayed there for as long again, is left
    alone meanwhile, and a node that was over ``high`` takes no pod. 0s: nobody asks about yesterday."""
    tolerance: Percent = 10
    """By how many percentage points the load of each of the last windows may differ from that of a day ago."""
    step: Duration = Field(default=300.0, ge=60, le=3600)
    """Time from one usage of yesterday to the next."""

    @model_validator(mode="after")
    def _enough_points(self) -> Anticipation:
        if 0 < self.horizon < 2 * self.step:
            raise MisplacedValue("in fewer than two steps nothing is seen to pass; raise horizon, lower step, or write 0s", at=("horizon",))
        return self


class Confirm(Strict):
    """A node is hot only when it was over ``high`` in several of the last windows, which Prometheus remembers: a spike moves nobody."""

    windows: int = Field(default=10, ge=1, le=120)
    """How many windows are looked back on, the latest included."""
    at_least: int = Field(default=8, ge=1)
    """In how many of them the node must have been over ``high``; at most ``windows``."""
    step: Duration = Field(default=60.0, ge=10)
    """Time from one window to the next; at most ``metrics.window``, or there are gaps."""

    @model_validator(mode="after")
    def _can_happen(self) -> Confirm:
        if self.at_least > self.windows:
            raise MisplacedValue(
                f"{self.at_least} of {self.windows} windows can never be reached; lower atLeast or raise windows", at=("atLeast",)
            )
        return self
