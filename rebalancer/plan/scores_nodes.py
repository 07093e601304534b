"""The two scores that look at the nodes themselves: TaintToleration (weight 3) and preferred node affinity (weight 2)."""

from __future__ import annotations

import numpy as np

from rebalancer.plan.replacement import Replacement
from rebalancer.plan.tolerations import HOT_TAINT, soft_untolerated
from rebalancer.state.arrays import BoolArray, IntArray


def taint_toleration(replacement: Replacement, rows: IntArray, soft_tainted: BoolArray | None) -> IntArray:
    """(rows,) 0..100: fewer PreferNoSchedule taints that the pod does not tolerate score higher; 100 for all when nobody has any.

    ``soft_tainted``: (nodes,) nodes that will carry this project's hot taint then, whether they do in the state or not; None: as they do.
    """
    rules, tolerations = replacement.placements.rules, replacement.constraints.tolerations
    raw = rules.soft_taints(tolerations)[rows]
    if soft_tainted is not None and soft_untolerated((HOT_TAINT,), tolerations):
        raw = raw + soft_tainted[rows].astype(np.int64) - rules.carrying(HOT_TAINT.key, HOT_TAINT.effect)[rows]
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
