"""Resource claims hold devices, and which devices are free is not known here.

A claim that pods share by name holds its users to the nodes of its devices. One made from a template is allocated anew, by the
structured allocator and from device inventories that are not read. Either way no node is promised.
"""

from __future__ import annotations

from rebalancer.plan.filter import Filter
from rebalancer.plan.replacement import Replacement


def passes(replacement: Replacement) -> bool:
    return not replacement.state.pods.volumes[replacement.pod].resource_claims


def reason(replacement: Replacement, node: int) -> str:
    claims = replacement.state.pods.volumes[replacement.pod].resource_claims
    shared = [claim.name for claim in claims if claim.shared]
    if shared:
        return f"Resource claim {', '.join(shared)} is shared by name and holds the pod to the nodes of its devices"
    return f"Free devices for resource claim {', '.join(claim.name for claim in claims)} are not known"


FILTER = Filter(
    name="resource-claims",
    order=140,
    describe="The pod uses resource claims, whose free devices are not known.",
    passes=passes,
    reason=reason,
)
