"""Where the policy asks for the markers of schedulers, only what they call preemptible may go."""

from __future__ import annotations

from rebalancer.guard.annotations import PREEMPTIBLE_WORDS, called_preemptible
from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "preemptible-required"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    if not scene.spec.victims.require_preemptible:
        return None
    if called_preemptible(scene.state.pods.annotations[candidate.pod], scene.label_marks.of(candidate.pod)):
        return None
    words = " and no ".join(f"{key}: {value}" for key, value in PREEMPTIBLE_WORDS.items())
    return Refusal(NAME, f"it carries no {words} (policy victims.requirePreemptible)", retryable=False)


GATE = Gate(
    name=NAME,
    order=130,
    describe=(
        "Pods that no scheduler calls preemptible, when `victims.requirePreemptible` is true: neither `volcano.sh/preemptable: true` nor "
        "`kai.scheduler/preemptibility: preemptible` nor `quota.scheduling.koordinator.sh/preemptible: true`."
    ),
    check=check,
)
