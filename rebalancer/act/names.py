"""The keys that this project owns in the cluster, and the people's names of what it writes."""

from __future__ import annotations

from rebalancer.kube.patches import SoftTaint
from rebalancer.plan.grades import SOFT_TAINTS as PLANNED_TAINTS

SOFT_TAINTS = tuple(SoftTaint(key=taint.key, value=taint.value) for taint in PLANNED_TAINTS)
"""One for each grade of warmth, as `plan.grades` says who carries which."""
CANDIDATE = "rebalancer.dev/candidate"
REASON_MOVED = "Rebalanced"
REASON_REFUSED = "RebalanceRefused"
REASON_FAILED = "RebalanceFailed"
