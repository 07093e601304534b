"""One sentence for every limit on evictions: how many of how many, in which window, and which policy key says so."""

from __future__ import annotations

from rebalancer.guard.gate import Refusal, Scene
from rebalancer.policy.quantities import limit_of
from rebalancer.units import format_duration


def over_limit(scene: Scene, *, gate: str, subject: str, key: str, value: int | str, pods: int, past: int, planned: int) -> Refusal | None:
    """Refuse when the window and the plan together have reached the limit.

    ``pods`` is what a percentage is of, ``past`` the evictions in the window, ``planned`` those that the plan has booked already.
    """
    limit = limit_of(value, pods)
    used = past + planned
    if used < limit:
        return None
    share = f"{value} of {pods} pods" if isinstance(value, str) else str(value)
    if limit == 0:
        return Refusal(gate, f"{subject} may lose no pod: policy budgets.{key} is {share}", retryable=False)
    window = format_duration(scene.spec.budgets.window)
    mine = f", {planned} of them in this plan" if planned else ""
    return Refusal(
        gate, f"{subject}: {used} of {limit} evictions in the last {window}{mine} (policy budgets.{key} is {share})", retryable=True
    )
