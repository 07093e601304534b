"""Which node a pod prefers: the scores of kube-scheduler's default profile (Kubernetes 1.36), as points over the feasible nodes.

Normalisation is over the feasible nodes only, so a node's points depend on its companions. ImageLocality is 0 here: nodes list no
images. Shapes: ``rows`` are the indices of the feasible nodes, every result is ``(len(rows),)``.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from rebalancer.simulate.kinds import BY_KIND, Json
from rebalancer.simulate.node_match import term_matches, tolerated
from rebalancer.simulate.pods import controller_of
from rebalancer.simulate.scheduling_filters import required_terms, spread_selector, takes_part
from rebalancer.simulate.scheduling_snapshot import HOSTNAME, ZONE, Demand, Floats, Snapshot, term_selects
from rebalancer.simulate.selectors import matches

Rows = NDArray[np.intp]
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def total_score(snapshot: Snapshot, pod: Json, demand: Demand, rows: Rows) -> Floats:
    """Sum of weight x score of every plugin."""
    return (
        least_allocated(snapshot, demand, rows)
        + balanced_allocation(snapshot, demand, rows)
        + 3 * taint_score(snapshot, pod, rows)
        + 2 * node_affinity_score(snapshot, pod, rows)
        + 2 * spread_score(snapshot, pod, rows)
        + 2 * pod_affinity_score(snapshot, pod, rows)
    )


def least_allocated(snapshot: Snapshot, demand: Demand, rows: Rows) -> Floats:
    points, counted = np.zeros(len(rows)), np.zeros(len(rows))
    for name in ("cpu", "memory"):
        allocatable = snapshot.resource(snapshot.allocatable, name)[rows]
        used = snapshot.nonzero[name][rows] + demand.scored.get(name, 0.0)
        there = allocatable > 0
        free = np.where(there & (used <= allocatable), allocatable - used, 0.0)
        points += np.where(there, free * 100 // np.where(there, allocatable, 1.0), 0.0)
        counted += there
    return np.where(counted > 0, points // np.maximum(counted, 1), 0.0)


def _balance(snapshot: Snapshot, extra: dict[str, float], rows: Rows) -> Floats:
    fractions, counted = [], []
    for name in ("cpu", "memory"):
        allocatable = snapshot.resource(snapshot.allocatable, name)[rows]
        load = snapshot.resource(snapshot.requested, name)[rows] + extra.get(name, 0.0)
        there = allocatable > 0
        fractions.append(np.where(there, np.minimum(1.0, load / np.where(there, allocatable, 1.0)), 0.0))
        counted.append(there)
    spread = np.where(counted[0] & counted[1], np.abs(fractions[0] - fractions[1]) / 2, 0.0)
    balance: Floats = np.trunc((1 - spread) * 100)
    return balance


def balanced_allocation(snapshot: Snapshot, demand: Demand, rows: Rows) -> Floats:
    """The formula of 1.36: 75 when the pod does not change the balance of the node."""
    request = {name: demand.request.get(name, 0.0) for name in ("cpu", "memory")}
    if not any(request.values()):
        return np.zeros(len(rows))
    return 50 + (50 + _balance(snapshot, request, rows) - _balance(snapshot, {}, rows)) // 2


def taint_score(snapshot: Snapshot, pod: Json, rows: Rows) -> Floats:
    soft = [t for t in pod["spec"].get("tolerations") or () if t.get("effect", "") in ("", "PreferNoSchedule")]
    raw = np.array(
        [sum(1 for taint in snapshot.taints[row] if taint["effect"] == "PreferNoSchedule" and not tolerated(taint, soft)) for row in rows],
        dtype=float,
    )
    most = raw.max(initial=0.0)
    return np.full(len(rows), 100.0) if most == 0 else 100 - 100 * raw // most


def node_affinity_score(snapshot: Snapshot, pod: Json, rows: Rows) -> Floats:
    preferred = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_PREFERRED) or ()
    if not preferred:
        return np.zeros(len(rows))
    raw = np.array(
        [
            sum(int(p["weight"]) for p in preferred if term_matches(p["preference"], snapshot.labels[row], snapshot.names[row]))
            for row in rows
        ],
        dtype=float,
    )
    most = raw.max(initial=0.0)
    return raw if most == 0 else 100 * raw // most


def _default_selectors(snapshot: Snapshot, pod: Json) -> list[Json]:
    """What the system's default spread constraints select: the Services of the pod and its controller, all at once."""
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
    found: list[Json] = []
    for service in snapshot.services:
        pairs = service.get("spec", {}).get("selector") or {}
        if service["metadata"]["namespace"] == namespace and pairs and matches({"matchLabels": pairs}, labels):
            found.append({"matchLabels": pairs})
    owner = controller_of(pod)
    if owner is not None and owner["kind"] in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        value = snapshot.find(BY_KIND[owner["kind"]].plural, owner["name"], namespace)
        selector = (value or {}).get("spec", {}).get("selector")
        if selector:
            found.append(selector if owner["kind"] != "ReplicationController" else {"matchLabels": selector})
    return found


def spread_score(snapshot: Snapshot, pod: Json, rows: Rows) -> Floats:
    """PodTopologySpread: soft constraints of the pod, or the system's defaults when it has no constraint at all."""
    own = pod["spec"].get("topologySpreadConstraints") or []
    if own:
        soft = [c for c in own if c.get("whenUnsatisfiable") == "ScheduleAnyway"]
        selectors = [[selector] if (selector := spread_selector(c, pod)) else [] for c in soft]
    else:
        default = _default_selectors(snapshot, pod)
        soft = [{"topologyKey": HOSTNAME, "maxSkew": 3}, {"topologyKey": ZONE, "maxSkew": 5}] if default else []
        selectors = [default for _ in soft]
    if not soft or not len(rows):
        return np.zeros(len(rows))
    ignored = np.array([bool(own) and any(c["topologyKey"] not in snapshot.labels[row] for c in soft) for row in rows], dtype=bool)
    raw = np.zeros(len(rows))
    for constraint, several in zip(soft, selectors, strict=True):
        raw += _spread_raw(snapshot, pod, rows[~ignored], constraint, several, soft if own else None, rows)
    raw = np.floor(raw + 0.5)
    score = np.zeros(len(rows))
    if (~ignored).any():
        most, least = raw[~ignored].max(), raw[~ignored].min()
        score = np.full(len(rows), 100.0) if most == 0 else 100 * (most + least - raw) // most
    return np.where(ignored, 0.0, score)


def _spread_raw(
    snapshot: Snapshot, pod: Json, judged: Rows, constraint: Json, selectors: list[Json], own: list[Json] | None, rows: Rows
) -> Floats:
    key, domain = constraint["topologyKey"], snapshot.domain(constraint["topologyKey"])
    counted = np.ones(snapshot.size, dtype=bool) if own is None else takes_part(snapshot, own, constraint, pod["spec"])
    counts: Counter[object] = Counter()
    for placed in snapshot.in_namespace.get(pod["metadata"]["namespace"], ()) if selectors else ():
        if placed.terminating:
            continue
        if all(matches(selector, placed.labels) for selector in selectors):
            if key == HOSTNAME:
                counts[placed.node] += 1
            elif counted[placed.node] and domain[placed.node] is not None:
                counts[domain[placed.node]] += 1
    size = len(judged) if key == HOSTNAME else len({domain[row] for row in judged})
    weight = math.log(size + 2)
    found = np.array([counts[row if key == HOSTNAME else domain[row]] for row in map(int, rows)], dtype=float)
    present = np.array([domain[row] is not None for row in rows], dtype=bool)
    return np.where(present, found * weight + (int(constraint["maxSkew"]) - 1), 0.0)


def _preferred(pod: Json, kind: str) -> list[tuple[int, Json]]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return [(int(p["weight"]), p["podAffinityTerm"]) for p in affinity.get(_PREFERRED) or ()]


def _signed_terms(pod: Json, *, hard: bool) -> list[tuple[int, Json]]:
    """Preferred terms with their sign; ``hard`` adds the required affinity terms with weight 1, as they count for pods already there."""
    terms = [*_preferred(pod, "podAffinity"), *((-weight, term) for weight, term in _preferred(pod, "podAntiAffinity"))]
    return [*terms, *((1, term) for term in required_terms(pod, "podAffinity"))] if hard else terms


def pod_affinity_score(snapshot: Snapshot, pod: Json, rows: Rows) -> Floats:
    """InterPodAffinity: what the pod prefers among the pods that are there, and what they prefer about it."""
    namespace, labels, known = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}, snapshot.namespaces
    mine = _signed_terms(pod, hard=False)
    added: Counter[tuple[str, str]] = Counter()
    for placed in snapshot.placed if mine else snapshot.holders:
        for weight, term in mine:
            value = snapshot.domain(term["topologyKey"])[placed.node]
            if value is not None and term_selects(term, namespace, placed.namespace, placed.labels, known):
                added[(term["topologyKey"], value)] += weight
        for weight, term in _signed_terms(placed.pod, hard=True):
            value = snapshot.domain(term["topologyKey"])[placed.node]
            if value is not None and term_selects(term, placed.namespace, namespace, labels, known):
                added[(term["topologyKey"], value)] += weight
    if not added:
        return np.zeros(len(rows))
    raw = np.array([sum(w for (key, value), w in added.items() if snapshot.labels[row].get(key) == value) for row in rows], dtype=float)
    least, most = raw.min(initial=np.inf), raw.max(initial=-np.inf)
    return np.zeros(len(rows)) if most == least else np.trunc(100 * (raw - least) / (most - least))
