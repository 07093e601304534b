"""Past evictions as limits and cooldowns look at them: counted in a sliding window, and as the last move of a workload or a node.

An eviction whose time lies after the state's (two clocks that disagree) is taken as one that happened just now: it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.state.history import History
from rebalancer.state.tables import WorkloadRef


@dataclass(frozen=True, slots=True)
class Window:
    """Evictions of the last ``seconds``: in total, and by node name, namespace, workload and tenant name."""

    seconds: float
    total: int
    by_node: Mapping[str, int]
    by_namespace: Mapping[str, int]
    by_workload: Mapping[WorkloadRef, int]
    by_tenant: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Streak:
    """The moves in a row of one thing: how many, and when the last one was (unix seconds)."""

    moves: int
    last_at: float


def evictions_within(history: History, *, now: float, seconds: float) -> Window:
    """Count the evictions younger than ``seconds``; one that is exactly as old has left the window."""
    recent = [past for past in history.evictions if now - past.at < seconds]
    return Window(
        seconds=seconds,
        total=len(recent),
        by_node=Counter(past.source for past in recent),
        by_namespace=Counter(past.namespace for past in recent),
        by_workload=Counter(past.workload for past in recent if past.workload is not None),
        by_tenant=Counter(past.tenant for past in recent if past.tenant is not None),
    )


def workload_streaks(history: History, *, now: float, seconds: float) -> Mapping[WorkloadRef, Streak]:
    """workload -> its moves of the last ``seconds``; a workload that nobody moved for that long starts afresh."""
    streaks: dict[WorkloadRef, Streak] = {}
    for past in history.evictions:
        if past.workload is None or now - past.at >= seconds:
            continue
        before = streaks.get(past.workload)
        streaks[past.workload] = Streak(1, past.at) if before is None else Streak(before.moves + 1, max(before.last_at, past.at))
    return streaks


def last_move_by_node(history: History) -> Mapping[str, float]:
    """node name -> when a pod was last evicted from it, unix seconds."""
    last: dict[str, float] = {}
    for past in history.evictions:
        last[past.source] = max(last.get(past.source, past.at), past.at)
    return last


def rest_after(moves: int, *, first_s: float, factor: float, longest_s: float) -> float:
    """Seconds of rest after the n-th move in a row: ``first_s * factor ** (n - 1)``, at most ``longest_s``; 0 before the first."""
    if moves < 1 or first_s <= 0:
        return 0.0
    rest = first_s
    for _ in range(moves - 1):
        rest *= factor
        if rest >= longest_s:
            break
    return min(rest, longest_s)
