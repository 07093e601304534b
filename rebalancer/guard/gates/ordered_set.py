"""An OrderedReady StatefulSet repairs nothing at higher ordinals while one pod is missing: one pod at a time, and only from full health."""

from __future__ import annotations

import math

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "ordered-set"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    workload = int(state.pods.workload[candidate.pod])
    if workload < 0 or not state.workloads.ordered[workload]:
        return None
    ref, heads = state.workloads.refs[workload], scene.headcount
    if scene.booked.by_workload.get(ref, 0):
        return Refusal(NAME, f"this plan already moves a pod of {ref}, which takes its pods in order", retryable=True)
    wanted, ready = float(state.workloads.replicas[workload]), float(state.workloads.ready[workload])
    terminating, unready = int(heads.terminating[workload]), int(heads.unready[workload])
    if terminating or unready:
        reason = f"{ref} takes its pods in order and has {unready} not Ready and {terminating} terminating"
        return Refusal(NAME, reason, retryable=True)
    if not ready >= wanted:
        known = "an unknown number" if math.isnan(ready) else f"{ready:g}"
        return Refusal(NAME, f"{ref} takes its pods in order and has {known} of {wanted:g} Ready", retryable=True)
    return None


GATE = Gate(
    name=NAME,
    order=300,
    describe=(
        "Pods of a StatefulSet with OrderedReady that has a pod not Ready, terminating or missing, and more than one of its pods in a plan."
    ),
    check=check,
    static=False,
)
