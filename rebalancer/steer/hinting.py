"""Placement hints: which gated pod is whose replacement, and which node it is given. Pure rules; who watches and writes is elsewhere.

A move that was carried out awaits one pod: the next one that the same controller makes. That pod is held at a scheduling gate from its
creation (`hint_policy`), given the node that the plan counted on, and let go. A pod that nobody awaits is let go at once, without a hint.

The announcement is what makes the API server gate pods at all: controllers with awaited replacements, each until a moment. It is written
before the eviction, renewed while the replacement is awaited, and taken back when it has come, so it is the record of which moves still
wait, too: a successor of the controller that wrote it does not hint the same move twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rebalancer.units import format_time

GATE = "rebalancer.dev/steer"
LABEL = "rebalancer.dev/steer"
"""Its value names the controller whose pods are gated, since several may share a cluster."""
_LONGEST_LABEL = 63
_CLOCKS_S = 2.0
"""How much older than the eviction its replacement may seem: times on pods are whole seconds of another clock."""


class Ungated(Enum):
    """Why a pod was let go; the closed set of ``ungated_pods_total{result}``."""

    HINTED = "hinted"
    """With its planned node, or with one that the plan named beside it."""
    NOT_AWAITED = "not-awaited"
    """It is nobody's replacement."""
    NO_NODE = "no-node"
    """Every node of its move is gone, cordoned, not Ready or hot by now."""
    REFUSED = "refused"
    """The hint could not be written."""
    LATE = "late"
    """It had waited for as long as a pod may."""
    LEFTOVER = "leftover"
    """Found when hints were switched off, at the end of the process, or by a clean-up."""


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod at our gate. ``created_at``: unix seconds, by the API server's clock. ``controller_uid``: empty for a pod without one."""

    namespace: str
    name: str
    uid: str
    controller_uid: str
    controller_kind: str
    created_at: float

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class AwaitedMove:
    """A pod that was evicted, or is about to be, and the nodes for its replacement: the planned one first, then its alternatives."""

    pod_uid: str
    namespace: str
    pod: str
    controller_uid: str
    evicted_at: float
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Awaited:
    """What is announced of one controller. ``until``: RFC 3339, in whole seconds. ``pods``: uids of the evicted pods."""

    until: str
    pods: tuple[str, ...]


def owner_label(*, namespace: str, lease: str) -> str:
    """The value of `LABEL` for the controller with this Lease: a valid label value, at most 63 characters.

    ``owner_label(namespace="ops", lease="rebalancer")`` is ``ops.rebalancer``.
    """
    return f"{namespace}.{lease}"[:_LONGEST_LABEL].rstrip("-_.")


def awaiting(pod: GatedPod, moves: Iterable[AwaitedMove]) -> AwaitedMove | None:
    """The move whose replacement this pod is; None when it is nobody's.

    It has the controller of the evicted pod and came after the eviction. A StatefulSet makes each pod anew under its name, so there the
    names agree as well. Of several moves that fit, the one that waits for the longest.
    """
    named = pod.controller_kind == "StatefulSet"
    fits = [
        move
        for move in moves
        if pod.controller_uid
        and move.controller_uid == pod.controller_uid
        and move.namespace == pod.namespace
        and move.pod_uid != pod.uid
        and pod.created_at >= move.evicted_at - _CLOCKS_S
        and (not named or move.pod == pod.name)
    ]
    return min(fits, key=lambda move: (move.evicted_at, move.pod_uid), default=None)


def node_order(move: AwaitedMove, hot: Collection[str]) -> Sequence[str]:
    """The nodes to offer, in this order; those that are hot by now are left out."""
    return [node for node in dict.fromkeys(move.nodes) if node not in hot]


def announcement(moves: Iterable[AwaitedMove], *, until: float) -> Mapping[str, Awaited]:
    """Controller uid -> until when its new pods are gated, and for whom. ``until``: unix seconds, by the API server's clock."""
    waiting: dict[str, set[str]] = defaultdict(set)
    for move in moves:
        if move.controller_uid:
            waiting[move.controller_uid].add(move.pod_uid)
    return {uid: Awaited(format_time(until), tuple(sorted(pods))) for uid, pods in sorted(waiting.items())}
