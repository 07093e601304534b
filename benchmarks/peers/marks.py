"""The marks of a policy as the peers take them: absolute, by signal, one pool for the cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.policy.model import RebalancePolicy
from rebalancer.state.arrays import FloatArray
from rebalancer.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class PeerMarks:
    """signal -> percent of capacity, for each of the three marks."""

    low: dict[str, float]
    target: dict[str, float]
    high: dict[str, float]

    def shares(self, state: ClusterState, marks: dict[str, float]) -> FloatArray:
        """(signals,) ratios; NaN where the policy does not judge the signal."""
        return np.array([marks.get(signal.name, np.nan) / 100 for signal in state.signals])


def marks_of(policy: RebalancePolicy) -> PeerMarks:
    """Those of the first pool."""
    signals = policy.spec.pools[0].signals
    return PeerMarks(
        low={name: float(threshold.low) for name, threshold in signals.items()},
        target={name: float(threshold.target) for name, threshold in signals.items()},
        high={name: float(threshold.high) for name, threshold in signals.items()},
    )
