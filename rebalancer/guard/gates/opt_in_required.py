"""Where the policy asks for volunteers, silence is a no."""

from __future__ import annotations

from rebalancer.guard.annotations import EVICT, read_consent
from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "opt-in-required"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    if not scene.spec.victims.require_opt_in or read_consent(scene.state, candidate.pod).opted_in:
        return None
    return Refusal(NAME, f'neither the pod nor its workload is annotated {EVICT}: "true" (policy victims.requireOptIn)', retryable=False)


GATE = Gate(
    name=NAME,
    order=120,
    describe=(
        "Pods that nobody opted in, when `victims.requireOptIn` is true: neither they nor their workload carry "
        '`rebalancer.dev/evict` or `descheduler.alpha.kubernetes.io/evict` with `"true"`.'
    ),
    check=check,
)
