"""Which nodes repel new pods while a plan is carried out, so that replacements land where there is room for their load.

kube-scheduler sees requests alone and would put most replacements on nodes that are nearly as warm as the one they left. A soft taint costs
a node more than its other scores differ by, so what is tainted decides where pods land: in a pool with a hot node that is not only what is
above ``target``, but all that is above a share of it on a signal that is hot there. The warmest come first; a part of every pool is always
left untainted, or the taints would tell nodes apart no more than before, and a large pool gets no more than can be patched in a moment.

With a second grade (``steering.grades``) the hot ones of them carry two taints and the others one, so that a replacement that finds no cool
node goes to a warm one rather than to a hot one. It has its price: where a pod may go to a hot node, a warm one repels half as much.
"""

from __future__ import annotations

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.plan.grades import HOT, SOFT_TAINTS, WARM, carried
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


def graded(findings: Findings, steering: Steering, warm: BoolArray) -> BoolArray:
    """(nodes, `grades.SOFT_TAINTS`) which of our taints is right for each of the ``warm`` nodes; none for the others.

    One grade: all carry the same one. Two: every warm node carries ``warm``, those above ``high`` on a judged signal ``hot`` as well.
    """
    right = np.zeros((len(warm), len(SOFT_TAINTS)), dtype=np.bool_)
    if steering.grades == 1:
        right[:, HOT] = warm
        return right
    with np.errstate(invalid="ignore"):
        over = (findings.judged & (findings.reach > findings.high)).any(axis=1)
    right[:, WARM] = warm
    right[:, HOT] = warm & over
    return right


def taints_then(state: ClusterState, findings: Findings, *, wanted: BoolArray, right: BoolArray, failed: BoolArray) -> BoolArray:
    """(nodes, `grades.SOFT_TAINTS`) who carries which of our taints once a plan with moves is prepared; `act.tainting` makes it so.

    ``wanted`` (nodes,) nodes are tainted, and what a node carries that is warm still is set right. A node that no pool claims keeps its
    own: they may be another controller's. ``failed`` (nodes,): nodes that could not be changed and are as they are.
    """
    now = carried(state.nodes.taints)
    as_now = failed | (~wanted & (findings.pool < 0))
    set_right = wanted | now.any(axis=1)
    return np.where(as_now[:, None], now, right & set_right[:, None])


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
