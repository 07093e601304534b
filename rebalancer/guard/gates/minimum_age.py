"""A young pod has not shown its load yet, and may be the replacement of the last move."""

from __future__ import annotations

import math

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.units import format_duration

NAME = "minimum-age"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state, minimum = scene.state, scene.spec.victims.min_age
    started_at = float(state.pods.started_at[candidate.pod])
    if math.isnan(started_at):
        return Refusal(NAME, "when it started is not known", retryable=True)
    age = state.at - started_at
    if age >= minimum:
        return None
    reason = f"it started {format_duration(max(0.0, age))} ago, less than {format_duration(minimum)} (policy victims.minAge)"
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=200,
    describe="Pods that started less than `victims.minAge` ago, and pods whose start is not known.",
    check=check,
)
