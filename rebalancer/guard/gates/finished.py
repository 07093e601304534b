"""A finished pod uses nothing, so its eviction relieves nothing, and it may hold a result or a log that somebody wants."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.state.tables import Phase

NAME = "finished"
FINISHED = {int(phase): phase.name.capitalize() for phase in (Phase.SUCCEEDED, Phase.FAILED)}


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    phase = int(scene.state.pods.phase[candidate.pod])
    if phase not in FINISHED:
        return None
    return Refusal(NAME, f"it has finished (phase {FINISHED[phase]}) and uses nothing", retryable=False)


GATE = Gate(
    name=NAME,
    order=40,
    describe="Pods in phase Succeeded or Failed, which use nothing any more.",
    check=check,
)
