"""The disruption controller: keeps the status of every PodDisruptionBudget as kube-controller-manager does.

``disruptionsAllowed = max(0, currentHealthy - desiredHealthy)``, 0 when nothing is expected. Percentages round up. Pods that were
charged less than two minutes ago and are not terminating yet count as unhealthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil

from rebalancer.simulate.kinds import BY_KIND, Json
from rebalancer.simulate.pods import controller_of, is_ready, is_terminating
from rebalancer.simulate.selectors import matches
from rebalancer.simulate.world import Change, World
from rebalancer.units import format_time, parse_time

DISRUPTED_FOR_S = 120.0
_SCALED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


_SCALED_PLURALS = tuple(BY_KIND[kind].plural for kind in _SCALED)


class SyncFailed(Exception):
    """The scale of some pod's controller cannot be found."""


@dataclass(frozen=True, slots=True)
class _Scale:
    uid: str
    replicas: int


def _scale_of(world: World, pod: Json) -> _Scale | None:
    """The scale of the pod's controller (of the Deployment behind its ReplicaSet); None for a bare pod. Raises SyncFailed."""
    owner = controller_of(pod)
    if owner is None:
        return None
    kind, name, namespace = owner["kind"], owner["name"], pod["metadata"]["namespace"]
    found = world.find(BY_KIND[kind].plural, name, namespace) if kind in _SCALED else None
    if found is None:
        raise SyncFailed(f"found no controller ref for pod {pod['metadata']['name']!r} with a scale: {kind} {name}")
    above = controller_of(found)
    if kind == "ReplicaSet" and above is not None and above["kind"] == "Deployment":
        deployment = world.find("deployments", above["name"], namespace)
        if deployment is not None:
            found = deployment
    return _Scale(found["metadata"]["uid"], int(found["spec"].get("replicas", 1)))


def _scaled_value(value: int | str, expected: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return ceil(int(value[:-1]) * expected / 100)
    return int(value)


def _expected_and_desired(world: World, spec: Json, pods: list[Json]) -> tuple[int, int]:
    if "minAvailable" in spec and not isinstance(spec["minAvailable"], str):
        return len(pods), int(spec["minAvailable"])
    if "minAvailable" not in spec and "maxUnavailable" not in spec:
        return 0, 0
    scales = {scale.uid: scale.replicas for scale in (_scale_of(world, pod) for pod in pods) if scale is not None}
    expected = sum(scales.values())
    if "maxUnavailable" in spec:
        return expected, max(0, expected - _scaled_value(spec["maxUnavailable"], expected))
    return expected, _scaled_value(spec["minAvailable"], expected)


def _still_disrupted(disrupted: Mapping[str, str], pods: Iterable[Json], now: float) -> dict[str, str]:
    names = {pod["metadata"]["name"] for pod in pods if not is_terminating(pod)}
    return {name: since for name, since in disrupted.items() if name in names and parse_time(since) + DISRUPTED_FOR_S > now}


def alike(pods: Iterable[Json]) -> list[list[Json]]:
    """Pods in groups of equal labels, so that a selector is compared once a group."""
    groups: dict[frozenset[tuple[str, str]], list[Json]] = {}
    for pod in pods:
        groups.setdefault(frozenset((pod["metadata"].get("labels") or {}).items()), []).append(pod)
    return list(groups.values())


def budget_status(world: World, budget: Json, groups: Iterable[list[Json]]) -> Json:
    """The status that the controller writes for a budget. ``groups``: the pods of its namespace, as `alike` divides them."""
    selector = budget["spec"].get("selector")
    covered = [pod for group in groups if matches(selector, group[0]["metadata"].get("labels") or {}) for pod in group]
    disrupted = _still_disrupted(budget.get("status", {}).get("disruptedPods") or {}, covered, world.now)
    generation = budget["metadata"]["generation"]
    condition: Json = {"type": "DisruptionAllowed", "lastTransitionTime": format_time(world.now), "observedGeneration": generation}
    try:
        expected, desired = _expected_and_desired(world, budget["spec"], covered)
    except SyncFailed as error:
        failed = {**condition, "status": "False", "reason": "SyncFailed", "message": str(error)}
        old = budget.get("status", {})
        counted = {name: old.get(name, 0) for name in ("currentHealthy", "desiredHealthy", "expectedPods")}
        return {**counted, "disruptionsAllowed": 0, "disruptedPods": disrupted, "observedGeneration": generation, "conditions": [failed]}
    healthy = sum(1 for pod in covered if is_ready(pod) and not is_terminating(pod) and pod["metadata"]["name"] not in disrupted)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    enough = {**condition, "status": "True" if allowed else "False", "reason": "SufficientPods" if allowed else "InsufficientPods"}
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "disruptedPods": disrupted,
        "observedGeneration": generation,
        "conditions": [enough],
    }


def _comparable(status: Json) -> Json:
    """A status without the times of its conditions: rewriting these alone would be a change without news."""
    bare = [{key: value for key, value in c.items() if key != "lastTransitionTime"} for c in status.get("conditions") or ()]
    return {**status, "disruptedPods": status.get("disruptedPods") or {}, "conditions": bare}


def _spec_changed(change: Change) -> bool:
    return change.before is None or change.type == "DELETED" or change.before.get("spec") is not change.value.get("spec")


class BudgetController:
    """Recomputes the budgets of every namespace in which a pod, an owner or a budget changed, or a charge expired."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._whole: set[str] = {budget["metadata"]["namespace"] for budget in world.objects("poddisruptionbudgets")}
        """Namespaces of which every budget is to be looked at."""
        self._touched: dict[str, list[Mapping[str, str]]] = {}
        """namespace -> label sets of pods that changed."""
        self._expiries: dict[str, float] = {}
        world.subscribe(self._note)

    def _note(self, change: Change) -> None:
        namespace = change.value["metadata"].get("namespace", "")
        if change.plural == "pods":
            labels, seen = change.value["metadata"].get("labels") or {}, self._touched.setdefault(namespace, [])
            if not any(labels is other for other in seen):
                seen.append(labels)
        elif change.plural == "poddisruptionbudgets" or (change.plural in _SCALED_PLURALS and _spec_changed(change)):
            self._whole.add(namespace)

    def react(self) -> bool:
        now = self._world.now
        self._whole |= {namespace for namespace, due in self._expiries.items() if due <= now}
        if not self._whole and not self._touched:
            return False
        whole, self._whole = self._whole, set()
        touched, self._touched = self._touched, {}
        changed = False
        for namespace in sorted(whole | touched.keys()):
            budgets = list(self._world.objects("poddisruptionbudgets", namespace))
            if namespace not in whole:
                budgets = [b for b in budgets if any(matches(b["spec"].get("selector"), labels) for labels in touched[namespace])]
            if budgets:
                groups = alike(self._world.objects("pods", namespace))
                for budget in budgets:
                    changed |= self._sync(budget, groups)
            self._note_expiry(namespace)
        self._whole.clear()  # the controller's own writes are no news to it
        return changed

    def _note_expiry(self, namespace: str) -> None:
        self._expiries.pop(namespace, None)
        charges = [
            parse_time(since) + DISRUPTED_FOR_S
            for budget in self._world.objects("poddisruptionbudgets", namespace)
            for since in (budget.get("status", {}).get("disruptedPods") or {}).values()
        ]
        if charges:
            self._expiries[namespace] = min(charges)

    def _sync(self, budget: Json, groups: list[list[Json]]) -> bool:
        status = budget_status(self._world, budget, groups)
        if _comparable(status) == _comparable(budget.get("status", {})):
            return False
        self._world.replace("poddisruptionbudgets", {**budget, "status": status})
        return True

    def next_due(self) -> float:
        return min(self._expiries.values(), default=float("inf"))
