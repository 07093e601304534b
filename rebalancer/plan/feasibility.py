"""Where a replacement may go: kube-scheduler's filters over all nodes at once, under the bookings of the plan so far.

What does not depend on other pods is combined once per distinct constraints; the rest is a handful of vector operations a call. A node that
passes is one that the stock scheduler's default profile would pass now, while the evicted pod is still terminating; see `plan.filters`
for what is rejected for want of knowledge and what is not checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from rebalancer.plan.filter import Filter, Verdict, all_filters
from rebalancer.plan.ledger import Placements
from rebalancer.plan.replacement import DEFAULT_SCHEDULER, Replacement
from rebalancer.state.arrays import BoolArray, frozen
from rebalancer.state.cluster import ClusterState


class Feasibility:
    """``steered_schedulers``: names whose rules are those of the stock scheduler; pods of others fit nowhere."""

    def __init__(self, state: ClusterState, placements: Placements, *, steered_schedulers: Collection[str] = (DEFAULT_SCHEDULER,)) -> None:
        if placements.state is not state:
            raise ValueError("the placements were made from another state")
        self._state = state
        self._placements = placements
        self._steered = frozenset(steered_schedulers)
        self._static: dict[int, BoolArray] = {}

    def allowed(self, pod: int, *, leaving: bool = True) -> BoolArray:
        """(nodes,) bool: nodes where a replacement of the pod could go now.

        ``leaving``: the pod itself is being evicted, so topology spread forgets it on its source, while its requests, ports and affinity
        stay there. The source is judged like any other node. The array is the caller's own.
        """
        replacement = self._replacement(pod, leaving)
        mask = self._static_mask(replacement).copy()
        for each in all_filters():
            if not each.static and mask.any():
                mask &= each.passes(replacement)
        return mask

    def why_not(self, pod: int, node: int, *, leaving: bool = True) -> str:
        """What the first filter that rejects the node says, with its numbers; empty when the node is allowed."""
        replacement = self._replacement(pod, leaving)
        for each in all_filters():
            if not self._whole(each.passes(replacement))[node]:
                return each.reason(replacement, node)
        return ""

    def tally(self, pod: int, *, leaving: bool = True) -> Mapping[str, int]:
        """What rejects the nodes, each counted under its first rejection: filter name, or name of the scarce resource -> nodes.

        Most frequent first, then by name. Nodes that are allowed are not in it.
        """
        replacement = self._replacement(pod, leaving)
        left = np.ones(len(self._state.nodes.names), dtype=np.bool_)
        counts: dict[str, int] = {}
        for each in all_filters():
            rejected = left & ~self._whole(each.passes(replacement))
            if rejected.any():
                for name, count in _parts(each, replacement, rejected).items():
                    counts[name] = counts.get(name, 0) + count
                left &= ~rejected
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def _replacement(self, pod: int, leaving: bool) -> Replacement:
        return Replacement(pod, self._placements, leaving, self._steered)

    def _static_mask(self, replacement: Replacement) -> BoolArray:
        row = int(self._state.pods.constraints[replacement.pod])
        mask = self._static.get(row)
        if mask is None:
            mask = self._whole(True)
            for each in all_filters():
                if each.static:
                    mask &= each.passes(replacement)
            frozen(mask)
            self._static[row] = mask
        return mask

    def _whole(self, verdict: Verdict) -> BoolArray:
        return np.ones(len(self._state.nodes.names), dtype=np.bool_) & verdict


def _parts(each: Filter, replacement: Replacement, rejected: BoolArray) -> Mapping[str, int]:
    return each.parts(replacement, rejected) if each.parts is not None else {each.name: int(rejected.sum())}
