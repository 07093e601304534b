"""One sentence for every limit on evictions: how many of how many, in which window, and which policy key says so."""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.guard.gate import Refusal, Scene
from rebalancer.policy.quantities import limit_of
from rebalancer.units import format_duration


def over_limit(
    scene: Scene, *, gate: str, subject: Callable[[], str], key: str, value: int | str, pods: Callable[[], int], past: int, planned: int
) -> Refusal | None:
    """Refuse when the window and the plan together have reached the limit.

    ``pods`` is what a percentage is of, ``past`` the evictions in the window, ``planned`` those that the plan has booked already.
    ``subject`` and ``pods`` are called only where they are needed: nearly every candidate passes nearly every limit.
    """
    of = pods() if isinstance(value, str) else 0
    limit = limit_of(value, of)
    used = past + planned
    if used < limit:
        return None
    share = f"{value} of {of} pods" if isinstance(value, str) else str(value)
    if limit == 0:
        return Refusal(gate, f"{subject()} may lose no pod: policy budgets.{key} is {share}", retryable=False)
    window = format_duration(scene.spec.budgets.window)
    mine = f", {planned} of them in this plan" if planned else ""
    return Refusal(
        gate, f"{subject()}: {used} of {limit} evictions in the last {window}{mine} (policy budgets.{key} is {share})", retryable=True
    )
