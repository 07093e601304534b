"""What the metrics source hands to the assembly of the state: trusted samples only, by node name and by pod, and the story of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rebalancer.state.arrays import FloatArray
from rebalancer.state.tables import Signal

PodKey = tuple[str, str]
"""(namespace, name)"""


@dataclass(frozen=True)
class NodeDirectory:
    """What the API server knows that helps to find the node behind a series. Not slotted, for the cached numbers."""

    names: frozenset[str]
    addresses: Mapping[str, str]
    """IP address or host name -> node name; an address of two nodes is left out."""
    pod_nodes: Mapping[PodKey, str]
    """(namespace, pod) -> node name, for exporters that are known by their pod."""

    @cached_property
    def pod_keys(self) -> tuple[PodKey, ...]:
        """The pods in their order."""
        return tuple(self.pod_nodes)

    @cached_property
    def pod_numbers(self) -> Mapping[PodKey, int]:
        """Pod -> its position in ``pod_keys``."""
        return dict(zip(self.pod_keys, range(len(self.pod_keys)), strict=True))


@dataclass(frozen=True, slots=True)
class SignalSamples:
    signal: Signal
    node_usage: Mapping[str, FloatArray]
    """node name -> (windows,) usage in the signal's unit, newest last; NaN where a window has no trusted sample."""
    node_age_s: Mapping[str, float]
    """node name -> age of the newest raw sample; absent when it cannot be known."""
    node_unknown: Mapping[str, str]
    """node name -> why its usage is unknown, in words."""
    pod_usage: Mapping[tuple[str, str, str], float]
    """(namespace, pod, node name or empty where the series does not say) -> usage."""
    capacity: Mapping[str, float] | None = None
    """node name -> capacity from the policy's query or value; None: take ``capacity_resource`` from the node's status."""
    capacity_resource: str | None = None
    failed: str = ""
    """Why the signal has no samples at all, in words; empty when it was answered."""
    source: str = ""
    """Which of the known exporters the node usage came from."""
    pod_deviation: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """As ``pod_usage``: standard deviation of the usage over `Samples.deviation_s`; empty when it is not asked for."""
    pods_failed: str = ""
    """Why the usage of pods is missing while that of nodes is there, in words."""


@dataclass(frozen=True, slots=True)
class Samples:
    signals: tuple[SignalSamples, ...]
    window_s: float
    step_s: float
    windows: int
    deviation_s: float = 0.0
    """The time that deviations are taken over; 0: they were not asked for."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """reason -> number of samples that were not used."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What Prometheus said with its answers, each once. Not empty: some answer is partial, and what is missing in it is unknown."""

    @property
    def partial(self) -> bool:
        return bool(self.warnings)
