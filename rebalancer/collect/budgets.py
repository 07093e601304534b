"""Disruption budgets, and which of them select which pods.

``allowed`` is believed only while the disruption controller has seen the newest spec; before that the Eviction API refuses, and so do we.
Selection is decided once per distinct set of labels, a namespace at a time, for all pods that carry them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from rebalancer.collect.selectors import selector
from rebalancer.kube.wire import BudgetWire
from rebalancer.state.matching import LabelIndex
from rebalancer.state.scheduling import LabelSet
from rebalancer.state.tables import Budget


def budgets_of(wires: Iterable[BudgetWire]) -> tuple[Budget, ...]:
    """In order of namespace and name."""
    return tuple(_budget(wire) for wire in sorted(wires, key=lambda wire: (wire.metadata.namespace, wire.metadata.name)))


def _budget(wire: BudgetWire) -> Budget:
    status = wire.status
    observed = status.observed_generation or 0
    stale = status.disruptions_allowed is None or observed < (wire.metadata.generation or 0)
    return Budget(
        namespace=wire.metadata.namespace,
        name=wire.metadata.name,
        selector=selector(wire.spec.selector),
        allowed=0 if stale else max(0, status.disruptions_allowed or 0),
        current_healthy=status.current_healthy or 0,
        desired_healthy=status.desired_healthy or 0,
        expected_pods=status.expected_pods or 0,
        always_allow_unhealthy=wire.spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
        stale=stale,
    )


def budgets_by_labels(budgets: Sequence[Budget], label_sets: Sequence[LabelSet]) -> list[tuple[int, ...]]:
    """(label sets,): rows of the budgets that select pods with these labels in this namespace."""
    of_namespace: dict[str, list[int]] = defaultdict(list)
    for row, budget in enumerate(budgets):
        of_namespace[budget.namespace].append(row)
    sets_of: dict[str, list[int]] = defaultdict(list)
    for row, label_set in enumerate(label_sets):
        if label_set.namespace in of_namespace:
            sets_of[label_set.namespace].append(row)
    found: list[tuple[int, ...]] = [()] * len(label_sets)
    for namespace, rows in sets_of.items():
        index = LabelIndex([label_sets[row] for row in rows])
        for budget_row in of_namespace[namespace]:
            for here in np.flatnonzero(index.mask(budgets[budget_row].selector)):
                found[rows[here]] += (budget_row,)
    return found
