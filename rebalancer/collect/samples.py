"""What the metrics source hands to the assembly of the state: trusted samples only, by node name and by pod, and the story of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalancer.state.arrays import FloatArray
from rebalancer.state.tables import Signal

PodKey = tuple[str, str]
"""(namespace, name)"""


@dataclass(frozen=True, slots=True)
class NodeDirectory:
    """What the API server knows that helps to find the node behind a series."""

    names: frozenset[str]
    addresses: Mapping[str, str]
    """IP address or host name -> node name; an address of two nodes is left out."""
    pod_nodes: Mapping[PodKey, str]
    """(namespace, pod) -> node name, for exporters that are known by their pod."""


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
    pods_failed: str = ""
    """Why the usage of pods is missing while that of nodes is there, in words."""


@dataclass(frozen=True, slots=True)
class Samples:
    signals: tuple[SignalSamples, ...]
    window_s: float
    step_s: float
    windows: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    """reason -> number of samples that were not used."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What Prometheus said with its answers, each once. Not empty: some answer is partial, and what is missing in it is unknown."""

    @property
    def partial(self) -> bool:
        return bool(self.warnings)
