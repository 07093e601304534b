"""`SimulationScenario`: a small file from which a whole fleet and its days are made.

Percentages are 0-100 as in policies, shares of a request are ratios (a pod that uses twice its request has 2). Everything has a default but
the fleet and the workloads, and the defaults are quiet: nothing waves, bursts, fails or arrives unless the file says so.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rebalancer.policy.model import BUILT_IN_SIGNALS, Mode, Spec, Steering
from rebalancer.policy.quantities import CountOrPercent, DnsLabel, Duration, MisplacedValue, Percent, Strict
from rebalancer.simulate.forward.quantities import LogNormal, Quantity, Times, Whole

KIND = "SimulationScenario"
MOST_NODES = 20_000
MOST_PODS = 600_000
MOST_HOURS = 24 * 31


class Machines(Strict):
    """Nodes of one make."""

    name: DnsLabel = "node"
    """The names of the nodes begin with it."""
    count: int = Field(ge=1, le=MOST_NODES)
    """How many there are."""
    cores: Quantity
    """CPU of each, allocatable."""
    memory: Quantity
    """Memory of each, allocatable."""
    pods: int = Field(default=110, ge=1, le=2000)
    """How many pods each may hold."""
    zones: int = Field(default=1, ge=1, le=100)
    """Zones that they are spread over in turn."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of each, for the selectors of pools."""
    system_cpu: Quantity = 0.3
    """Cores that the machine itself uses."""
    system_memory: Quantity = 2.0 * 2**30
    """Memory that the machine itself uses."""


class Shape(Strict):
    """What a pod asks for, and how common that is."""

    share: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Weight among the shapes of its workloads; no unit."""
    cpu: Quantity
    """Cores requested."""
    memory: Quantity
    """Bytes requested."""


class Trace(Strict):
    """A file of real load, found under the directory that ``--traces`` names."""

    path: str = Field(min_length=1, max_length=300)
    """Name of the file, relative to that directory."""
    kind: Literal["planetlab-cpu", "genai-memory", "openb-requests"]
    """``planetlab-cpu``: CPU in percent, ``genai-memory``: memory as a ratio, both over time; ``openb-requests``: what pods ask for."""
    least_samples: Percent = 0
    """Series that have a sample in fewer than so many percent of the rows are left out; the holes of the others are unknown."""


class Use(Strict):
    """What pods use, as a share of what they request."""

    cpu: LogNormal = LogNormal(median=0.5)
    """Level of each pod's CPU."""
    memory: LogNormal = LogNormal(median=0.6, most=1.0)
    """Level of each pod's memory, which does not change."""


class Wave(Strict):
    """A slow wave of each pod's CPU around its level, each with a phase of its own."""

    share: Percent = 0
    """Percent of the level by which it goes up and down."""
    period: Times = Times(from_=3600.0, to=4 * 3600.0)
    """Length of the wave, drawn for each pod."""


class Noise(Strict):
    """What nobody can foresee."""

    share: Percent = 0
    """Standard deviation, percent of the level."""
    hold: Duration = Field(default=60.0, gt=0)
    """How long a deviation lasts, as the time after which an e-th of it is left."""


class Protection(Strict):
    """The disruption budget of each workload: exactly one of the two."""

    min_available: CountOrPercent | None = None
    """Pods that must stay healthy."""
    max_unavailable: CountOrPercent | None = None
    """Pods that may be away."""

    @model_validator(mode="after")
    def _one(self) -> Protection:
        if (self.min_available is None) == (self.max_unavailable is None):
            raise ValueError("a disruption budget needs exactly one of minAvailable and maxUnavailable; delete the other")
        return self


class Population(Strict):
    """Workloads of one sort."""

    name: DnsLabel = "app"
    """The names of the workloads begin with it."""
    kind: Literal["Deployment", "StatefulSet", "Job"] = "Deployment"
    """What owns the pods."""
    pods: int = Field(ge=1, le=MOST_PODS)
    """Pods in all; workloads are made until there are so many."""
    replicas: Whole = Whole(from_=2, to=10)
    """Pods of each workload."""
    namespaces: int = Field(default=8, ge=1, le=1000)
    """Namespaces that the workloads are spread over."""
    requests: tuple[Shape, ...] = ()
    """Shapes to draw from, one for all pods of a workload."""
    requests_from: Trace | None = None
    """Draw the shapes from a trace instead."""
    use: Use = Use()
    """What they use of it."""
    wave: Wave = Wave()
    """How each pod's CPU goes up and down."""
    noise: Noise = Noise()
    """How each pod's CPU trembles."""
    traces: tuple[Trace, ...] = ()
    """Load that is replayed instead of the wave: each pod follows a series of its own; its level stays what ``use`` says."""
    disruption_budget: Protection | None = None
    """A budget for each workload; none when left out."""
    startup: Times = Times(from_=8.0, to=30.0)
    """From being bound to being Ready."""
    shutdown: Duration = 4.0
    """From the eviction to the end."""

    @model_validator(mode="after")
    def _shapes_from_one_place(self) -> Population:
        if bool(self.requests) == (self.requests_from is not None):
            raise MisplacedValue(
                "needs exactly one of requests and requestsFrom; give shapes, or a trace to draw them from", at=("requests",)
            )
        if self.requests_from is not None and self.requests_from.kind != "openb-requests":
            raise MisplacedValue("requests are in traces of kind openb-requests alone; name one", at=("requestsFrom", "kind"))
        for row, trace in enumerate(self.traces):
            if trace.kind == "openb-requests":
                raise MisplacedValue("openb-requests holds no load over time; name it under requestsFrom", at=("traces", row, "kind"))
        return self


class Diurnal(Strict):
    """A day that workloads have in common."""

    share: Percent = 0
    """Percent of the level by which CPU is higher at the peak and lower half a day later."""
    peak: Duration = Field(default=14 * 3600.0, lt=86400)
    """Time after midnight (UTC) of the peak; the simulation begins at midnight."""
    scatter: Duration = 0.0
    """How far the peaks of workloads lie from it, as a standard deviation."""


class Bursts(Strict):
    """A workload that suddenly has several times its load."""

    per_day: float = Field(default=0.0, ge=0, le=100_000, allow_inf_nan=False)
    """How many bursts there are in a day, on average."""
    factor: float = Field(default=3.0, gt=0, le=100, allow_inf_nan=False)
    """CPU of all its pods, times this."""
    lasts: Times = Times(from_=600.0, to=2400.0)
    """How long."""


class DailyPeaks(Strict):
    """Workloads with a short peak at the same time of every day: a report at nine, a batch at night."""

    share: Percent = 0
    """Percent of the workloads that have one."""
    factor: float = Field(default=3.0, gt=0, le=100, allow_inf_nan=False)
    """CPU of all pods of such a workload, times this."""
    at: Times = Times(from_=3600.0, to=22 * 3600.0)
    """When it begins, after midnight; drawn for each workload."""
    lasts: Times = Times(from_=1200.0, to=2400.0)
    """How long; drawn for each workload."""
    jitter: Duration = 60.0
    """By how much it begins earlier or later from one day to the next, as a standard deviation."""


class Failures(Strict):
    """Nodes that stop answering, and come back."""

    per_day: float = Field(default=0.0, ge=0, le=10_000, allow_inf_nan=False)
    """How many in a day, on average."""
    lasts: Times = Times(from_=120.0, to=3600.0)
    """How long; for longer than 5m40s their pods are replaced elsewhere."""


class Arrivals(Strict):
    """New workloads, like those that are there, and their end."""

    per_day: float = Field(default=0.0, ge=0, le=100_000, allow_inf_nan=False)
    """How many in a day, on average."""
    lasts: Times = Times(from_=3600.0, to=6 * 3600.0)
    """How long each stays."""


class Rollouts(Strict):
    """New revisions of Deployments that are there: every pod is replaced, one by one."""

    per_day: float = Field(default=0.0, ge=0, le=100_000, allow_inf_nan=False)
    """How many in a day, on average."""


class Sampling(Strict):
    """How samples reach the controller; windows are the policy's."""

    interval: Duration = Field(default=15.0, ge=1, le=300)
    """From one sample to the next; the simulation's step too."""
    delay: Duration = Field(default=30.0, ge=0, le=3600)
    """How late a sample can be asked for."""


class Marks(Strict):
    """By what marks a node counts as hot in the results, whatever the policies say."""

    cpu: Percent = 65
    """Percent of capacity."""
    memory: Percent = 90
    """Percent of capacity."""


class ScenarioSpec(Strict):
    """What a simulated world is made of, and what happens in it."""

    seed: int = Field(default=7, ge=0, le=2**31)
    """The same seed gives the same world; ``--seed`` replaces it."""
    hours: float = Field(default=24.0, gt=0, le=MOST_HOURS, allow_inf_nan=False)
    """How long the simulation lasts; ``--hours`` replaces it."""
    fleet: tuple[Machines, ...] = Field(min_length=1)
    """The nodes."""
    workloads: tuple[Population, ...] = Field(min_length=1)
    """The pods and their owners."""
    average_load: Percent | None = None
    """Mean CPU load of the fleet; the levels of all pods are scaled to it. Left alone when not given."""
    diurnal: Diurnal = Diurnal()
    """A common day."""
    bursts: Bursts = Bursts()
    """Sudden load."""
    daily_peaks: DailyPeaks = DailyPeaks()
    """Load that comes at the same time of every day; also of the one before the simulation begins."""
    failures: Failures = Failures()
    """Nodes that stop."""
    arrivals: Arrivals = Arrivals()
    """Workloads that come and go."""
    rollouts: Rollouts = Rollouts()
    """New revisions."""
    metrics: Sampling = Sampling()
    """How late the controller sees what happens."""
    hot: Marks = Marks()
    """What counts as hot in the results."""
    policy: Spec = Spec(mode=Mode.EVICT, steering=Steering())
    """The policy that strategies are given when ``--policy`` names none: what stands under ``spec`` in a policy file."""

    @model_validator(mode="after")
    def _sizes_are_possible(self) -> ScenarioSpec:
        nodes = sum(machines.count for machines in self.fleet)
        pods = sum(population.pods for population in self.workloads)
        room = sum(machines.count * machines.pods for machines in self.fleet)
        if nodes > MOST_NODES:
            raise MisplacedValue(f"{nodes:,} nodes are more than {MOST_NODES:,}; simulate a part of them", at=("fleet",))
        if pods > MOST_PODS:
            raise MisplacedValue(f"{pods:,} pods are more than {MOST_PODS:,}; simulate a part of them", at=("workloads",))
        if pods > room:
            raise MisplacedValue(f"{pods:,} pods do not fit on nodes that hold {room:,}; lower pods or add nodes", at=("workloads",))
        for row, population in enumerate(self.workloads):
            for number, shape in enumerate(population.requests):
                if not any(shape.cpu <= machines.cores and shape.memory <= machines.memory for machines in self.fleet):
                    raise MisplacedValue(
                        "no node of the fleet is as large as this request; lower it or add larger nodes",
                        at=("workloads", row, "requests", number),
                    )
        unknown = [name for name in self.policy.judged_signals if name not in BUILT_IN_SIGNALS]
        if unknown:
            raise MisplacedValue(f"pods of a scenario have no signal {unknown[0]}; use cpu and memory", at=("policy", "pools"))
        return self


class Title(Strict):
    """What the scenario is called."""

    name: str = Field(default="scenario", min_length=1, max_length=253)
    """How reports call it."""
    description: str = ""
    """What it is there to show."""


class SimulationScenario(Strict):
    """A scenario file: a world to try policies in before a cluster sees them."""

    api_version: Literal["rebalancer.dev/v1alpha1"] = "rebalancer.dev/v1alpha1"
    """The version of the format; a file must give it."""
    kind: Literal["SimulationScenario"] = "SimulationScenario"
    """A file must give it."""
    metadata: Title = Title()
    """What the scenario is called."""
    spec: ScenarioSpec
    """The world."""
