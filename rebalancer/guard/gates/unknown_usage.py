"""Nothing is known about what a move of an unmeasured pod would do, and an estimate is good enough to keep a node cool, not to evict."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.units import format_duration

NAME = "unknown-usage"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state, measured = scene.state, scene.measured
    if measured.absent:
        return Refusal(NAME, f"signal {measured.absent[0]} is judged by the policy and was not read at all", retryable=True)
    pod = candidate.pod
    if measured.fully[pod]:
        return None
    unknown = [signal.name for column, signal in enumerate(state.signals) if measured.unknown[pod, column]]
    if unknown:
        return Refusal(NAME, f"its {' and '.join(unknown)} usage is unknown", retryable=True)
    estimated = [signal.name for column, signal in enumerate(state.signals) if measured.estimated[pod, column]]
    age = format_duration(max(0.0, state.at - float(state.pods.created_at[pod])))
    reason = f"its {' and '.join(estimated)} usage is an estimate: it is {age} old and not measured yet"
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=230,
    describe=(
        "Pods whose usage of a signal that their node is judged by is unknown, or is only an estimate because they are "
        "too young to be measured."
    ),
    check=check,
)
