"""The operator draws a line: pods of that priority or above never move. A line that cannot be found protects everybody."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.priorities import priority_value

NAME = "priority-ceiling"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    below = scene.spec.victims.priority_below
    ceiling = priority_value(below, scene.state.priorities)
    if ceiling is None:
        reason = (
            f"policy victims.priorityBelow names PriorityClass {below}, which the cluster does not have, so no pod is known to be below it"
        )
        return Refusal(NAME, reason, retryable=False)
    priority = int(scene.state.pods.priority[candidate.pod])
    if priority < ceiling:
        return None
    name = f"{below}, {ceiling}" if isinstance(below, str) else str(ceiling)
    return Refusal(NAME, f"its priority {priority} is not below {name} (policy victims.priorityBelow)", retryable=False)


GATE = Gate(
    name=NAME,
    order=70,
    describe=("Pods of the priority of `victims.priorityBelow` or above; every pod when that names a PriorityClass that does not exist."),
    check=check,
)
