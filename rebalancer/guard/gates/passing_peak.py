"""A peak that comes and goes every day at the same hour is over before a replacement has paid for its eviction."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "passing-peak"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    why = scene.passing.get(candidate.source)
    return None if why is None else Refusal(NAME, f"the peak of its node passes by itself: {why}", retryable=True)


GATE = Gate(
    name=NAME,
    order=440,
    describe=(
        "Pods on a hot node that was as hot at the same hour of yesterday and was under its mark within `anticipation.horizon`, as long as "
        "today goes like yesterday."
    ),
    check=check,
)
