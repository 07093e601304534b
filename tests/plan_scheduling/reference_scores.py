"""The two scores that count other pods, again one node and one pod at a time. For comparison only."""

from __future__ import annotations

import math

from rebalancer.state.cluster import ClusterState
from rebalancer.state.matching import matches
from rebalancer.state.scheduling import SpreadConstraint
from tests.plan_scheduling import reference
from tests.plan_scheduling.asking import HOSTNAME, ZONE


def inter_pod_affinity(state: ClusterState, pod: int, feasible: list[int], seen: reference.Seen) -> list[int]:
    own = reference.constraints_of(state, pod)
    raw = []
    for node in feasible:
        total = 0
        for other, where, _ in seen:
            theirs = reference.constraints_of(state, other)
            terms = [(weight, term, pod, other) for weight, term in own.preferred_affinity]
            terms += [(-weight, term, pod, other) for weight, term in own.preferred_anti_affinity]
            terms += [(1, term, other, pod) for term in theirs.affinity]
            terms += [(weight, term, other, pod) for weight, term in theirs.preferred_affinity]
            terms += [(-weight, term, other, pod) for weight, term in theirs.preferred_anti_affinity]
            for weight, term, owner, subject in terms:
                if reference.means(state, term, owner, subject) and reference.together(state, term.topology_key, node, where):
                    total += weight
        raw.append(total)
    span = max(raw, default=0) - min(raw, default=0)
    return [int(100.0 * ((each - min(raw)) / span)) if span else 0 for each in raw]


def topology_spread(state: ClusterState, pod: int, feasible: list[int], seen: reference.Seen) -> list[int]:
    constraints = reference.constraints_of(state, pod)
    own = bool(constraints.spread)
    soft = [each for each in constraints.spread if not each.hard]
    if not own:
        soft = [SpreadConstraint(HOSTNAME, 3, False, None), SpreadConstraint(ZONE, 5, False, None)]
    if not soft or (not own and state.pods.controller[pod] < 0):
        return [0] * len(feasible)
    keys = [each.topology_key for each in soft]
    complete = [all(key in labels for key in keys) for labels in state.nodes.labels]
    scored = [node for node in feasible if complete[node] or not own]
    raw: dict[int, int] = {}
    for node in scored:
        total = 0.0
        for each in soft:
            key, labels = each.topology_key, state.nodes.labels
            if key not in labels[node]:
                continue
            size = len(scored) if key == HOSTNAME else len({labels[row].get(key) for row in scored})
            count = 0
            for row in range(len(labels)):
                inside = row == node if key == HOSTNAME else labels[row].get(key) == labels[node][key]
                taking_part = (complete[row] or not own) and reference.takes_part(state, constraints, each, row)
                if inside and (key == HOSTNAME or taking_part):
                    count += sum(where == row and not dying and _counts(state, pod, each, other, own) for other, where, dying in seen)
            total += count * math.log(size + 2) + (each.max_skew - 1)
        raw[node] = math.floor(total) + (total - math.floor(total) >= 0.5)
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    return [0 if node not in raw else 100 if not most else 100 * (most + least - raw[node]) // most for node in feasible]


def _counts(state: ClusterState, pod: int, constraint: SpreadConstraint, other: int, own: bool) -> bool:
    if not own:
        return bool(state.pods.controller[other] == state.pods.controller[pod])
    if constraint.selector is None or not constraint.selector.requirements:
        return False
    return state.pods.namespaces[other] == state.pods.namespaces[pod] and matches(
        constraint.selector, reference.labels_of(state, other).get
    )
