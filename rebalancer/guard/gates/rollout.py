"""In a rollout the replacement comes from a template that is on its way out, and a pod less may halt the rollout."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "rollout"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    workload = int(scene.state.pods.workload[candidate.pod])
    if workload < 0 or not scene.state.workloads.rollout[workload]:
        return None
    workloads = scene.state.workloads
    return Refusal(NAME, f"{workloads.refs[workload]} is being rolled out: {workloads.rollout[workload]}", retryable=True)


GATE = Gate(
    name=NAME,
    order=260,
    describe="Pods of a workload that is being rolled out.",
    check=check,
)
