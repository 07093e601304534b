"""The interface of acting, and the walk through a plan that all ways of acting share.

Dry run is an actuator like the others, never an `if` in one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from rebalancer.act.outcome import Outcome, Prepared, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted
from rebalancer.plan.model import Move, Plan
from rebalancer.policy.model import Pool
from rebalancer.state.tables import WorkloadRef


class Actuator(Protocol):
    def prepare(self, plan: Plan, *, at: float, deadline: Deadline) -> Prepared:
        """What must be in place before the first move (soft taints), and what an earlier plan left that no longer holds.

        Called for every plan, an empty one too.
        """
        ...

    def carry_out(self, move: Move, *, at: float, deadline: Deadline) -> Outcome: ...

    def tell_rest(self, workload: WorkloadRef, why: str, *, at: float, deadline: Deadline) -> None:
        """Say on the workload that it is not moved for a while. Called once for each rest; raises nothing."""
        ...

    def clean_up(self, *, deadline: Deadline, pools: tuple[Pool, ...] | None = None) -> tuple[str, ...]:
        """Remove everything of ours that steers or marks, from this process or an earlier one. Returns sentences.

        Only from nodes that ``pools`` claim and from their pods, since the others may be another controller's; None: from all.
        """
        ...


def carry_out_plan(
    plan: Plan,
    actuator: Actuator,
    *,
    at: float,
    deadline: Deadline,
    allowed: Callable[[Move], str] = lambda move: "",
    done: Callable[[Outcome], None] = lambda outcome: None,
    move_limit_s: float = math.inf,
) -> list[Outcome]:
    """Act on the moves in their order. ``allowed`` is asked right before each and says in words why nothing may be written any more.

    A stop request or the deadline abandons the rest; neither leaves a move half done, since an actuator raises Interrupted only while
    nothing of the move is under way. ``done`` hears of each outcome as it happens. ``move_limit_s``: how long one move may take.
    """
    outcomes: list[Outcome] = []
    stopped = ""
    for move in plan.moves:
        stopped = stopped or _out_of_time(deadline) or allowed(move)
        outcome = Outcome(move, Result.ABANDONED, f"not tried: {stopped}")
        if not stopped:
            try:
                outcome = actuator.carry_out(move, at=at, deadline=deadline.at_most(move_limit_s))
                stopped = outcome.reason if outcome.stop else ""
            except Interrupted as stop:
                stopped = stop.message
                outcome = Outcome(move, Result.ABANDONED, f"not carried out: {stopped}")
        outcomes.append(outcome)
        done(outcome)
    return outcomes


def _out_of_time(deadline: Deadline) -> str:
    try:
        return "" if deadline.remaining() > 0 else "the deadline of the cycle has passed"
    except Interrupted as stop:
        return stop.message
