"""After an autoscaler changed the number of replicas, the load of each is about to change too."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.units import format_duration

NAME = "recently-scaled"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    workload = int(scene.state.pods.workload[candidate.pod])
    if workload < 0:
        return None
    workloads, rest = scene.state.workloads, scene.spec.cooldown.workload
    since = scene.state.at - float(workloads.scaled_at[workload])
    if not since < rest:  # NaN: no autoscaler ever scaled it
        return None
    reason = (
        f"an autoscaler scaled {workloads.refs[workload]} {format_duration(max(0.0, since))} ago, "
        f"less than {format_duration(rest)} (policy cooldown.workload)"
    )
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=270,
    describe="Pods of a workload that a HorizontalPodAutoscaler scaled less than `cooldown.workload` ago.",
    check=check,
)
