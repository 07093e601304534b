"""Which pods a selector means, and on which nodes they stand: what topology spread and inter-pod affinity count.

A selector is evaluated against label sets, not pods, and only against those of the namespaces it looks at. The pods of a label set are
found by an index sorted once. A `Crowd` then holds one node per pod of a group, and catches up with the bookings when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property

import numpy as np

from rebalancer.plan.occupancy import Occupancy
from rebalancer.state.arrays import IntArray
from rebalancer.state.matching import LabelIndex, namespaces_of_term
from rebalancer.state.scheduling import PodTerm, Selector


class Grouped:
    """Rows sorted by a number (label set, controller), so that the rows of a few numbers are found without a scan."""

    def __init__(self, rows: IntArray, numbers: IntArray, size: int) -> None:
        order = np.argsort(numbers, kind="stable")
        self._rows = rows[order]
        self._starts = np.searchsorted(numbers[order], np.arange(size + 1))

    def of(self, groups: IntArray) -> IntArray:
        """Rows whose number is among ``groups``."""
        if groups.size == 0:
            return np.empty(0, dtype=np.int64)
        return np.concatenate([self._rows[self._starts[group] : self._starts[group + 1]] for group in groups.tolist()])


class Crowd:
    """The nodes of the pods of one group, one entry a pod, bookings included."""

    def __init__(self, occupancy: Occupancy, nodes: IntArray, member: Callable[[int], bool], *, spread: bool) -> None:
        self._occupancy = occupancy
        self._nodes = self._before = nodes
        self._member = member
        self._spread = spread
        self._seen = 0
        self._rewinds = occupancy.rewinds

    def has(self, pod: int) -> bool:
        return self._member(pod)

    def nodes(self) -> IntArray:
        """(members,) node rows. For topology spread, evicted pods are not among them."""
        bookings = self._occupancy.bookings
        if self._rewinds != self._occupancy.rewinds:
            self._nodes, self._seen, self._rewinds = self._before, 0, self._occupancy.rewinds
        for booking in bookings[self._seen :]:
            if not self._member(booking.pod):
                continue
            if self._spread:
                self._nodes = without_one(self._nodes, self._occupancy.spread_source(booking.pod))
            self._nodes = np.append(self._nodes, booking.destination)
        self._seen = len(bookings)
        return self._nodes


def without_one(nodes: IntArray, node: int) -> IntArray:
    """``nodes`` with one entry of ``node`` less; the same array when there is none."""
    where = np.flatnonzero(nodes == node)
    return np.delete(nodes, where[0]) if where.size else nodes


class Neighbours:
    """Crowds by what selects them. Crowds for affinity contain terminating pods, those for topology spread do not."""

    def __init__(self, occupancy: Occupancy) -> None:
        self._occupancy = occupancy
        self._state = occupancy.state
        self._crowds: dict[Hashable, Crowd] = {}
        self._rows: dict[Hashable, IntArray] = {}

    @cached_property
    def _by_namespace(self) -> dict[str, tuple[IntArray, LabelIndex]]:
        rows: dict[str, list[int]] = {}
        for row, labels in enumerate(self._state.label_sets):
            rows.setdefault(labels.namespace, []).append(row)
        sets = self._state.label_sets
        return {name: (np.array(own, dtype=np.int64), LabelIndex([sets[row] for row in own])) for name, own in rows.items()}

    @cached_property
    def _namespace_labels(self) -> dict[str, dict[str, str]]:
        """Every namespace that has a pod; one that was not read has no labels, as the scheduler reads it."""
        known = {name: dict(labels) for name, labels in self._state.namespaces.items()}
        return {**{name: {} for name in self._by_namespace}, **known}

    @cached_property
    def _present(self) -> Grouped:
        rows = self._occupancy.rows(terminating=True)
        return Grouped(rows, self._state.pods.labels[rows], len(self._state.label_sets))

    @cached_property
    def _present_by_constraints(self) -> Grouped:
        rows = self._occupancy.rows(terminating=True)
        return Grouped(rows, self._state.pods.constraints[rows], len(self._state.constraints))

    @cached_property
    def _staying(self) -> Grouped:
        rows = self._occupancy.rows(terminating=False)
        return Grouped(rows, self._state.pods.labels[rows], len(self._state.label_sets))

    @cached_property
    def _staying_by_controller(self) -> Grouped:
        rows = self._occupancy.rows(terminating=False)
        rows = rows[self._state.pods.controller[rows] >= 0]
        return Grouped(rows, self._state.pods.controller[rows], len(self._state.controllers))

    @cached_property
    def port_holders(self) -> tuple[int, ...]:
        """Rows of ``ClusterState.constraints`` with host ports."""
        return tuple(row for row, constraints in enumerate(self._state.constraints) if constraints.host_ports)

    @cached_property
    def claim_holders(self) -> dict[str, tuple[int, ...]]:
        """ReadWriteOncePod claim -> rows of ``ClusterState.constraints`` that use it."""
        users: dict[str, list[int]] = {}
        for row, constraints in enumerate(self._state.constraints):
            for claim in constraints.exclusive_claims:
                users.setdefault(claim, []).append(row)
        return {claim: tuple(rows) for claim, rows in users.items()}

    def label_sets(self, selector: Selector | None, namespaces: frozenset[str]) -> IntArray:
        """Sorted rows of the label sets that live in the namespaces and match."""
        key = (selector, namespaces)
        found = self._rows.get(key)
        if found is None:
            indexes = (self._by_namespace[name] for name in namespaces if name in self._by_namespace)
            parts = [rows[index.mask(selector)] for rows, index in indexes]
            found = self._rows[key] = np.sort(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
        return found

    def meant_by(self, term: PodTerm, owner_namespace: str) -> IntArray:
        """Sorted rows of the label sets that an affinity term of a pod in ``owner_namespace`` matches."""
        return self.label_sets(term.selector, namespaces_of_term(term, owner_namespace, self._namespace_labels))

    def matching_all(self, terms: tuple[PodTerm, ...], owner_namespace: str) -> Crowd:
        """The pods that match every one of the terms, terminating ones included."""
        key = ("affinity", terms, owner_namespace)
        crowd = self._crowds.get(key)
        if crowd is None:
            rows = self.meant_by(terms[0], owner_namespace)
            for term in terms[1:]:
                rows = np.intersect1d(rows, self.meant_by(term, owner_namespace), assume_unique=True)
            crowd = self._crowds[key] = self._crowd(rows, spread=False)
        return crowd

    def spread(self, selector: Selector | None, namespace: str) -> Crowd:
        """The pods of the namespace that match and are not terminating. An empty selector counts none, as the scheduler has it."""
        key = ("spread", selector, namespace)
        crowd = self._crowds.get(key)
        if crowd is None:
            empty = selector is not None and not selector.requirements
            rows = np.empty(0, dtype=np.int64) if empty else self.label_sets(selector, frozenset((namespace,)))
            crowd = self._crowds[key] = self._crowd(rows, spread=True)
        return crowd

    def of_controller(self, controller: int) -> Crowd:
        """The pods of one direct controller that are not terminating."""
        key = ("controller", controller)
        crowd = self._crowds.get(key)
        if crowd is None:
            owners = self._state.pods.controller
            pods = self._staying_by_controller.of(np.array([controller], dtype=np.int64))
            nodes = self._state.pods.node[pods]
            crowd = self._crowds[key] = Crowd(self._occupancy, nodes, lambda pod: int(owners[pod]) == controller, spread=True)
        return crowd

    def with_constraints(self, rows: tuple[int, ...]) -> Crowd:
        """The pods whose constraints are among ``rows`` of ``ClusterState.constraints``, terminating ones included."""
        key = ("constraints", rows)
        crowd = self._crowds.get(key)
        if crowd is None:
            members, numbers = frozenset(rows), self._state.pods.constraints
            pods = self._present_by_constraints.of(np.array(rows, dtype=np.int64))
            nodes = self._state.pods.node[pods]
            crowd = self._crowds[key] = Crowd(self._occupancy, nodes, lambda pod: int(numbers[pod]) in members, spread=False)
        return crowd

    def _crowd(self, label_rows: IntArray, *, spread: bool) -> Crowd:
        members = frozenset(label_rows.tolist())
        labels = self._state.pods.labels
        pods = (self._staying if spread else self._present).of(label_rows)
        return Crowd(self._occupancy, self._state.pods.node[pods], lambda pod: int(labels[pod]) in members, spread=spread)
