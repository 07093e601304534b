"""A gang lives and dies together: one member evicted stops the work of all, so it moves whole or not at all.

Some schedulers give every single pod a group of its own; a group of one is no gang.
"""

from __future__ import annotations

import math

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "gang"
GANG_KINDS = frozenset(
    {"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "TrainJob", "JobSet", "LeaderWorkerSet"}
)
"""Kinds whose pods wait for each other, with or without a gang scheduler."""


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state, pod = scene.state, candidate.pod
    group, ref = state.pods.scheduling_group[pod], state.workload_of(pod)
    members = scene.headcount.group_members.get((state.pods.namespaces[pod], group), 0) if group else 0
    if members > 1:
        whole = f"gang {group} of {members} pods"
    elif ref is not None and ref.kind in GANG_KINDS:
        whole = str(ref)
    else:
        return None
    rules = state.workloads.jobs[int(state.pods.workload[pod])] if ref is not None else None
    limit = f", backoffLimit {rules.backoff_limit:g}" if rules is not None and math.isfinite(rules.backoff_limit) else ""
    reason = f"it is a member of {whole}, which moves whole or not at all (restartPolicy {state.pods.restart_policy[pod]}{limit})"
    return Refusal(NAME, reason, retryable=False)


GATE = Gate(
    name=NAME,
    order=250,
    describe=(
        "Members of a gang, by a scheduling group of more than one pod or because their owner is a distributed training job: "
        "a gang moves whole or not at all."
    ),
    check=check,
)
