"""A workload rests after a move, and longer after each further move in a row, so that no pod is chased through the cluster."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.windows import rest_after
from rebalancer.units import format_duration

NAME = "cooldown-workload"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    ref = scene.state.workload_of(candidate.pod)
    streak = scene.streaks.get(ref) if ref is not None else None
    if streak is None or scene.reclaiming:
        return None
    cooldown = scene.spec.cooldown
    rest = rest_after(streak.moves, first_s=cooldown.workload, factor=cooldown.backoff, longest_s=cooldown.max)
    left = rest - max(0.0, scene.state.at - streak.last_at)
    if left <= 0:
        return None
    moves = "1 move" if streak.moves == 1 else f"{streak.moves} moves"
    reason = (
        f"{ref} rests {format_duration(rest)} after {moves} within {format_duration(cooldown.max)}, "
        f"{format_duration(left)} of it left (policy cooldown.workload)"
    )
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=360,
    describe=(
        "Pods of a workload that was moved less than `cooldown.workload` ago, times `cooldown.backoff` for each further "
        "move within `cooldown.max`. Not where room is given back to a tenant: nobody is chased by that, and budgets hold."
    ),
    check=check,
)
