"""Dry run: says what would have been done and writes nothing, nowhere."""

from __future__ import annotations

from rebalancer.act.outcome import Outcome, Prepared, Result
from rebalancer.deadline import Deadline
from rebalancer.plan.model import Move, Plan
from rebalancer.policy.model import Pool
from rebalancer.state.tables import WorkloadRef


class RecordingActuator:
    def prepare(self, plan: Plan, *, at: float, deadline: Deadline) -> Prepared:
        return Prepared()

    def carry_out(self, move: Move, *, at: float, deadline: Deadline) -> Outcome:
        return Outcome(move, Result.RECORDED, f"dry run: would be moved from {move.source} {move.whither}")

    def tell_rest(self, workload: WorkloadRef, why: str, *, at: float, deadline: Deadline) -> None:
        """Nothing is written; the report says it."""

    def clean_up(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None) -> tuple[str, ...]:
        return ()
