"""The published algorithms of other reschedulers as strategies of the fast-forward world, one file a peer.

Each is written from its documented behaviour, not from its code, and says in its docstring which behaviour that is and what is left out.
They get the marks of the policy that this project gets, the same world, the same late metrics and the same scheduler.
"""

from __future__ import annotations

from benchmarks.peers.low_node_load import LOW_NODE_LOAD
from benchmarks.peers.low_node_utilization import LOW_NODE_UTILIZATION, LOW_NODE_UTILIZATION_1, LOW_NODE_UTILIZATION_5
from benchmarks.peers.reduce_high_load_node import REDUCE_HIGH_LOAD_NODE

__all__ = ["LOW_NODE_LOAD", "LOW_NODE_UTILIZATION", "LOW_NODE_UTILIZATION_1", "LOW_NODE_UTILIZATION_5", "REDUCE_HIGH_LOAD_NODE"]
