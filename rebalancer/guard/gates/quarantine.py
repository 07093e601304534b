"""A workload whose replacement came back to the node it was moved from is not moved again for a while: it would only go in circles."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.units import format_time

NAME = "quarantine"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    ref = scene.state.workload_of(candidate.pod) if scene.history.quarantine else None
    rest = scene.history.quarantine.get(ref) if ref is not None else None
    if rest is None or rest.until <= scene.state.at:
        return None
    times = "once" if rest.returns == 1 else f"{rest.returns} times"
    reason = f"{ref} came back to node {rest.node} {times} and rests until {format_time(rest.until)} (policy quarantine.hold)"
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=300,
    describe=(
        "Pods of a workload whose replacements came back to the node they were moved from `quarantine.returns` times, for "
        "`quarantine.hold`."
    ),
    check=check,
)
