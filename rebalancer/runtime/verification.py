"""Held against what it promised: the moves of the last hours as a plan shows them, from the memory that `settle` keeps."""

from __future__ import annotations

import math

from rebalancer.plan.document import known
from rebalancer.plan.model import EarlierMove, OwnerRef, PodRef
from rebalancer.runtime.memory import Landing, Memory, OpenMove
from rebalancer.units import format_time

MOST_SHOWN = 50


def earlier_moves(memory: Memory) -> tuple[EarlierMove, ...]:
    """Open and settled moves, newest first, `MOST_SHOWN` at the most."""
    moves = [_earlier(move, None) for move in memory.open_moves] + [_earlier(landing.move, landing) for landing in memory.landings]
    return tuple(sorted(moves, key=lambda move: (move.at, move.pod.namespace, move.pod.name), reverse=True)[:MOST_SHOWN])


def _earlier(move: OpenMove, landing: Landing | None) -> EarlierMove:
    eviction, workload = move.eviction, move.eviction.workload
    falls = [fall for fall in map(move.predicted_fall, move.source_before) if math.isfinite(fall)]
    return EarlierMove(
        at=format_time(eviction.at),
        pod=PodRef(namespace=eviction.namespace, name=eviction.pod, uid=eviction.pod_uid),
        workload=None if workload is None else OwnerRef(kind=workload.kind, namespace=workload.namespace, name=workload.name),
        source=eviction.source,
        planned=eviction.destination,
        landed=landing.node or None if landing is not None else None,
        result="open" if landing is None else landing.result.value,
        ready_after_seconds=None if landing is None else known(landing.seconds),
        predicted_fall=known(max(falls)) if falls else None,
        realised_share=None if landing is None else known(landing.realised_share),
    )
