"""The breaker: what stops every eviction, asked before a plan is made.

Four signs that moving pods does harm or no good: many nodes that are not Ready, pods that stay without a Ready replacement after our
evictions, moves that deliver less than they promised, and replacements that land elsewhere than planned, so that nothing is known about
where evictions lead. The runtime asks at the start of a cycle and puts the answer into
`History.breaker`; the gate `breaker` then refuses every candidate with these words. The breaker has no memory of its own: it closes when
the signs are gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rebalancer.guard.landings import NOTHING_LANDED, LandingRate
from rebalancer.policy.model import Breaker, Spec
from rebalancer.policy.quantities import limit_of
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_duration, format_percent


class BreakerCause(Enum):
    """The closed set of what can open the breaker, as metric labels name it."""

    NODES_NOT_READY = "nodes-not-ready"
    PENDING_AFTER_MOVES = "pending-after-moves"
    GAIN_BELOW_PREDICTION = "gain-below-prediction"
    LANDINGS_ELSEWHERE = "landings-elsewhere"


@dataclass(frozen=True, slots=True)
class BreakerFinding:
    cause: BreakerCause
    words: str


def breaker_findings(
    *,
    state: ClusterState,
    spec: Spec,
    open_since: Sequence[float] = (),
    verified: Sequence[tuple[float, float]] = (),
    landings: LandingRate = NOTHING_LANDED,
) -> tuple[BreakerFinding, ...]:
    """Everything that holds the breaker open now; empty when it is closed.

    ``open_since``: when each pod was evicted whose replacement is not Ready yet, unix seconds. ``verified``: predicted and realised gain
    of the moves that were verified within the last ``breaker.hold``, in any common unit, NaN where it could not be measured. ``landings``:
    where the replacements of moves landed that settled within it.
    """
    words = {
        BreakerCause.NODES_NOT_READY: _nodes_not_ready(state, spec.breaker),
        BreakerCause.PENDING_AFTER_MOVES: _pending_after_moves(state, open_since, spec.breaker),
        BreakerCause.GAIN_BELOW_PREDICTION: _gain_below_prediction(verified, spec.breaker),
        BreakerCause.LANDINGS_ELSEWHERE: _landings_elsewhere(landings, spec.breaker),
    }
    return tuple(BreakerFinding(cause, text) for cause, text in words.items() if text)


def breaker_reason(
    *,
    state: ClusterState,
    spec: Spec,
    open_since: Sequence[float] = (),
    verified: Sequence[tuple[float, float]] = (),
    landings: LandingRate = NOTHING_LANDED,
) -> str:
    """The findings in one sentence, for `History.breaker`; an empty string when the breaker is closed."""
    findings = breaker_findings(state=state, spec=spec, open_since=open_since, verified=verified, landings=landings)
    return "; ".join(finding.words for finding in findings)


def _nodes_not_ready(state: ClusterState, breaker: Breaker) -> str:
    nodes = len(state.nodes.names)
    not_ready = int((~state.nodes.ready).sum())
    limit = limit_of(breaker.max_not_ready, nodes)
    if not_ready <= limit:
        return ""
    return f"{not_ready} of {nodes} nodes are not Ready, at most {limit} may be (policy breaker.maxNotReady is {breaker.max_not_ready})"


def _pending_after_moves(state: ClusterState, open_since: Sequence[float], breaker: Breaker) -> str:
    waiting = sum(state.at - evicted_at > breaker.pending_after for evicted_at in open_since)
    if waiting < breaker.max_pending_after_move:
        return ""
    pods = "1 evicted pod has" if waiting == 1 else f"{waiting} evicted pods have"
    return (
        f"{pods} no Ready replacement after {format_duration(breaker.pending_after)} "
        f"(policy breaker.maxPendingAfterMove is {breaker.max_pending_after_move})"
    )


def _gain_below_prediction(verified: Sequence[tuple[float, float]], breaker: Breaker) -> str:
    """Moves whose effect could not be measured say nothing, for or against; nor do moves that promised nothing."""
    judged = [
        (predicted, realised) for predicted, realised in verified if math.isfinite(predicted) and math.isfinite(realised) and predicted > 0
    ]
    if len(judged) < breaker.min_moves:
        return ""
    share = sum(realised for _, realised in judged) / sum(predicted for predicted, _ in judged)
    if share * 100 >= breaker.min_realised_gain:
        return ""
    return (
        f"the last {len(judged)} verified moves realised {format_percent(share)} of the gain they were predicted, "
        f"less than {breaker.min_realised_gain:g} % (policy breaker.minRealisedGain)"
    )


def _landings_elsewhere(landings: LandingRate, breaker: Breaker) -> str:
    """Few moves say nothing: with five, a lost prediction or two are chance. See `guard.landings` for which moves count."""
    if landings.moves < breaker.min_moves or landings.ratio * 100 >= breaker.min_landing_rate:
        return ""
    return (
        f"{landings.named} of the last {landings.moves} replacements landed on a node that their plan named "
        f"({format_percent(landings.ratio)}, {landings.planned} of them on the planned one), "
        f"less than {breaker.min_landing_rate:g} % (policy breaker.minLandingRate)"
    )
