"""The filters again, one node and one pod at a time, as slowly and plainly as the rules read. For comparison only.

``seen`` is what the scheduler sees: (pod row, node row, terminating) of every pod that occupies a node.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalancer.plan.replacement import NAMED
from rebalancer.plan.tolerations import tolerates
from rebalancer.state.cluster import ClusterState
from rebalancer.state.matching import matches, requirement_holds
from rebalancer.state.scheduling import Constraints, NodeTerm, PodTerm, SpreadConstraint, Taint
from rebalancer.state.tables import Phase

Seen = list[tuple[int, int, bool]]


def seen_pods(state: ClusterState, *, leaving: int | None, booked: Sequence[tuple[int, int]]) -> Seen:
    """The pods of the state, the leaving and the booked ones terminating, and the replacements of the booked ones.

    A leaving pod of a StatefulSet is gone, not terminating.
    """
    moved = {pod for pod, _ in booked}
    evicted = moved | ({leaving} if leaving is not None else set())
    gone = {pod for pod in evicted - moved if NAMED in labels_of(state, pod)}
    here = [
        (row, int(state.pods.node[row]), bool(state.pods.terminating[row]) or row in evicted)
        for row in range(len(state.pods.names))
        if row not in gone and state.pods.node[row] >= 0 and state.pods.phase[row] not in (Phase.SUCCEEDED, Phase.FAILED)
    ]
    return [*here, *((pod, node, False) for pod, node in booked)]


def allowed(state: ClusterState, pod: int, node: int, seen: Seen) -> bool:
    constraints = state.constraints[int(state.pods.constraints[pod])]
    return (
        _open(state, constraints, node)
        and _selected(state, constraints, node)
        and _ports(state, constraints, node, seen)
        and _resources(state, pod, node, seen)
        and _spread(state, pod, constraints, node, seen)
        and _affinity(state, pod, constraints, node, seen)
        and _anti_affinity(state, pod, constraints, node, seen)
        and _held_anti_affinity(state, pod, node, seen)
    )


def constraints_of(state: ClusterState, pod: int) -> Constraints:
    return state.constraints[int(state.pods.constraints[pod])]


def _tolerated(constraints: Constraints, taints: Sequence[Taint]) -> bool:
    hard = [taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(tolerates(toleration, taint) for toleration in constraints.tolerations) for taint in hard)


def _open(state: ClusterState, constraints: Constraints, node: int) -> bool:
    cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if state.nodes.unschedulable[node] and not any(tolerates(toleration, cordon) for toleration in constraints.tolerations):
        return False
    return bool(state.nodes.ready[node]) and _tolerated(constraints, state.nodes.taints[node])


def _selected(state: ClusterState, constraints: Constraints, node: int) -> bool:
    labels = state.nodes.labels[node]
    if any(labels.get(key) != value for key, value in constraints.node_selector):
        return False
    return constraints.node_terms is None or any(_term(term, labels) for term in constraints.node_terms)


def _term(term: NodeTerm, labels: dict[str, str]) -> bool:
    return bool(term.expressions) and all(requirement_holds(r, labels.get(r.key)) for r in term.expressions)


def _ports(state: ClusterState, constraints: Constraints, node: int, seen: Seen) -> bool:
    for other, where, _ in seen:
        for theirs in constraints_of(state, other).host_ports:
            for mine in constraints.host_ports:
                same = (mine.port, mine.protocol) == (theirs.port, theirs.protocol)
                if where == node and same and (mine.ip == theirs.ip or "0.0.0.0" in (mine.ip, theirs.ip)):
                    return False
    return True


def _resources(state: ClusterState, pod: int, node: int, seen: Seen) -> bool:
    for column in range(len(state.resources)):
        asked = round(state.pods.incoming_request[pod, column] * 1000)
        used = sum(round(state.pods.request[other, column] * 1000) for other, where, _ in seen if where == node)
        if asked > 0 and asked > round(state.nodes.allocatable[node, column] * 1000) - used:
            return False
    return True


def _spread(state: ClusterState, pod: int, constraints: Constraints, node: int, seen: Seen) -> bool:
    hard = [constraint for constraint in constraints.spread if constraint.hard]
    return all(_one_spread(state, pod, constraints, constraint, [c.topology_key for c in hard], node, seen) for constraint in hard)


def _one_spread(
    state: ClusterState, pod: int, constraints: Constraints, spread: SpreadConstraint, keys: list[str], node: int, seen: Seen
) -> bool:
    key, labels = spread.topology_key, state.nodes.labels
    if key not in labels[node]:
        return False
    counts: dict[str, int] = {}
    for row in range(len(state.nodes.names)):
        if not all(each in labels[row] for each in keys):
            continue
        if not takes_part(state, constraints, spread, row):
            continue
        counts.setdefault(labels[row][key], 0)
        if spread.selector is not None and spread.selector.requirements:
            counts[labels[row][key]] += sum(
                where == row
                and not terminating
                and state.pods.namespaces[other] == state.pods.namespaces[pod]
                and matches(spread.selector, labels_of(state, other).get)
                for other, where, terminating in seen
            )
    least = min(counts.values()) if len(counts) >= spread.min_domains and counts else 0
    itself = int(matches(spread.selector, labels_of(state, pod).get))
    return counts.get(labels[node][key], 0) + itself - least <= spread.max_skew


def takes_part(state: ClusterState, constraints: Constraints, spread: SpreadConstraint, node: int) -> bool:
    """Whether the inclusion policies let the node be counted."""
    if spread.honor_node_affinity and not _selected(state, constraints, node):
        return False
    return not spread.honor_node_taints or _tolerated(constraints, state.nodes.taints[node])


def labels_of(state: ClusterState, pod: int) -> dict[str, str]:
    return state.label_sets[int(state.pods.labels[pod])].as_dict()


def means(state: ClusterState, term: PodTerm, owner: int, other: int) -> bool:
    """Whether a term of the owner matches the other pod."""
    namespace = state.pods.namespaces[other]
    if not term.namespaces and term.namespace_selector is None:
        inside = namespace == state.pods.namespaces[owner]
    else:
        inside = namespace in term.namespaces or matches(term.namespace_selector, state.namespaces[namespace].get)
    return inside and matches(term.selector, labels_of(state, other).get)


def together(state: ClusterState, key: str, one: int, other: int) -> bool:
    labels = state.nodes.labels
    return key in labels[one] and labels[one][key] == labels[other].get(key)


def _affinity(state: ClusterState, pod: int, constraints: Constraints, node: int, seen: Seen) -> bool:
    terms = constraints.affinity
    if not terms:
        return True
    if not all(term.topology_key in state.nodes.labels[node] for term in terms):
        return False
    crowd = [where for other, where, _ in seen if all(means(state, term, pod, other) for term in terms)]
    if all(any(together(state, term.topology_key, node, where) for where in crowd) for term in terms):
        return True
    known = any(term.topology_key in state.nodes.labels[where] for where in crowd for term in terms)
    return not known and all(means(state, term, pod, pod) for term in terms)


def _anti_affinity(state: ClusterState, pod: int, constraints: Constraints, node: int, seen: Seen) -> bool:
    return not any(
        means(state, term, pod, other) and together(state, term.topology_key, node, where)
        for term in constraints.anti_affinity
        for other, where, _ in seen
    )


def _held_anti_affinity(state: ClusterState, pod: int, node: int, seen: Seen) -> bool:
    return not any(
        means(state, term, other, pod) and together(state, term.topology_key, node, where)
        for other, where, _ in seen
        for term in constraints_of(state, other).anti_affinity
    )
