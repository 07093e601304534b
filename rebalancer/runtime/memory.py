"""What a controller remembers between cycles, and how each new observation settles it. Pure: values in, values out.

An eviction opens a move. The move is settled when the replacement is Ready: it landed as planned, elsewhere, or back on the source, which
quarantines the workload. A move whose replacement never comes is settled as lost once nothing is missing any more, or after `GIVE_UP_S`;
one whose pod never left (a crash between writing it down and evicting, an answer that never came) after `STAY_S`. So no move stays open
for good, and everything that is kept has a bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import median_low

import numpy as np

from rebalancer.policy.model import Spec
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History, PastEviction, Quarantine
from rebalancer.state.ledger import node_load
from rebalancer.state.tables import WorkloadRef

GIVE_UP_S = 3600.0
STAY_S = 900.0
"""How long a pod that is not terminating may still be about to leave: a webhook may migrate it first."""
MOST_EVICTIONS = 1000
"""Kept at most, the newest ones: with the bounds below it keeps the record small whatever the budgets are (`records.MOST_BYTES`)."""
MOST_LANDINGS = 200
MOST_OPEN = 300
"""Moves whose replacement is awaited; with so many, nothing more is evicted."""
MOST_QUARANTINED = 500
WORTH_COMPARING = 0.005
"""A predicted fall of the load that is large enough to be told from noise."""


class LandingResult(Enum):
    AS_PLANNED = "as-planned"
    ELSEWHERE = "elsewhere"
    """Another node than the planned ones."""
    SOURCE = "source"
    """Back on the node that it was moved from."""
    LOST = "lost"
    """No replacement came."""
    STAYED = "stayed"
    """The pod never left."""


@dataclass(frozen=True, slots=True)
class OpenMove:
    """An accepted eviction whose replacement has not been seen Ready yet."""

    eviction: PastEviction
    alternatives: tuple[str, ...]
    predicted_gain: float
    source_before: Mapping[str, float]
    """signal -> load of the source before the plan; unknown signals are absent."""
    predicted_source_after: Mapping[str, float]
    """signal -> what this move alone would leave of it, so that the falls of a plan's moves add up."""
    chance: float | None = None
    """How much of the predicted landings the destination and the alternatives cover; None: not known, by an earlier version."""

    def predicted_fall(self, signal: str) -> float:
        """NaN where nothing was predicted."""
        return self.source_before.get(signal, math.nan) - self.predicted_source_after.get(signal, math.nan)


@dataclass(frozen=True, slots=True)
class Landing:
    """A settled move. ``seconds``: from the eviction to the readiness of the replacement, as its status says, else as far as cycles can
    tell."""

    move: OpenMove
    result: LandingResult
    at: float
    node: str
    seconds: float
    realised_share: float
    """Fall of the source's load since the plan, over the predicted falls of all its pods that have left since, this one included; mean of
    the signals, NaN when it cannot be known."""


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
            start_up=self._start_up(),
            breaker=breaker,
        )

    def _start_up(self) -> Mapping[WorkloadRef, float]:
        took: dict[WorkloadRef, list[float]] = {}
        for landing in self.landings:
            workload = landing.move.eviction.workload
            if workload is not None and math.isfinite(landing.seconds):
                took.setdefault(workload, []).append(landing.seconds)
        return {workload: median_low(seconds) for workload, seconds in took.items()}


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
    expected = _expected(memory.open_moves, state)
    claimed = set(expected.values())
    still: list[OpenMove] = []
    settled: list[Landing] = []
    load = node_load(state)
    moves = (*memory.open_moves, *(landing.move for landing in memory.landings))
    for number, move in enumerate(memory.open_moves):
        found = _found(move, state, claimed, mine=expected.get(number, ""))
        if found is None:
            still.append(move)
            continue
        result, node, seconds = found
        share = math.nan if result is LandingResult.STAYED else _realised(move, moves, state, load)
        settled.append(Landing(move=move, result=result, at=state.at, node=node, seconds=seconds, realised_share=share))
    returns = [*memory.landings, *settled]
    oldest = state.at - keep_for(spec)
    return (
        Memory(
            evictions=tuple(e for e in memory.evictions if e.at >= oldest)[-MOST_EVICTIONS:],
            open_moves=tuple(still),
            quarantine=_quarantine(memory, settled, returns, at=state.at, spec=spec),
            landings=tuple(x for x in returns if x.at >= state.at - keep_landings(spec))[-MOST_LANDINGS:],
        ),
        tuple(settled),
    )


def quarantined_since(before: Memory, after: Memory) -> tuple[tuple[WorkloadRef, Quarantine], ...]:
    """The workloads that ``after`` lets rest and ``before`` did not, or not for as long."""
    return tuple((ref, rest) for ref, rest in after.quarantine.items() if before.quarantine.get(ref) != rest)


def _quarantine(
    memory: Memory, settled: Sequence[Landing], returns: Sequence[Landing], *, at: float, spec: Spec
) -> Mapping[WorkloadRef, Quarantine]:
    quarantine = {ref: rest for ref, rest in memory.quarantine.items() if rest.until > at}
    for landing in settled:
        workload = landing.move.eviction.workload
        if landing.result is not LandingResult.SOURCE or workload is None:
            continue
        count = sum(1 for past in returns if past.result is LandingResult.SOURCE and past.move.eviction.workload == workload)
        if count >= spec.quarantine.returns:
            quarantine[workload] = Quarantine(until=at + spec.quarantine.hold, returns=count, node=landing.node)
    longest = sorted(quarantine.items(), key=lambda entry: -entry[1].until)[:MOST_QUARANTINED]
    return dict(longest)


def _expected(moves: Sequence[OpenMove], state: ClusterState) -> Mapping[int, str]:
    """Number of a move -> uid of the replacement that is where the move expects it, of workloads that several pods left at once.

    Nobody can tell the replacements of a gang apart. Taken as they come, one that landed well would count as another's that went astray.
    """
    count = Counter(move.eviction.workload for move in moves)
    found: dict[int, str] = {}
    taken: set[str] = set()
    for number, move in enumerate(moves):
        workload = move.eviction.workload
        if workload is None or count[workload] < 2:
            continue
        young = _young(move, state)
        for name in (move.eviction.destination, *move.alternatives):
            node = state.node_index.get(name, -1)
            uid = next((state.pods.uids[pod] for pod in young if state.pods.node[pod] == node and state.pods.uids[pod] not in taken), "")
            if node >= 0 and uid:
                found[number] = uid
                taken.add(uid)
                break
    return found


def _young(move: OpenMove, state: ClusterState) -> list[int]:
    """Rows of the pods that may be the replacement: of its workload and made since, in the order in which they were."""
    workload, pods = move.eviction.workload, state.pods
    row = -1 if workload is None else state.workload_index.get(workload, -1)
    if row < 0:
        return []
    young = np.flatnonzero((pods.workload == row) & (pods.created_at >= math.floor(move.eviction.at)) & ~pods.terminating)
    return sorted(young.tolist(), key=lambda p: (float(pods.created_at[p]), pods.uids[p]))


def _found(move: OpenMove, state: ClusterState, claimed: set[str], *, mine: str) -> tuple[LandingResult, str, float] | None:
    """What became of the move, on which node, and how many seconds after the eviction (NaN: never); None while that is open. ``mine``: uid
    of its replacement, where it is known."""
    eviction, pods = move.eviction, state.pods
    waited = state.at - eviction.at
    old = state.pod_index.get(eviction.pod_uid, -1)
    if old >= 0 and not pods.terminating[old]:
        return (LandingResult.STAYED, "", math.nan) if waited > STAY_S else None
    if old >= 0 and waited <= GIVE_UP_S:
        return None  # it is still leaving
    workload = eviction.workload
    row = -1 if workload is None else state.workload_index.get(workload, -1)
    if row < 0:
        return LandingResult.LOST, "", math.nan
    for pod in _young(move, state):
        uid = pods.uids[pod]
        if (uid in claimed and uid != mine) or (mine and uid != mine):
            continue
        claimed.add(uid)
        if not pods.ready[pod] or pods.node[pod] < 0:
            return (LandingResult.LOST, "", math.nan) if waited > GIVE_UP_S else None
        node, seconds = state.nodes.names[int(pods.node[pod])], float(pods.started_at[pod] + pods.ready_after[pod]) - eviction.at
        seconds = min(max(0.0, seconds), waited) if math.isfinite(seconds) else waited
        planned = node == eviction.destination or node in move.alternatives
        if node == eviction.source and not planned:
            return LandingResult.SOURCE, node, seconds
        return LandingResult.AS_PLANNED if planned else LandingResult.ELSEWHERE, node, seconds
    wanted, ready = state.workloads.replicas[row], state.workloads.ready[row]
    if (wanted == wanted and ready >= wanted) or waited > GIVE_UP_S:
        return LandingResult.LOST, "", math.nan
    return None


def _realised(move: OpenMove, moves: Sequence[OpenMove], state: ClusterState, load: FloatArray) -> float:
    """Fall of the source's load since the plan, over what all pods that we took from it since were predicted to take along.

    Compared with this one pod alone, two pods that leave together would each seem to deliver what both did. Mean of the signals whose
    fall was predicted for every one of the pods and can be seen; NaN when there is none.
    """
    eviction = move.eviction
    source = state.node_index.get(eviction.source, -1)
    if source < 0:
        return math.nan
    left = [
        other
        for other in moves
        if other.eviction.source == eviction.source and other.eviction.at >= eviction.at and other.eviction.pod_uid not in state.pod_index
    ]
    shares: list[float] = []
    for name, before in move.source_before.items():
        column = state.signal_index.get(name, -1)
        predicted = sum(other.predicted_fall(name) for other in left)
        if column < 0 or not (predicted > WORTH_COMPARING and move.predicted_fall(name) > WORTH_COMPARING):
            continue
        fall = before - float(load[source, column])
        if math.isfinite(fall):
            shares.append(fall / predicted)
    return float(np.mean(shares)) if shares else math.nan
