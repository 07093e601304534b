"""Soft topology spread (weight 2): the pod's own ScheduleAnyway constraints, or the scheduler's defaults for a pod without any.

The defaults spread over hostname (maxSkew 3) and zone (maxSkew 5), counting the pods that the Services and the controller of the pod
select. Services are not read; the pods of the same direct controller stand in for both, which differs during a rollout and for Services
over several workloads. Bare pods and pods of Jobs (every root kind that ends in Job) have no such controller and are not spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rebalancer.plan.node_rules import Domains
from rebalancer.plan.replacement import Replacement
from rebalancer.plan.spread import counted_nodes, having_all_keys, included, without_itself
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.scheduling import SpreadConstraint

_HOSTNAME = "kubernetes.io/hostname"
_DEFAULTS = (
    SpreadConstraint(topology_key=_HOSTNAME, max_skew=3, hard=False, selector=None),
    SpreadConstraint(topology_key="topology.kubernetes.io/zone", max_skew=5, hard=False, selector=None),
)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A constraint with the nodes of the pods it counts, one entry a pod, and the nodes that take part."""

    constraint: SpreadConstraint
    domains: Domains
    nodes: IntArray
    part: BoolArray

    def sums(self, rows: IntArray, size: int) -> FloatArray:
        """(rows,) what the constraint adds to each row; nothing where the node lacks the key."""
        of = self.domains.of[rows]
        if self.constraint.topology_key == _HOSTNAME:
            pods = np.bincount(self.nodes, minlength=len(self.part))[rows]
        else:
            pods = self.domains.count(self.nodes[self.part[self.nodes]])[of]
        return np.where(of > 0, pods * np.log(size + 2) + (self.constraint.max_skew - 1), 0.0)


def topology_spread(replacement: Replacement, rows: IntArray) -> IntArray:
    """(rows,) 0..100: fewer pods in a node's domains score higher. A node that lacks a key of the pod's own constraints scores 0."""
    own = tuple(constraint for constraint in replacement.constraints.spread if not constraint.hard)
    keyed = having_all_keys(replacement, own)
    counted = tuple(_own(replacement, own, keyed) if replacement.constraints.spread else _defaults(replacement))
    if not counted or not len(rows):
        return np.zeros(len(rows), dtype=np.int64)
    scored = rows[keyed[rows]]
    raw = np.zeros(len(scored))
    for each in counted:
        hostname = each.constraint.topology_key == _HOSTNAME
        size = len(scored) if hostname else int(np.count_nonzero(np.bincount(each.domains.of[scored])))
        raw += each.sums(scored, size)
    scores = np.zeros(len(rows), dtype=np.int64)
    scores[keyed[rows]] = _normalised(_half_up(raw))
    return scores


def _own(replacement: Replacement, soft: tuple[SpreadConstraint, ...], keyed: BoolArray) -> Iterator[_Counted]:
    for constraint in soft:
        domains = replacement.placements.rules.domains(constraint.topology_key)
        yield _Counted(constraint, domains, counted_nodes(replacement, constraint), keyed & included(replacement, constraint))


def _defaults(replacement: Replacement) -> Iterator[_Counted]:
    state = replacement.state
    controller = int(state.pods.controller[replacement.pod])
    workload = state.workload_of(replacement.pod)
    if controller < 0 or (workload is not None and workload.kind.endswith("Job")):
        return
    nodes = without_itself(replacement, replacement.placements.neighbours.of_controller(controller))
    for constraint in _DEFAULTS:
        domains = replacement.placements.rules.domains(constraint.topology_key)
        yield _Counted(constraint, domains, nodes, included(replacement, constraint))


def _half_up(raw: FloatArray) -> IntArray:
    whole = np.floor(raw)
    return (whole + (raw - whole >= 0.5)).astype(np.int64)


def _normalised(raw: IntArray) -> IntArray:
    most = int(raw.max(initial=0))
    if not most:
        return np.full(len(raw), 100, dtype=np.int64)
    return 100 * (most + int(raw.min()) - raw) // most
