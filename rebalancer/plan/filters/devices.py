"""GPUs by single device, as the schemes that choose devices on their own count them: by what was asked for.

What device plugins hand out is counted by the node (`resources`), and claims are refused by `resource_claims`. What is measured is no
matter of a scheduler: see `plan.gpu.book` for where a pod fits.
"""

from __future__ import annotations

from rebalancer.plan.filter import Filter, Verdict
from rebalancer.plan.gpu.refusing import why_impossible
from rebalancer.plan.replacement import Replacement


def passes(replacement: Replacement) -> Verdict:
    book = replacement.placements.devices
    if not book.asks(replacement.pod):
        return True
    mask = book.possible(replacement.pod)
    if (at := replacement.vacated) >= 0:
        mask[at] = True  # what the pod had there is free again when its successor comes
    return mask


def reason(replacement: Replacement, node: int) -> str:
    clause = why_impossible(replacement.placements.devices, replacement.pod, node)
    return clause[:1].upper() + clause[1:]


FILTER = Filter(
    name="devices",
    order=75,
    describe="No single GPU of the node has free what the pod asks for of one.",
    passes=passes,
    reason=reason,
)
