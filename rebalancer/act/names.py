"""The keys that this project owns in the cluster, and the people's names of what it writes."""

from __future__ import annotations

from rebalancer.state.scheduling import Taint

HOT_TAINT_KEY = "rebalancer.dev/hot"
HOT_TAINT = Taint(key=HOT_TAINT_KEY, value="true", effect="PreferNoSchedule")
CANDIDATE = "rebalancer.dev/candidate"
REASON_MOVED = "Rebalanced"
REASON_REFUSED = "RebalanceRefused"
REASON_FAILED = "RebalanceFailed"
