"""A young pod has not shown its load yet, and may be the replacement of the last move."""

from __future__ import annotations

import math

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.units import format_duration, parse_duration

NAME = "minimum-age"


COOLDOWN = "volcano.sh/cooldown-time"
"""How long a pod is to run at least before it is preempted."""


def _asked(text: str) -> float:
    try:
        return parse_duration(text) if text else 0.0
    except ValueError:
        return 0.0


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state, minimum, key = scene.state, scene.spec.victims.min_age, "policy victims.minAge"
    asked = _asked(state.pods.annotations[candidate.pod].get(COOLDOWN, ""))
    if asked > minimum:
        minimum, key = asked, f"its annotation {COOLDOWN}"
    started_at = float(state.pods.started_at[candidate.pod])
    if math.isnan(started_at):
        return Refusal(NAME, "when it started is not known", retryable=True)
    age = state.at - started_at
    if age >= minimum:
        return None
    reason = f"it started {format_duration(max(0.0, age))} ago, less than {format_duration(minimum)} ({key})"
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=240,
    describe="Pods that started less than `victims.minAge` or their own `volcano.sh/cooldown-time` ago, and pods whose start is not known.",
    check=check,
)
