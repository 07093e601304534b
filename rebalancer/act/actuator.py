"""The interface of acting, and the walk through a plan that all ways of acting share.

Dry run is an actuator like the others, never an `if` in one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted
from rebalancer.plan.model import Move, Plan


class Actuator(Protocol):
    def prepare(self, plan: Plan, *, at: float, deadline: Deadline) -> tuple[str, ...]:
        """What must be in place before the first move (soft taints), and what an earlier plan left that no longer holds.

        Called for every plan, an empty one too. Returns sentences about what was done or failed.
        """
        ...

    def carry_out(self, move: Move, *, at: float, deadline: Deadline) -> Outcome: ...

    def clean_up(self, *, deadline: Deadline) -> tuple[str, ...]:
        """Remove everything of ours that steers or marks, from this process or an earlier one. Returns sentences."""
        ...


def carry_out_plan(
    plan: Plan,
    actuator: Actuator,
    *,
    at: float,
    deadline: Deadline,
    allowed: Callable[[], str] = lambda: "",
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Act on the moves in their order. ``allowed`` is asked before each and says in words why nothing may be written any more.

    A stop request abandons the rest; it never leaves a move half done. ``done`` hears of each outcome as it happens.
    """
    outcomes: list[Outcome] = []
    stopped = ""
    for move in plan.moves:
        if not stopped:
            stopped = allowed()
        if not stopped:
            try:
                if deadline.remaining() <= 0:
                    stopped = "the deadline of the cycle has passed"
            except Interrupted as stop:
                stopped = stop.message
        if stopped:
            outcome = Outcome(move, Result.ABANDONED, f"not tried: {stopped}")
        else:
            outcome = actuator.carry_out(move, at=at, deadline=deadline)
            if outcome.stop:
                stopped = outcome.reason
        outcomes.append(outcome)
        done(outcome)
    return outcomes
