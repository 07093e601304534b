"""Node selection and tolerations on raw objects, as kube-scheduler evaluates them. Shared by the scheduler and the DaemonSet controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rebalancer.simulate.kinds import Json
from rebalancer.simulate.selectors import expression_matches


def tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    """True when one toleration matches in effect, key and value; the operators Gt and Lt match nothing."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and toleration.get("value", "") == taint.get("value", "")


def term_matches(term: Json, labels: Mapping[str, str], name: str) -> bool:
    """One nodeSelectorTerm; one with neither expressions nor fields matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(expression_matches(e, labels) for e in expressions) and all(expression_matches(f, {"metadata.name": name}) for f in fields)


def matches_node_selection(spec: Json, labels: Mapping[str, str], name: str) -> bool:
    """``nodeSelector`` and required node affinity of a pod spec against one node."""
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_matches(term, labels, name) for term in required.get("nodeSelectorTerms") or ())
