"""The two scores that look at the nodes themselves: TaintToleration (weight 3) and preferred node affinity (weight 2)."""

from __future__ import annotations

import numpy as np

from rebalancer.plan.grades import SOFT_TAINTS
from rebalancer.plan.replacement import Replacement
from rebalancer.plan.tolerations import soft_untolerated
from rebalancer.state.arrays import BoolArray, IntArray


def taint_toleration(replacement: Replacement, rows: IntArray, own_taints: BoolArray | None) -> IntArray:
    """(rows,) 0..100: fewer PreferNoSchedule taints that the pod does not tolerate score higher; 100 for all when nobody has any.

    ``own_taints``: (nodes, `SOFT_TAINTS`) who will carry which of this project's taints then, whatever is in the state; None: as it is
    there. Each counts for itself, since a pod may tolerate one and not the other.
    """
    rules, tolerations = replacement.placements.rules, replacement.constraints.tolerations
    raw = rules.soft_taints(tolerations, own=own_taints is None)[rows]
    if own_taints is not None:
        felt = np.array([soft_untolerated((taint,), tolerations) for taint in SOFT_TAINTS], dtype=np.int64)
        raw = raw + own_taints[rows].astype(np.int64) @ felt
    most = int(raw.max(initial=0))
    return 100 - 100 * raw // most if most else np.full(len(rows), 100, dtype=np.int64)


def node_affinity(replacement: Replacement, rows: IntArray) -> IntArray:
    """(rows,) 0..100: the summed weight of the preferred terms that match, as a share of the best node's."""
    raw = np.zeros(len(rows), dtype=np.int64)
    for weight, term in replacement.constraints.preferred_nodes:
        if weight and (term.expressions or term.fields):
            raw += weight * replacement.placements.rules.term_mask((term,))[rows]
    most = int(raw.max(initial=0))
    return 100 * raw // most if most else raw
