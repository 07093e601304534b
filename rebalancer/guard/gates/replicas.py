"""Evicting one of too few replicas is an outage. Whoever annotates the workload with this project's opt-in accepts that."""

from __future__ import annotations

import math

from rebalancer.guard.annotations import EVICT, read_consent
from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "replicas"
REMEDY = f'annotate it {EVICT}: "true" to accept the outage'


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    workload = int(scene.state.pods.workload[candidate.pod])
    if workload < 0:
        return None
    workloads, minimum = scene.state.workloads, scene.spec.victims.min_replicas
    ref, wanted, ready = workloads.refs[workload], float(workloads.replicas[workload]), float(workloads.ready[workload])
    if wanted >= minimum and ready >= minimum:
        return None
    if read_consent(scene.state, candidate.pod).by_own_annotation or scene.gang_rules.of_pod(candidate.pod) >= 0:
        return None  # how many of a gang may be away is for the gates of gangs to say
    if math.isnan(wanted):
        return Refusal(NAME, f"{ref} does not say how many replicas it wants; {REMEDY}", retryable=False)
    if wanted < minimum:
        reason = f"{ref} wants {_replicas(wanted)}, policy victims.minReplicas is {minimum}; {REMEDY}"
        return Refusal(NAME, reason, retryable=False)
    if math.isnan(ready):
        return Refusal(NAME, f"{ref} does not say how many of its {_replicas(wanted)} are Ready; {REMEDY}", retryable=True)
    reason = f"{ref} has {ready:g} of {_replicas(wanted)} Ready, policy victims.minReplicas is {minimum}"
    return Refusal(NAME, reason, retryable=True)


def _replicas(count: float) -> str:
    return "1 replica" if count == 1 else f"{count:g} replicas"


GATE = Gate(
    name=NAME,
    order=250,
    describe=(
        "Pods of a workload that wants or has fewer Ready replicas than `victims.minReplicas`, or that does not say; "
        '`rebalancer.dev/evict: "true"` on the pod or the workload lifts this. Members of a gang are judged by `gang` and '
        "`gang-minimum` instead."
    ),
    check=check,
)
