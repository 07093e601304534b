"""One pod of a workload at a time: the next one moves when the replacement of the last is Ready, with a disruption budget or without.

And no pod of a node while one that was evicted from it is still there: it may be leaving slowly, or the answer to its eviction was lost.
Its load is still measured, so whoever goes on draining would take a second pod for the same heat.
"""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.units import format_duration

NAME = "in-flight"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    slow = scene.leaving.get(candidate.source)
    if slow is not None:
        since = format_duration(max(0.0, state.at - slow.at))
        name = state.nodes.names[candidate.source]
        return Refusal(NAME, f"{slow.pod}, evicted from {name} {since} ago, has not left it yet", retryable=True)
    workload = int(state.pods.workload[candidate.pod])
    if workload < 0:
        return None
    ref, heads = state.workloads.refs[workload], scene.headcount
    past = scene.history.in_flight.get(ref)
    if past is not None:
        since = format_duration(max(0.0, state.at - past.at))
        return Refusal(NAME, f"the replacement of {past.pod}, evicted {since} ago, is not Ready yet ({ref})", retryable=True)
    if scene.reclaiming:
        return None
    if scene.booked.by_workload.get(ref, 0) and not scene.follows_its_gang(candidate.pod):
        return Refusal(NAME, f"this plan already moves a pod of {ref}; the next one waits until the replacement is Ready", retryable=True)
    leaving = int(heads.terminating[workload])
    if leaving:
        return Refusal(NAME, f"{ref} has {_pods(leaving)} terminating", retryable=True)
    arriving = int(heads.arrivals[workload]) - int(heads.arriving[candidate.pod])
    if arriving:
        return Refusal(
            NAME, f"{ref} has {_pods(arriving)} on the way that {'is' if arriving == 1 else 'are'} not Ready yet", retryable=True
        )
    return None


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


GATE = Gate(
    name=NAME,
    order=340,
    describe=(
        "Pods of a workload of which another pod is on the move: in this plan, evicted and its replacement not Ready, terminating, or "
        "arriving; where room is given back to a tenant only the second counts, and members of a gang that moves whole do not wait for "
        "each other. And those on a node that an evicted pod has not left yet."
    ),
    check=check,
    static=False,
)
