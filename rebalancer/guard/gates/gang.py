"""A gang lives and dies together: one member evicted stops the work of all, so it moves whole or not at all.

Only what is above its minimum may go alone. Some schedulers give every single pod a group of its own; a group of one is no gang.
"""

from __future__ import annotations

import math

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.state.gangs import TRAINING_KINDS

NAME = "gang"
GANG_KINDS = TRAINING_KINDS | {"JobSet", "LeaderWorkerSet"}
"""Kinds whose pods wait for each other, where a state does not tell of gangs."""


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    if not scene.state.gangs.told:
        return _by_group(candidate, scene)
    rules = scene.gang_rules
    gang = rules.of_pod(candidate.pod)
    if gang < 0 or rules.spare(gang) > 0:
        return None
    barred = rules.barred(gang)
    if not barred:
        return None
    reason = f"it is a member of {rules.words(gang, candidate.pod)} and moves whole or not at all; {barred}"
    return Refusal(NAME, reason, retryable=False)


def _by_group(candidate: Candidate, scene: Scene) -> Refusal | None:
    """Of a state that knows no more than the names of groups."""
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
    order=290,
    describe=(
        "Members of a gang that may not move whole: `victims.gangs` refuses it, or asks for `rebalancer.dev/checkpointed` and a member "
        "lacks it; its job may not fail once (backoffLimit 0); it is a plain group of Kueue. A gang is several pods that need each other, "
        "by the minimum of their scheduling group or as a job of distributed training. What is above the minimum may go alone."
    ),
    check=check,
)
