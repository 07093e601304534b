"""Where a pod may go: the filters of kube-scheduler's default profile, each as a mask over all nodes.

A second, independent reading of the same rules that the planner follows: that the two agree is a test, and would be worth nothing if
they shared their code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.node_match import matches_node_selection, term_matches, tolerated
from rebalancer.simulate.scheduling_snapshot import Bools, Demand, Snapshot, term_selects
from rebalancer.simulate.selectors import matches

_CORDON = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def feasible(snapshot: Snapshot, pod: Json, demand: Demand) -> Bools:
    """(nodes,) True where every filter lets the pod in."""
    spec = pod["spec"]
    mask = node_filter(snapshot, spec) & taint_filter(snapshot, spec) & fit_filter(snapshot, demand)
    if mask.any():
        mask &= port_filter(snapshot, spec)
    if mask.any() and spec.get("volumes"):
        mask &= volume_filter(snapshot, pod)
    if mask.any() and spec.get("topologySpreadConstraints"):
        mask &= spread_filter(snapshot, pod)
    if mask.any():
        mask &= pod_affinity_filter(snapshot, pod)
    return mask


def node_filter(snapshot: Snapshot, spec: Json) -> Bools:
    """NodeName, nodeSelector and required node affinity."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    if not spec.get("nodeSelector") and "requiredDuringSchedulingIgnoredDuringExecution" not in affinity:
        return np.ones(snapshot.size, dtype=bool)
    return np.fromiter(
        (matches_node_selection(spec, labels, name) for labels, name in zip(snapshot.labels, snapshot.names, strict=True)),
        dtype=bool,
        count=snapshot.size,
    )


def taint_filter(snapshot: Snapshot, spec: Json) -> Bools:
    """NodeUnschedulable and TaintToleration (NoSchedule, NoExecute)."""
    tolerations = spec.get("tolerations") or ()
    mask = np.fromiter(
        (
            not taints or all(tolerated(taint, tolerations) for taint in taints if taint["effect"] in ("NoSchedule", "NoExecute"))
            for taints in snapshot.taints
        ),
        dtype=bool,
        count=snapshot.size,
    )
    if snapshot.unschedulable.any() and not tolerated(_CORDON, tolerations):
        mask &= ~snapshot.unschedulable
    return mask


def fit_filter(snapshot: Snapshot, demand: Demand) -> Bools:
    """NodeResourcesFit: the number of pods, and every requested resource above 0."""
    mask: Bools = snapshot.pod_count + 1 <= snapshot.resource(snapshot.allocatable, "pods")
    for name, amount in demand.request.items():
        if amount > 0:
            mask &= amount <= snapshot.resource(snapshot.allocatable, name) - snapshot.resource(snapshot.requested, name)
    return mask


def _ports(spec: Json) -> list[tuple[str, str, int]]:
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(port["hostPort"]))  # noqa: S104 - the wildcard of the rule
        for container in [*(spec.get("containers") or ()), *sidecars]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def _clash(left: tuple[str, str, int], right: tuple[str, str, int]) -> bool:
    any_address = "0.0.0.0"  # noqa: S104 - the wildcard of the rule
    return left[1:] == right[1:] and (left[0] == right[0] or any_address in (left[0], right[0]))


def port_filter(snapshot: Snapshot, spec: Json) -> Bools:
    mask = np.ones(snapshot.size, dtype=bool)
    wanted = _ports(spec)
    if wanted:
        for placed in snapshot.with_ports:
            if mask[placed.node] and any(_clash(mine, theirs) for theirs in _ports(placed.pod["spec"]) for mine in wanted):
                mask[placed.node] = False
    return mask


def volume_filter(snapshot: Snapshot, pod: Json) -> Bools:
    """Bound claims: the node affinity of their volumes. Missing and unbound claims: nowhere."""
    mask = np.ones(snapshot.size, dtype=bool)
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" not in volume:
            continue
        claim = snapshot.find("persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"], pod["metadata"]["namespace"])
        name = (claim or {}).get("spec", {}).get("volumeName", "")
        bound = snapshot.find("persistentvolumes", name, "") if name else None
        if bound is None:
            return np.zeros(snapshot.size, dtype=bool)
        terms = ((bound["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
        if terms is not None:
            for row, (labels, node) in enumerate(zip(snapshot.labels, snapshot.names, strict=True)):
                mask[row] &= any(term_matches(term, labels, node) for term in terms)
    return mask


def spread_selector(constraint: Json, pod: Json) -> Json | None:
    """The constraint's selector plus the pod's own values of ``matchLabelKeys``."""
    selector: Json | None = constraint.get("labelSelector")
    labels = pod["metadata"].get("labels") or {}
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in labels]
    if selector is None or not keys:
        return selector
    extra = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *extra]}


def takes_part(snapshot: Snapshot, constraints: Iterable[Json], constraint: Json, spec: Json) -> Bools:
    """Nodes that count for a constraint: all topology keys present, and the inclusion policies passed."""
    keys = [c["topologyKey"] for c in constraints]
    mask = np.fromiter((all(key in labels for key in keys) for labels in snapshot.labels), dtype=bool, count=snapshot.size)
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor":
        mask &= node_filter(snapshot, spec)
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor":
        mask &= taint_filter(snapshot, spec)
    return mask


def spread_filter(snapshot: Snapshot, pod: Json) -> Bools:
    """PodTopologySpread with DoNotSchedule."""
    mask = np.ones(snapshot.size, dtype=bool)
    hard = [c for c in pod["spec"].get("topologySpreadConstraints") or () if c.get("whenUnsatisfiable") == "DoNotSchedule"]
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    for constraint in hard:
        selector = spread_selector(constraint, pod)
        if selector == {}:  # an empty selector counts nothing
            selector = None
        domain = snapshot.domain(constraint["topologyKey"])
        counted = takes_part(snapshot, hard, constraint, pod["spec"])
        counts: Counter[str] = Counter({str(domain[row]): 0 for row in np.flatnonzero(counted)})
        for placed in snapshot.in_namespace.get(namespace, ()):
            if counted[placed.node] and not placed.terminating and matches(selector, placed.labels):
                counts[str(domain[placed.node])] += 1
        fewest = 0 if len(counts) < int(constraint.get("minDomains") or 1) or not counts else min(counts.values())
        itself = 1 if matches(selector, labels) else 0
        for row, value in enumerate(domain):
            if value is None or counts.get(value, 0) + itself - fewest > int(constraint["maxSkew"]):
                mask[row] = False
    return mask


def required_terms(pod: Json, kind: str) -> list[Json]:
    """The required terms of ``podAffinity`` or ``podAntiAffinity``."""
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _nodes_in(snapshot: Snapshot, key: str, values: set[str]) -> Bools:
    return np.fromiter((value in values for value in snapshot.domain(key)), dtype=bool, count=snapshot.size)


def pod_affinity_filter(snapshot: Snapshot, pod: Json) -> Bools:
    """InterPodAffinity: required terms of the pod, and required anti-affinity of the pods that are there."""
    namespace, labels, known = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}, snapshot.namespaces
    mask = _affinity(snapshot, pod, namespace, labels)
    for term in required_terms(pod, "podAntiAffinity"):
        domain = snapshot.domain(term["topologyKey"])
        taken = {
            value
            for placed in snapshot.placed
            if (value := domain[placed.node]) is not None and term_selects(term, namespace, placed.namespace, placed.labels, known)
        }
        mask &= ~_nodes_in(snapshot, term["topologyKey"], taken)
    for placed in snapshot.holders:
        for term in required_terms(placed.pod, "podAntiAffinity"):
            value = snapshot.domain(term["topologyKey"])[placed.node]
            if value is not None and term_selects(term, placed.namespace, namespace, labels, known):
                mask &= ~_nodes_in(snapshot, term["topologyKey"], {value})
    return mask


def _affinity(snapshot: Snapshot, pod: Json, namespace: str, labels: dict[str, str]) -> Bools:
    mask = np.ones(snapshot.size, dtype=bool)
    terms = required_terms(pod, "podAffinity")
    if not terms:
        return mask
    known = snapshot.namespaces
    partners = [p for p in snapshot.placed if all(term_selects(t, namespace, p.namespace, p.labels, known) for t in terms)]
    keyed = [p for p in partners if any(snapshot.domain(t["topologyKey"])[p.node] is not None for t in terms)]
    first = not keyed and all(term_selects(t, namespace, namespace, labels, known) for t in terms)
    for term in terms:
        domain = snapshot.domain(term["topologyKey"])
        values = {value for p in partners if (value := domain[p.node]) is not None}
        if first:
            mask &= np.fromiter((value is not None for value in domain), dtype=bool, count=snapshot.size)
        else:
            mask &= _nodes_in(snapshot, term["topologyKey"], values)
    return mask
