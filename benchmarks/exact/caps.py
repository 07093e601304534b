"""How many pods of each kind a plan may move: what the budgets of `rebalancer.guard` have left at the start.

A kind of cap parts the pods into groups: no pod is in two groups of one kind, so the largest pods that a kind allows are found by going
down the sizes (`cover`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rebalancer.guard.disruption import disruption_cost
from rebalancer.guard.gate import Scene
from rebalancer.policy.quantities import limit_of
from rebalancer.state.arrays import IntArray

ONE_AT_A_TIME = 1
"""Pods of a workload in one plan: the gate ``in-flight``, whatever the budgets."""

Key = TypeVar("Key", int, str)


@dataclass(frozen=True, slots=True)
class Caps:
    """One kind of cap."""

    kind: str
    group: IntArray
    """(P,): row in ``at_most``; -1 where the kind says nothing of the pod."""
    at_most: IntArray
    """(groups,)."""


def caps_of(scene: Scene, pods: IntArray) -> tuple[Caps, ...]:
    """Every kind that can bind: with a group of more pods than may go."""
    found = (_disruption_budgets(scene, pods), _workloads(scene, pods), *_policy_budgets(scene, pods))
    return tuple(caps for caps in found if (np.bincount(caps.group + 1, minlength=len(caps.at_most) + 1)[1:] > caps.at_most).any())


def _grouped(kind: str, keys: Iterable[Key | None], at_most: Callable[[Key], int]) -> Caps:
    rows: dict[Key, int] = {}
    group = [-1 if key is None else rows.setdefault(key, len(rows)) for key in keys]
    return Caps(kind, np.array(group, dtype=np.int64), np.array([max(0, at_most(key)) for key in rows], dtype=np.int64))


def _disruption_budgets(scene: Scene, pods: IntArray) -> Caps:
    """A pod of two budgets is refused by a gate, so each has one at most; one whose eviction costs nothing has none."""
    state = scene.state

    def budget_of(pod: int) -> int | None:
        return next((row for row in state.pods.budgets[pod] if disruption_cost(state, pod, row)), None)

    allowed = [0 if one.stale else one.allowed for one in state.budgets]
    return _grouped("disruption budget", map(budget_of, pods.tolist()), lambda row: allowed[row])


def _workloads(scene: Scene, pods: IntArray) -> Caps:
    return _grouped("one pod of a workload", _present(scene.state.pods.workload[pods]), lambda _: ONE_AT_A_TIME)


def _policy_budgets(scene: Scene, pods: IntArray) -> Iterator[Caps]:
    state, heads, past, budgets = scene.state, scene.headcount, scene.window, scene.spec.budgets

    def of_node(row: int) -> int:
        return limit_of(budgets.per_node, int(heads.by_node[row])) - past.by_node.get(state.nodes.names[row], 0)

    def of_namespace(name: str) -> int:
        return limit_of(budgets.per_namespace, heads.by_namespace.get(name, 0)) - past.by_namespace.get(name, 0)

    def of_workload(row: int) -> int:
        return limit_of(budgets.per_workload, int(heads.by_workload[row])) - past.by_workload.get(state.workloads.refs[row], 0)

    def of_tenant(row: int) -> int:
        return limit_of(budgets.per_tenant, int(heads.by_tenant[row])) - past.by_tenant.get(state.tenants[row], 0)

    yield _grouped("total", [0] * len(pods), lambda _: limit_of(budgets.total, heads.total) - past.total)
    yield _grouped("node", _present(state.pods.node[pods]), of_node)
    yield _grouped("namespace", [state.pods.namespaces[pod] for pod in pods.tolist()], of_namespace)
    yield _grouped("workload", _present(state.pods.workload[pods]), of_workload)
    yield _grouped("tenant", _present(state.pods.tenant[pods]), of_tenant)


def _present(rows: IntArray) -> list[int | None]:
    return [row if row >= 0 else None for row in rows.tolist()]
