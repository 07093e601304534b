"""Moves and plans in one line each, as the acting code reads them; and an actuator that remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rebalancer.act.outcome import Outcome, Prepared, Result
from rebalancer.deadline import Deadline
from rebalancer.plan.hinting import UNSTEERED
from rebalancer.plan.model import CoverageReport, Move, MoveSignal, NodeReport, NodeSignal, OwnerRef, Plan, PodRef, ShareReport, Summary
from rebalancer.policy.model import Pool
from rebalancer.state.tables import WorkloadRef

AT = 1_750_000_000.0
WEB = OwnerRef(kind="Deployment", namespace="shop", name="web")


def move(
    name: str = "web-1",
    *,
    source: str = "hot",
    destination: str = "cool",
    owner: OwnerRef | None = WEB,
    before: float = 0.9,
    after: float = 0.7,
    uid: str = "",
    gang: str = "",
    steered_by: str = UNSTEERED,
) -> Move:
    signal = MoveSignal(source_before=before, source_after=after, destination_before=0.2, destination_after=0.4, usage=2.0)
    return Move(
        pod=PodRef(namespace="shop", name=name, uid=uid or f"uid-{name}"),
        workload=owner,
        tenant=None,
        source=source,
        destination=destination,
        signals={"cpu": signal},
        gain=0.05,
        reason="cpu load 90 % > high 70 % in 10 of 10 windows",
        gang=gang,
        steered_by=steered_by,
    )


def report(
    name: str,
    load: float | None,
    *,
    pool: str | None = "default",
    target: float | None = 0.55,
    tainted: bool = False,
    unknown: bool = False,
    warm: bool = False,
    right: tuple[str, ...] = ("rebalancer.dev/hot",),
    carries: tuple[str, ...] = (),
) -> NodeReport:
    """``tainted``: it carries the taint that is right for it; ``carries``: others."""
    return NodeReport(
        name=name,
        pool=pool,
        node_class="unknown" if unknown else "normal",
        quadrant=None,
        signals={"cpu": NodeSignal(packing=0.5, load=load, load_after=load, target=target)},
        tainted=tainted or bool(carries),
        warm=warm,
        soft_taints=right,
        carries=carries or (right if tainted else ()),
    )


def plan(
    *moves: Move, nodes: tuple[NodeReport, ...] = (), soft_taints: tuple[str, ...] = (), mode: str = "evict", soft_tainting: bool = True
) -> Plan:
    return Plan(
        cluster="test-cluster",
        created_at="2025-06-15T15:06:40Z",
        mode=mode,
        policy="default",
        method="balance",
        summary=Summary(
            hot_nodes=1, max_load=0.9, stddev=0.1, hot_nodes_after=0, max_load_after=0.7, stddev_after=0.1, moves=len(moves), refused=0
        ),
        coverage=CoverageReport(nodes=ShareReport(known=2, of=2), pods=ShareReport(known=2, of=2), oldest_sample_seconds=30.0),
        moves=moves,
        refused=(),
        nodes=nodes,
        soft_taints=soft_taints,
        soft_tainting=soft_tainting,
    )


@dataclass
class FakeActuator:
    """Answers each pod as ``results`` says (EVICTED if it says nothing) and records every call in ``calls``."""

    results: Mapping[str, Result] = field(default_factory=dict)
    stops: tuple[Result, ...] = (Result.THROTTLED, Result.FORBIDDEN)
    on_carry_out: Callable[[Move], None] = lambda move: None
    calls: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    untainted: tuple[str, ...] = ()

    def prepare(self, plan: Plan, *, at: float, deadline: Deadline) -> Prepared:
        self.calls.append("prepare")
        return Prepared(self.notes, self.untainted)

    def carry_out(self, move: Move, *, at: float, deadline: Deadline) -> Outcome:
        self.calls.append(move.pod.name)
        self.on_carry_out(move)
        result = self.results.get(move.pod.name, Result.EVICTED)
        return Outcome(move, result, f"{move.pod.name} {result.value}", stop=result in self.stops)

    def tell_rest(self, workload: WorkloadRef, why: str, *, at: float, deadline: Deadline) -> None:
        self.calls.append(f"rest {workload}: {why}")

    def clean_up(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None) -> tuple[str, ...]:
        self.calls.append("clean up")
        return self.notes
