"""What happened before this cycle, as decisions see it: past evictions, open moves, quarantine, the breaker.

A value, not a store: `runtime` keeps it across cycles and restarts and hands a frozen copy to every decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalancer.state.tables import WorkloadRef
from rebalancer.units import format_time


@dataclass(frozen=True, slots=True)
class PastEviction:
    """One eviction that the API server accepted."""

    at: float
    pod_uid: str
    namespace: str
    pod: str
    workload: WorkloadRef | None
    controller_uid: str
    tenant: str | None
    source: str
    destination: str
    """Where the replacement was expected."""
    usage: Mapping[str, float] = field(default_factory=dict)
    """signal -> usage of the pod when it was evicted; unknown signals are absent."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    until: float
    returns: int
    """How often a replacement came back to the node that it was moved from."""
    node: str

    def words(self, workload: WorkloadRef) -> str:
        """The same sentence for the gate, the Event and the log."""
        times = "once" if self.returns == 1 else f"{self.returns} times"
        return f"{workload} came back to node {self.node} {times} and rests until {format_time(self.until)} (policy quarantine.hold)"


@dataclass(frozen=True, slots=True)
class History:
    evictions: tuple[PastEviction, ...] = ()
    """Oldest first; at least as far back as the longest window, cooldown and back-off of the policy."""
    in_flight: Mapping[WorkloadRef, PastEviction] = field(default_factory=dict)
    """Workloads with an evicted pod whose replacement is not Ready yet."""
    quarantine: Mapping[WorkloadRef, Quarantine] = field(default_factory=dict)
    start_up: Mapping[WorkloadRef, float] = field(default_factory=dict)
    """Median seconds from an eviction to the readiness of the replacement, of workloads that were moved lately."""
    breaker: str = ""
    """Why nothing may be evicted now, in words; empty when the breaker is closed."""


NOTHING_HAPPENED = History()
