"""Which pods are measured on every signal that their node is judged by: worked out once a scene.

A signal that the node's pool does not judge may be unknown. Where no pool claims the node, or the pod has none, every signal that any pool
judges is asked for: unknown is not zero, and not "does not matter" either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalancer.detect.pools import assign_pools
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import BoolArray
from rebalancer.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Measured:
    unknown: BoolArray
    """(pods, signals): judged where the pod is, and its usage is NaN."""
    estimated: BoolArray
    """(pods, signals): judged where the pod is, and its usage is only an estimate."""
    fully: BoolArray
    """(pods,): neither on any signal."""
    absent: tuple[str, ...]
    """Signals that the policy judges and the state does not have at all."""


def judged_by_policy(state: ClusterState, spec: Spec) -> BoolArray:
    """(nodes, signals): the node's pool judges the signal. Raises PolicyError when two pools claim one node."""
    pool = assign_pools(state, spec.pools)
    of_pool = [[signal.name in p.signals for signal in state.signals] for p in spec.pools]
    of_none = [False] * len(state.signals)
    table: BoolArray = np.array([*of_pool, of_none], dtype=np.bool_)
    judged: BoolArray = table[pool]  # pool -1 picks the last row
    scoped = np.array([signal.scoped for signal in state.signals], dtype=np.bool_)
    return np.logical_and(judged, ~(scoped[None, :] & np.isnan(state.nodes.capacity)))


def measured_pods(state: ClusterState, spec: Spec, judged: BoolArray) -> Measured:
    """Compare every pod with what its node is judged by, ``judged`` (nodes, signals)."""
    of_any = np.array([signal.name in spec.judged_signals for signal in state.signals], dtype=np.bool_)
    silent: BoolArray = np.logical_not(judged.any(axis=1, keepdims=True))
    asked = np.where(silent, of_any[None, :], judged)
    wanted: BoolArray = np.vstack([asked, of_any[None, :]])[state.pods.node]  # node -1 picks the last row
    unknown: BoolArray = np.logical_and(wanted, ~np.isfinite(state.pods.usage))
    estimated: BoolArray = np.logical_and(wanted, state.pods.estimated) & ~unknown
    lacking: BoolArray = np.logical_or(unknown, estimated)
    return Measured(
        unknown=unknown,
        estimated=estimated,
        fully=np.logical_not(lacking.any(axis=1)),
        absent=tuple(name for name in spec.judged_signals if name not in state.signal_index),
    )
