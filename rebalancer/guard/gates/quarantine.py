"""A workload whose replacement came back to the node it was moved from is not moved again for a while: it would only go in circles."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "quarantine"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    ref = scene.state.workload_of(candidate.pod) if scene.history.quarantine else None
    rest = scene.history.quarantine.get(ref) if ref is not None else None
    if ref is None or rest is None or rest.until <= scene.state.at:
        return None
    return Refusal(NAME, rest.words(ref), retryable=True)


GATE = Gate(
    name=NAME,
    order=350,
    describe=(
        "Pods of a workload whose replacements came back to the node they were moved from `quarantine.returns` times, for "
        "`quarantine.hold`."
    ),
    check=check,
)
