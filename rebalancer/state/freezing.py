"""Makes every array of a state read-only, once, where a state comes into being: from the cluster or from a file."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from rebalancer.state.arrays import frozen
from rebalancer.state.cluster import ClusterState


def freeze(state: ClusterState) -> ClusterState:
    """The same state; a decision that tries to change it fails instead of changing what the next one sees."""
    for table in (
        state.nodes,
        state.pods,
        state.workloads,
        state.gpus,
        state.gpus.devices,
        state.gpus.held,
        state.gpus.use,
        state.gpus.held_use,
        state.gangs,
    ):
        for column in fields(table):
            value = getattr(table, column.name)
            if isinstance(value, np.ndarray):
                frozen(value)
    if state.yesterday is not None:
        frozen(state.yesterday.ahead_s)
        frozen(state.yesterday.load)
    return state
