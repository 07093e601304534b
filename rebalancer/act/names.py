"""The keys that this project owns in the cluster, and the people's names of what it writes."""

from __future__ import annotations

from rebalancer.kube.patches import SoftTaint
from rebalancer.plan.tolerations import HOT_TAINT

SOFT_TAINT = SoftTaint(key=HOT_TAINT.key, value=HOT_TAINT.value)
CANDIDATE = "rebalancer.dev/candidate"
REASON_MOVED = "Rebalanced"
REASON_REFUSED = "RebalanceRefused"
REASON_FAILED = "RebalanceFailed"
