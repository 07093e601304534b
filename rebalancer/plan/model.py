"""The plan: ordered moves, what they do to every node, and why every other candidate was refused.

These structs are the file format too (`rebalancer plan --out`): camelCase JSON, unknown numbers are null. Add fields freely, never change a
meaning. Times are RFC 3339 in UTC, loads are ratios of capacity, usage is in the signal's unit.
"""

from __future__ import annotations

import msgspec

from rebalancer.plan.gpu_moves import MoveDevice
from rebalancer.plan.gpu_report import GpuReport
from rebalancer.plan.hinting import UNSTEERED

API_VERSION = "rebalancer.dev/v1alpha1"


class PodRef(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    namespace: str
    name: str
    uid: str


class OwnerRef(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    kind: str
    namespace: str
    name: str


class MoveSignal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Predicted load of both ends, ratios, and what the pod uses, in the signal's unit."""

    source_before: float | None
    source_after: float | None
    destination_before: float | None
    destination_after: float | None
    usage: float | None = None


class Move(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pod: PodRef
    workload: OwnerRef | None
    tenant: str | None
    source: str
    destination: str
    """Empty for a move that makes room: where its replacement goes is not planned, and it may have to wait."""
    gang: str = ""
    """The gang that moves whole: its moves are carried out together or not at all, and a member on a node that is not hot may come back to
    it. Empty for a pod that moves alone."""
    pod_class: str = msgspec.field(name="class", default="")
    """What the pod is for: ``serving``, ``training``, ``experiment``, ``batch``, ``system`` or ``unknown``."""
    makes_room_for: PodRef | None = None
    """A pod that waits, and fits on the source once all moves for it are done: they are carried out together or not at all."""
    alternatives: tuple[str, ...] = ()
    """Other nodes that the scheduler may choose with equal right, or that are the next best for a hint; each would stay under its marks."""
    chance: float | None = None
    """How likely the replacement lands on one of these or on the destination; the less, the more nodes are as good. Null: unknown."""
    prediction: str = "stock-scores"
    """How the destination was predicted: ``stock-scores``, ``soft-taint`` or ``planned``."""
    steered_by: str = UNSTEERED
    """What makes the replacement go there: ``none``, ``taint``, ``extender`` or ``hint``."""
    signals: dict[str, MoveSignal]
    gain: float
    """Heat that the move takes out of the cluster."""
    reason: str
    request: dict[str, float] = {}
    """resource -> what the replacement will ask for."""
    devices: tuple[MoveDevice, ...] = ()
    """The GPUs of the source that the pod is on, as far as that is known."""

    action: str = "evict"
    """``evict``, or ``annotate`` where the policy lets the pod's class only be marked."""

    @property
    def bond(self) -> str:
        """What the move shares with those that it is carried out together with; empty for a move that stands alone."""
        if self.makes_room_for is not None:
            return f"room {self.makes_room_for.uid}"
        return f"gang {self.gang}" if self.gang else ""

    @property
    def whither(self) -> str:
        """``to node-1``, or ``to make room for ns/pod``."""
        room = self.makes_room_for
        return f"to {self.destination}" if room is None else f"to make room for {room.namespace}/{room.name}"


class RefusedCandidate(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pod: PodRef
    source: str
    gate: str
    reason: str
    retryable: bool


class NodeSignal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    packing: float | None
    load: float | None
    load_after: float | None
    low: float | None = None
    target: float | None = None
    high: float | None = None
    sample_age_seconds: float | None = None


class NodeReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    name: str
    pool: str | None
    node_class: str = msgspec.field(name="class")
    quadrant: str | None
    signals: dict[str, NodeSignal]
    reason: str = ""
    steered: bool = False
    """The node is to carry soft taints while the plan is carried out."""
    tainted: bool = False
    """It carries one or more already."""
    warm: bool = False
    """If it carries one, it keeps it, or has it changed for those that are right for it."""
    soft_taints: tuple[str, ...] = ()
    """Keys of the soft taints that are right for it, by how warm it is."""
    carries: tuple[str, ...] = ()
    """Keys of this project's soft taints that it carries now."""


class Summary(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """``maxLoad`` and ``stddev`` are over the judged signals of all pools: the worst load, and the largest spread of a pool and signal."""

    hot_nodes: int
    max_load: float | None
    stddev: float | None
    hot_nodes_after: int
    max_load_after: float | None
    stddev_after: float | None
    moves: int
    refused: int
    unknown_nodes: int = 0


class ShareReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    known: int
    of: int


class CoverageReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """``nodes`` and ``pods``: the worst signal's; ``bySignal`` has each."""

    nodes: ShareReport
    pods: ShareReport
    oldest_sample_seconds: float | None
    dropped: dict[str, int] = {}
    notes: tuple[str, ...] = ()


class LandingReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Whether replacements land where their plans said, of the moves that settled within ``breaker.hold`` and say something about it.

    Left out are moves without a replacement, and those whose plan had no definite place: it named too few of the nodes that were as likely.
    """

    moves: int
    named: int
    """Landed on the planned node or on an alternative that the plan named beside it: what the breaker judges."""
    planned: int
    """Landed on the planned node itself."""
    hit_ratio: float | None
    """``named`` over ``moves``; null without moves."""
    planned_ratio: float | None


class EarlierMove(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A move of an earlier cycle, held against what it promised."""

    at: str
    pod: PodRef
    workload: OwnerRef | None
    source: str
    planned: str
    landed: str | None
    """Where the replacement is Ready; null while it is not, or when none came."""
    result: str
    """``open``, ``as-planned``, ``elsewhere``, ``source``, ``lost`` or ``stayed``."""
    ready_after_seconds: float | None
    predicted_fall: float | None
    """Fall of the source's load that the move promised, ratio; of the signal with the largest."""
    realised_share: float | None
    """What came of the promise: the source's real fall over the predicted ones of all pods that left it since."""


class Plan(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: str = API_VERSION
    kind: str = "Plan"
    cluster: str
    created_at: str
    mode: str
    mode_source: str = ""
    policy: str
    method: str
    outcome: str = ""
    """One sentence: what is proposed, or why nothing is."""
    summary: Summary
    coverage: CoverageReport
    moves: tuple[Move, ...]
    refused: tuple[RefusedCandidate, ...]
    nodes: tuple[NodeReport, ...]
    earlier: tuple[EarlierMove, ...] = ()
    """Moves of the last hours, newest first, and what became of them."""
    gpus: GpuReport | None = None
    """Null for a cluster without GPUs, and in plans of earlier versions."""
    landings: LandingReport | None = None
    """Null in plans that were made without a memory."""
    soft_taints: tuple[str, ...] = ()
    """Nodes that are to repel new pods while this plan is carried out."""
    soft_tainting: bool = True
    """The policy steers by soft taints. Without it, those that an earlier plan left are taken off."""
