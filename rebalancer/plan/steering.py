"""Which nodes repel new pods while a plan is carried out, so that replacements land where there is room for their load.

kube-scheduler sees requests alone and would put most replacements on nodes that are nearly as warm as the one they left. A soft taint costs
a node more than its other scores differ by, so what is tainted decides where pods land: in a pool with a hot node that is not only what is
above ``target``, but all that is above a share of it on a signal that is hot there. The warmest come first; a part of every pool is always
left untainted, or the taints would tell nodes apart no more than before, and a large pool gets no more than can be patched in a moment.
"""

from __future__ import annotations

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.plan.tolerations import HOT_TAINT, SOFT
from rebalancer.policy.model import Steering
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState

LEFT_ALONE = 0.2
"""Of the known nodes of a pool: how many the wider taint leaves untainted at the least."""
WIDEST = 200
"""Nodes of a pool that are tainted at the most, besides those above their target."""


def soft_tainted(findings: Findings, steering: Steering) -> BoolArray:
    """(nodes,) nodes that carry the taint while the plan is carried out: warm ones of pools that have a hot node.

    None in a pool where every known node is above its target: if all repel, none does. Dry run predicts with these, as evict mode would
    act.
    """
    marked = np.zeros(len(findings.node_class), dtype=np.bool_)
    if not steering.soft_taint:
        return marked
    above = _above_target(findings)
    for pool in range(len(findings.pools)):
        here = findings.pool == pool
        hot = here & (findings.node_class == NodeClass.HOT)
        if hot.any() and above[here].any():
            marked |= here & (above | _wider(findings, steering, here, hot))
    return marked


def warm_nodes(findings: Findings, steering: Steering) -> BoolArray:
    """(nodes,) nodes that keep a taint of ours that they carry: above target, or as `soft_tainted` would have it."""
    if not steering.soft_taint:
        return np.zeros(len(findings.node_class), dtype=np.bool_)
    return np.asarray(_above_target(findings) | soft_tainted(findings, steering), dtype=np.bool_)


def carrying_taints(state: ClusterState) -> BoolArray:
    """(nodes,) nodes that carry our soft taint now."""
    taints = state.nodes.taints
    return np.array([any(taint.key == HOT_TAINT.key and taint.effect == SOFT for taint in each) for each in taints], dtype=np.bool_)


def _above_target(findings: Findings) -> BoolArray:
    """(nodes,) known nodes above ``target`` on a judged signal, but for pools where every known node is."""
    with np.errstate(invalid="ignore"):
        above: BoolArray = np.asarray((findings.judged & (findings.reach > findings.target)).any(axis=1), dtype=np.bool_)
    known = findings.node_class != NodeClass.UNKNOWN
    warm = np.zeros(len(known), dtype=np.bool_)
    for pool in range(len(findings.pools)):
        here = (findings.pool == pool) & known
        if not above[here].all():
            warm |= here & above
    return warm


def _wider(findings: Findings, steering: Steering, here: BoolArray, hot: BoolArray) -> BoolArray:
    """(nodes,) of the pool ``here``, the warmest known nodes above the share of target, on signals that a node is hot on."""
    signals = findings.confirmed[hot].any(axis=0)
    known = here & (findings.node_class != NodeClass.UNKNOWN)
    with np.errstate(invalid="ignore", divide="ignore"):
        warmth = np.where(findings.judged & signals, findings.reach / np.maximum(findings.target, 1e-9), -np.inf).max(axis=1)
    warmth = np.where(known & ~np.isnan(warmth), warmth, -np.inf)
    most = min(WIDEST, int((1 - LEFT_ALONE) * known.sum()))
    ranked = np.argsort(-warmth, kind="stable")[:most]
    wider = np.zeros(len(known), dtype=np.bool_)
    wider[ranked] = warmth[ranked] > steering.taint_above / 100
    return wider
