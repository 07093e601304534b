"""Held against what they promised: the moves of the last hours as a plan and the breaker see them, from the memory that `settle` keeps."""

from __future__ import annotations

import math

from rebalancer.guard.landings import LandedMove, LandingRate, landing_rate
from rebalancer.plan.document import known
from rebalancer.plan.model import EarlierMove, LandingReport, OwnerRef, PodRef
from rebalancer.runtime.memory import Landing, LandingResult, Memory, OpenMove
from rebalancer.units import format_time

MOST_SHOWN = 50


_ON_A_NODE = (LandingResult.AS_PLANNED, LandingResult.ELSEWHERE, LandingResult.SOURCE)


def landing_rate_of(memory: Memory, *, since: float) -> LandingRate:
    """Of the moves that settled after ``since`` (unix seconds): a replacement that never came landed nowhere, and says nothing."""
    return landing_rate(
        LandedMove(
            chance=math.nan if landing.move.chance is None else landing.move.chance,
            named=landing.result is LandingResult.AS_PLANNED,
            planned=landing.node == landing.move.eviction.destination,
        )
        for landing in memory.landings
        if landing.at >= since and landing.result in _ON_A_NODE
    )


def landing_report(rate: LandingRate) -> LandingReport:
    return LandingReport(
        moves=rate.moves, named=rate.named, planned=rate.planned, hit_ratio=known(rate.ratio), planned_ratio=known(rate.planned_ratio)
    )


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
