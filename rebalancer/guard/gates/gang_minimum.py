"""A member leaves a gang alone only while the gang keeps its minimum of Ready members without it; else all of them go in one plan.

Members that are on the move, not Ready or terminating are missing already: a second one is not taken on top.
"""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "gang-minimum"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    rules = scene.gang_rules
    gang = rules.of_pod(candidate.pod)
    if gang < 0 or gang in scene.booked.whole_gangs:
        return None
    planned = scene.booked.by_gang.get(gang, 0)
    if rules.spare(gang) > planned:
        return None
    mine = f", of which this plan takes {planned}" if planned else ""
    reason = f"alone it would leave too few of {rules.words(gang, candidate.pod)}: {rules.working(gang)} are Ready{mine}"
    return Refusal(NAME, reason, retryable=True)


GATE = Gate(
    name=NAME,
    order=330,
    describe=(
        "Single members of a gang that would have fewer Ready members than its minimum without them, this plan included. "
        "A plan that moves the whole gang is not held by it."
    ),
    check=check,
    static=False,
)
