"""Which pods of a hot node to try first: the smallest set that covers the excess.

One pod that covers it alone beats two, the smallest such pod beats a bigger one; where none covers it, the pair with the least total that
does; where no pair does, the biggest pod first. Pods that are alike in size are told apart by what their eviction disturbs
(`plan.disturbance`), by priority, QoS and name, never by input order.
"""

from __future__ import annotations

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState

ALIKE = 0.02
"""Two pods whose sizes differ by less than this share of a node are alike; then the less important one goes first."""


def excess(load: FloatArray, target: FloatArray, hot: BoolArray) -> FloatArray:
    """(signals,) how far each hot signal of a node is over its target, ratio; 0 for the others."""
    with np.errstate(invalid="ignore"):
        return np.where(hot, np.maximum(0.0, load - target), 0.0)


def order(
    state: ClusterState, pods: IntArray, share: FloatArray, need: FloatArray, weight: FloatArray, disturbance: FloatArray
) -> list[int]:
    """Positions in ``pods``, the one to try first in front.

    ``share`` (pods, signals): what each pod takes of its node, ratio, known on every signal with need. ``need``, ``weight`` (signals,): the
    excess, and how much each signal counts. ``disturbance`` (pods,): what the eviction of each disturbs.
    """
    hot = need > 0
    if not len(pods) or not hot.any():
        return []
    parts, wanted, weights = share[:, hot], need[hot], np.maximum(weight[hot], 1e-9)
    size = parts @ weights
    covers = (parts >= wanted - 1e-12).all(axis=1)
    first_of_pair = np.full(len(pods), np.inf)
    if not covers.any() and len(pods) > 1:
        first_of_pair = _pairs(parts, wanted, size)
    rank = np.where(covers, 0, np.where(np.isfinite(first_of_pair), 1, 2))
    bulk = np.where(covers, size, np.where(np.isfinite(first_of_pair), first_of_pair, -size))

    disturbed = np.round(disturbance, 1)

    def key(position: int) -> tuple[int, float, float, int, int, float, float, str]:
        pod = int(pods[position])
        return (
            int(rank[position]),
            float(np.floor(bulk[position] / ALIKE + 1e-9)),
            float(disturbed[position]),
            int(state.pods.priority[pod]),
            int(state.pods.qos[pod]),
            float(bulk[position]),
            -float(size[position]),
            state.pod_name(pod),
        )

    return sorted(range(len(pods)), key=key)


def _pairs(parts: FloatArray, wanted: FloatArray, size: FloatArray) -> FloatArray:
    """(pods,) the total size of the smallest covering pair in which a pod is the bigger half; inf where there is none."""
    both = parts[:, None, :] + parts[None, :, :]
    covers: BoolArray = np.asarray((both >= wanted - 1e-12).all(axis=2), dtype=np.bool_)
    np.fill_diagonal(covers, val=False)
    bigger = size[:, None] >= size[None, :]
    total = np.where(covers & bigger, size[:, None] + size[None, :], np.inf)
    return np.asarray(total.min(axis=1), dtype=np.float64)
