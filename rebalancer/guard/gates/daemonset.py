"""A DaemonSet puts its pod back on the same node, so evicting it moves nothing."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "daemonset"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    workload = scene.state.workload_of(candidate.pod)
    if workload is None or workload.kind != "DaemonSet":
        return None
    return Refusal(NAME, f"{workload} would put the pod back on the same node", retryable=False)


GATE = Gate(
    name=NAME,
    order=10,
    describe="Pods of a DaemonSet, which come back on the same node.",
    check=check,
)
