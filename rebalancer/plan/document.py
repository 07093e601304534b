"""From rows to the plan document: names instead of row numbers, null instead of NaN, every node before and after."""

from __future__ import annotations

import math

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.plan.gpu_moves import moved_devices
from rebalancer.plan.gpu_report import gpu_report
from rebalancer.plan.grades import carried, keys_by_row
from rebalancer.plan.hinting import EXTENDER, HINT, TAINT, UNSTEERED
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.model import (
    CoverageReport,
    Move,
    MoveSignal,
    NodeReport,
    NodeSignal,
    OwnerRef,
    Plan,
    PodRef,
    RefusedCandidate,
    ShareReport,
    Summary,
)
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState, Coverage, Share
from rebalancer.units import format_time

LARGE = 1e6
"""Below it, a double holds the millionths of a number exactly enough to round them."""


_PREDICTIONS = {HINT: "planned", EXTENDER: "planned", TAINT: "soft-taint", UNSTEERED: "stock-scores"}


def known(value: float) -> float | None:
    """None for NaN and infinities; six digits are more than any of these numbers deserve."""
    return round(float(value), 6) if math.isfinite(value) else None


def document(
    *,
    state: ClusterState,
    findings: Findings,
    bench: Bench,
    proposal: Proposal,
    policy: RebalancePolicy,
    mode: Mode,
    mode_source: str,
) -> Plan:
    after = bench.loads.load()
    marked = np.flatnonzero(bench.soft_tainted).tolist()
    return Plan(
        cluster=state.cluster,
        created_at=format_time(state.at),
        mode=mode.value,
        mode_source=mode_source,
        policy=policy.metadata.name,
        method=proposal.method,
        outcome=proposal.outcome,
        summary=_summary(findings, after, bench.loads.reach(), proposal),
        coverage=coverage_report(state.coverage),
        moves=tuple(_move(state, bench, move) for move in proposal.moves),
        refused=tuple(
            RefusedCandidate(
                pod=pod_ref(state, pod),
                source=state.nodes.names[int(state.pods.node[pod])],
                gate=refusal.gate,
                reason=refusal.reason,
                retryable=refusal.retryable,
            )
            for pod, refusal in proposal.refused
        ),
        nodes=_nodes(state, findings, bench, after),
        gpus=gpu_report(state, policy.spec.gpu),
        soft_taints=tuple(state.nodes.names[row] for row in marked) if proposal.moves else (),
        soft_tainting=policy.spec.steering.soft_taint,
    )


def pod_ref(state: ClusterState, pod: int) -> PodRef:
    pods = state.pods
    return PodRef(namespace=pods.namespaces[pod], name=pods.names[pod], uid=pods.uids[pod])


def owner_ref(state: ClusterState, pod: int) -> OwnerRef | None:
    ref = state.workload_of(pod)
    return None if ref is None else OwnerRef(kind=ref.kind, namespace=ref.namespace, name=ref.name)


def _move(state: ClusterState, bench: Bench, move: ProposedMove) -> Move:
    pod = move.pod
    tenant = int(state.pods.tenant[pod])
    judged = bench.findings.judged[move.source]
    signals = {
        signal.name: MoveSignal(
            source_before=known(loads[0]),
            source_after=known(loads[1]),
            destination_before=known(loads[2]),
            destination_after=known(loads[3]),
            usage=known(float(state.pods.usage[pod, column])),
        )
        for column, (signal, loads) in enumerate(zip(state.signals, move.loads, strict=True) if move.loads else ())
        if judged[column]
    }
    request = state.pods.incoming_request[pod]
    steered_by = move.led_by or (TAINT if bench.soft_tainted.any() else UNSTEERED)
    return Move(
        pod=pod_ref(state, pod),
        workload=owner_ref(state, pod),
        tenant=None if tenant < 0 else state.tenants[tenant],
        source=state.nodes.names[move.source],
        destination=state.nodes.names[move.destination] if move.destination >= 0 else "",
        gang=state.gangs.title(move.gang) if move.gang >= 0 else "",
        pod_class=state.pods.classes[pod].value,
        makes_room_for=None if move.makes_room_for < 0 else pod_ref(state, move.makes_room_for),
        alternatives=tuple(state.nodes.names[row] for row in move.alternatives),
        chance=known(move.chance),
        prediction=_PREDICTIONS[steered_by],
        steered_by=steered_by,
        signals=signals,
        gain=round(move.gain, 6),
        reason=move.reason,
        request={name: float(request[row]) for row, name in enumerate(state.resources) if request[row] > 0},
        devices=moved_devices(state, pod),
        action="annotate" if bench.scene.mode is Mode.ANNOTATE else "evict",
    )


def _nodes(state: ClusterState, findings: Findings, bench: Bench, after: FloatArray) -> tuple[NodeReport, ...]:
    """Column by column, since there may be ten thousand."""
    signals = _node_signals(state, findings, after)
    pools: list[str | None] = [*(pool.name for pool in findings.pools), None]
    words = {int(each): each.word for each in NodeClass}
    columns = (
        state.nodes.names,
        findings.pool.tolist(),
        findings.node_class.tolist(),
        findings.quadrant,
        findings.reasons,
        bench.soft_tainted.tolist(),
        bench.warm.tolist(),
        keys_by_row(bench.grades),
        keys_by_row(carried(state.nodes.taints)),
    )
    return tuple(
        NodeReport(
            name=name,
            pool=pools[pool],  # -1 picks the last one
            node_class=words[node_class],
            quadrant=None if quadrant is None else quadrant.value,
            signals={signal: column[row] for signal, column in signals.items()},
            reason=reason,
            steered=steered,
            warm=warm,
            tainted=bool(carries),
            soft_taints=right,
            carries=carries,
        )
        for row, (name, pool, node_class, quadrant, reason, steered, warm, right, carries) in enumerate(zip(*columns, strict=True))
    )


def _node_signals(state: ClusterState, findings: Findings, after: FloatArray) -> dict[str, list[NodeSignal]]:
    """signal -> what is known of it on every node."""
    matrices = (findings.packing, findings.load, after, findings.low, findings.target, findings.high, state.nodes.sample_age_s)
    found: dict[str, list[NodeSignal]] = {}
    for number, signal in enumerate(state.signals):
        columns = [known_column(matrix[:, number]) for matrix in matrices]
        found[signal.name] = [
            NodeSignal(packing=packing, load=load, load_after=then, low=low, target=target, high=high, sample_age_seconds=age)
            for packing, load, then, low, target, high, age in zip(*columns, strict=True)
        ]
    return found


def known_column(values: FloatArray) -> list[float | None]:
    """`known` of each of (nodes,) values.

    A millionth is divided exactly, so all but what lies about half way between two of them is rounded as `round` rounds it.
    """
    plain = np.abs(values) < LARGE  # neither NaN nor an infinity is
    millionths = np.where(plain, values, 0.0) * 1e6
    whole = np.rint(millionths)
    half_way = np.abs(np.abs(millionths - whole) - 0.5) < 1e-3
    found: list[float | None] = (whole / 1e6).tolist()
    for row in np.flatnonzero(half_way | ~plain).tolist():
        found[row] = known(float(values[row]))
    return found


def _summary(findings: Findings, after: FloatArray, reach: FloatArray, proposal: Proposal) -> Summary:
    judged = findings.judged & (findings.pool >= 0)[:, None]
    with np.errstate(invalid="ignore"):
        still = (findings.confirmed & (reach > findings.high)).any(axis=1)
        made = (judged & (reach > findings.high) & (reach > findings.reach + 1e-9)).any(axis=1)
    return Summary(
        hot_nodes=findings.nodes_of_class(NodeClass.HOT),
        max_load=_worst(findings.load, judged),
        stddev=_spread(findings, findings.load),
        hot_nodes_after=int((still | made).sum()),
        max_load_after=_worst(after, judged),
        stddev_after=_spread(findings, after),
        moves=len(proposal.moves),
        refused=len(proposal.refused),
        unknown_nodes=findings.nodes_of_class(NodeClass.UNKNOWN),
    )


def _worst(load: FloatArray, judged: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float | None:
    values = load[judged & ~np.isnan(load)]
    return known(float(values.max())) if values.size else None


def _spread(findings: Findings, load: FloatArray) -> float | None:
    """The largest population standard deviation over the pools and the signals that each is judged by."""
    spreads: list[float] = []
    for row in range(len(findings.pools)):
        here = findings.pool == row
        for column in range(load.shape[1]):
            values = load[here & findings.judged[:, column], column]
            values = values[~np.isnan(values)]
            if values.size:
                spreads.append(float(values.std()))
    return known(max(spreads)) if spreads else None


def coverage_report(coverage: Coverage) -> CoverageReport:
    """The worst signal's coverage of nodes and of pods, the oldest sample in use, and what was thrown away."""
    ages = [age for age in coverage.oldest_sample_s.values() if math.isfinite(age)]
    return CoverageReport(
        nodes=_least(list(coverage.nodes.values())),
        pods=_least(list(coverage.pods.values())),
        oldest_sample_seconds=known(max(ages)) if ages else None,
        dropped={reason: count for reason, count in sorted(coverage.dropped.items()) if count},
        notes=(*(f"Prometheus warns with the answer to {words}" for words in coverage.warnings), *coverage.notes),
    )


def _least(shares: list[Share]) -> ShareReport:
    worst = min(shares, key=lambda share: share.ratio, default=Share(0, 0))
    return ShareReport(known=worst.known, of=worst.of)
