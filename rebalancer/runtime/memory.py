"""What a controller remembers between cycles, and how each new observation settles it. Pure: values in, values out.

An eviction opens a move. The move is settled when the replacement is Ready: it landed as planned, elsewhere, or back on the source, which
quarantines the workload. A move whose replacement never comes is settled as lost once nothing is missing any more, or after `GIVE_UP_S`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from rebalancer.policy.model import Spec
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History, PastEviction, Quarantine
from rebalancer.state.ledger import node_load
from rebalancer.state.tables import WorkloadRef

GIVE_UP_S = 3600.0
MOST_EVICTIONS = 1000
"""Kept at most, the newest ones: with `MOST_LANDINGS` it bounds the ConfigMap (about 500 KiB) whatever the budgets are."""
MOST_LANDINGS = 200


class LandingResult(Enum):
    AS_PLANNED = "as-planned"
    ELSEWHERE = "elsewhere"
    """Another node than the planned ones."""
    SOURCE = "source"
    """Back on the node that it was moved from."""
    LOST = "lost"
    """No replacement came."""


@dataclass(frozen=True, slots=True)
class OpenMove:
    """An accepted eviction whose replacement has not been seen Ready yet."""

    eviction: PastEviction
    alternatives: tuple[str, ...]
    predicted_gain: float
    source_before: Mapping[str, float]
    """signal -> load of the source when the move was planned."""
    predicted_source_after: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Landing:
    """A settled move. ``seconds``: from the eviction to the readiness of the replacement, as far as cycles can tell."""

    move: OpenMove
    result: LandingResult
    at: float
    node: str
    seconds: float
    realised_share: float
    """Fall of the source's load over its predicted fall, mean of the signals; NaN when it cannot be known."""


@dataclass(frozen=True, slots=True)
class Memory:
    evictions: tuple[PastEviction, ...] = ()
    open_moves: tuple[OpenMove, ...] = ()
    quarantine: Mapping[WorkloadRef, Quarantine] = field(default_factory=dict)
    landings: tuple[Landing, ...] = ()

    def history(self, breaker: str) -> History:
        """What decisions may see."""
        return History(
            evictions=self.evictions,
            in_flight={m.eviction.workload: m.eviction for m in self.open_moves if m.eviction.workload is not None},
            quarantine=dict(self.quarantine),
            breaker=breaker,
        )


def keep_for(spec: Spec) -> float:
    """Seconds that an eviction must be remembered so that no window, cooldown or back-off forgets it."""
    return max(spec.budgets.window, spec.cooldown.max, spec.breaker.hold)


def keep_landings(spec: Spec) -> float:
    """Seconds that a landing is looked back on: by the quarantine and by the breaker."""
    return max(spec.quarantine.hold, spec.breaker.hold)


def remember(memory: Memory, move: OpenMove) -> Memory:
    return replace(memory, evictions=(*memory.evictions, move.eviction)[-MOST_EVICTIONS:], open_moves=(*memory.open_moves, move))


def forget(memory: Memory, move: OpenMove) -> Memory:
    """Undo `remember` for a move that was written down but not carried out."""
    return replace(
        memory,
        evictions=tuple(e for e in memory.evictions if e is not move.eviction),
        open_moves=tuple(m for m in memory.open_moves if m is not move),
    )


def settle(memory: Memory, state: ClusterState, spec: Spec) -> tuple[Memory, tuple[Landing, ...]]:
    """Match open moves with what the cluster shows now; returns the new memory and what was settled in this step."""
    claimed: set[str] = set()
    still: list[OpenMove] = []
    settled: list[Landing] = []
    load = node_load(state)
    for move in memory.open_moves:
        landing = _landing(move, state, load, claimed)
        if landing is None:
            still.append(move)
        else:
            settled.append(landing)
    quarantine = {ref: q for ref, q in memory.quarantine.items() if q.until > state.at}
    returns = [*memory.landings, *settled]
    for landing in settled:
        workload = landing.move.eviction.workload
        if landing.result is not LandingResult.SOURCE or workload is None:
            continue
        count = sum(1 for past in returns if past.result is LandingResult.SOURCE and past.move.eviction.workload == workload)
        if count >= spec.quarantine.returns:
            quarantine[workload] = Quarantine(until=state.at + spec.quarantine.hold, returns=count, node=landing.node)
    oldest = state.at - keep_for(spec)
    return (
        Memory(
            evictions=tuple(e for e in memory.evictions if e.at >= oldest)[-MOST_EVICTIONS:],
            open_moves=tuple(still),
            quarantine=quarantine,
            landings=tuple(x for x in returns if x.at >= state.at - keep_landings(spec))[-MOST_LANDINGS:],
        ),
        tuple(settled),
    )


def _landing(move: OpenMove, state: ClusterState, load: FloatArray, claimed: set[str]) -> Landing | None:
    eviction = move.eviction
    if eviction.pod_uid in state.pod_index:
        return None  # the old pod is still leaving
    workload = eviction.workload
    row = -1 if workload is None else state.workload_index.get(workload, -1)
    if row < 0:
        return _settled(move, LandingResult.LOST, state, load, "", math.nan)
    pods = state.pods
    young = np.flatnonzero((pods.workload == row) & (pods.created_at >= math.floor(eviction.at)) & ~pods.terminating)
    for pod in sorted(young.tolist(), key=lambda p: (float(pods.created_at[p]), pods.uids[p])):
        uid = pods.uids[pod]
        if uid in claimed:
            continue
        claimed.add(uid)
        if not pods.ready[pod] or pods.node[pod] < 0:
            return None
        node = state.nodes.names[int(pods.node[pod])]
        if node == eviction.source:
            result = LandingResult.SOURCE
        elif node == eviction.destination or node in move.alternatives:
            result = LandingResult.AS_PLANNED
        else:
            result = LandingResult.ELSEWHERE
        return _settled(move, result, state, load, node, state.at - eviction.at)
    wanted, ready = state.workloads.replicas[row], state.workloads.ready[row]
    if (wanted == wanted and ready >= wanted) or state.at - eviction.at > GIVE_UP_S:
        return _settled(move, LandingResult.LOST, state, load, "", math.nan)
    return None


def _settled(
    move: OpenMove,
    result: LandingResult,
    state: ClusterState,
    load: FloatArray,
    node: str,
    seconds: float,
) -> Landing:
    """Realised over predicted fall of the source, on the signals whose fall was predicted and can be seen."""
    shares: list[float] = []
    source = state.node_index.get(move.eviction.source, -1)
    for name, before in move.source_before.items():
        predicted = before - move.predicted_source_after.get(name, math.nan)
        column = state.signal_index.get(name, -1)
        if source < 0 or column < 0 or not predicted > 0.005:
            continue
        fall = before - float(load[source, column])
        if math.isfinite(fall):
            shares.append(fall / predicted)
    realised = float(np.mean(shares)) if shares else math.nan
    return Landing(move=move, result=result, at=state.at, node=node, seconds=seconds, realised_share=realised)
