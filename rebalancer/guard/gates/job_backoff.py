"""To a Job an eviction is a failed pod, unless its podFailurePolicy ignores DisruptionTarget; one failure too many ends the Job."""

from __future__ import annotations

import math

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "job-backoff"
JOB_KINDS = frozenset({"Job", "CronJob"})


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    workload = int(scene.state.pods.workload[candidate.pod])
    if workload < 0:
        return None
    ref, rules = scene.state.workloads.refs[workload], scene.state.workloads.jobs[workload]
    if rules is None:
        if ref.kind not in JOB_KINDS:
            return None
        return Refusal(NAME, f"what an eviction costs {ref} is not known", retryable=False)
    if rules.ignores_disruption:
        return None
    limit = f"{rules.backoff_limit:g}" if math.isfinite(rules.backoff_limit) else "unlimited"
    reason = (
        f"an eviction counts as a failure of {ref} ({rules.failed} failed, backoffLimit {limit}): "
        "no podFailurePolicy rule ignores DisruptionTarget"
    )
    return Refusal(NAME, reason, retryable=False)


GATE = Gate(
    name=NAME,
    order=280,
    describe=(
        "Pods of a Job that counts an eviction as a failure: no rule of its `podFailurePolicy` ignores the condition DisruptionTarget."
    ),
    check=check,
)
