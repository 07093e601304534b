"""The affinity terms that pods on nodes hold, seen from the pod that comes: who refuses it, who would like it near, who would not.

Required anti-affinity is symmetric: a pod without any term is kept out by the terms of others. Required affinity of others and their
preferences only score. Equal terms of many pods are kept once, with the nodes of their holders, and are found by the label set they match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rebalancer.plan.neighbours import Grouped, Neighbours, without_one
from rebalancer.plan.occupancy import Booking, Occupancy
from rebalancer.state.arrays import IntArray
from rebalancer.state.scheduling import Constraints, PodTerm

HARD_AFFINITY_WEIGHT = 1
"""``hardPodAffinityWeight`` of the default profile: what a required affinity term of another pod is worth as a score."""

Weighted = tuple[int, PodTerm]


@dataclass(frozen=True, slots=True)
class HeldTerm:
    """A term and the nodes of the pods that hold it, one entry a pod."""

    topology_key: str
    weight: int
    nodes: IntArray


def _refusing(constraints: Constraints) -> Iterator[Weighted]:
    for term in constraints.anti_affinity:
        yield 0, term


def _scoring(constraints: Constraints) -> Iterator[Weighted]:
    for term in constraints.affinity:
        yield HARD_AFFINITY_WEIGHT, term
    yield from constraints.preferred_affinity
    for weight, term in constraints.preferred_anti_affinity:
        yield -weight, term


class Terms:
    """The terms of one kind. A holder is known by its constraints and its namespace: together they fix what its terms look at."""

    def __init__(self, occupancy: Occupancy, neighbours: Neighbours, terms_of: Callable[[Constraints], Iterator[Weighted]]) -> None:
        self._occupancy = occupancy
        self._state = occupancy.state
        self._neighbours = neighbours
        self._terms: list[Weighted] = []
        self._holders: list[list[int]] = []
        self._by_labels: dict[int, list[int]] = {}
        self._by_kind: dict[int, list[int]] = {}
        self._nodes: dict[int, IntArray] = {}
        self._seen = 0
        self._rewinds = occupancy.rewinds
        own = [tuple(terms_of(constraints)) for constraints in self._state.constraints]
        if any(own):
            self._collect(own)

    def __bool__(self) -> bool:
        return bool(self._terms)

    def matching(self, label_set: int, *, gone: int = -1) -> list[HeldTerm]:
        """The held terms that match pods of a label set. ``gone``: a pod of the state that holds nothing any more."""
        if not self._terms:
            return []
        self._catch_up()
        return [
            HeldTerm(self._terms[number][1].topology_key, self._terms[number][0], self._without(number, gone))
            for number in self._by_labels.get(label_set, ())
        ]

    def _without(self, number: int, gone: int) -> IntArray:
        nodes = self._standing(number)
        for _ in range(self._held_by(gone).count(number) if gone >= 0 else 0):
            nodes = without_one(nodes, int(self._state.pods.node[gone]))
        return nodes

    @cached_property
    def _namespaces(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(labels.namespace for labels in self._state.label_sets))

    @cached_property
    def _kinds(self) -> tuple[IntArray, IntArray]:
        """((kinds,) constraints row * namespaces + namespace, (pods,) number of each pod's kind)."""
        number = {name: row for row, name in enumerate(self._namespaces)}
        of_label_set = np.array([number[labels.namespace] for labels in self._state.label_sets], dtype=np.int64)
        pairs = self._state.pods.constraints * len(self._namespaces) + of_label_set[self._state.pods.labels]
        kinds, of_pod = np.unique(pairs, return_inverse=True)
        return kinds, of_pod.astype(np.int64)

    @cached_property
    def _pods_of_kind(self) -> Grouped:
        rows = self._occupancy.rows(terminating=True)
        kinds, of_pod = self._kinds
        return Grouped(rows, of_pod[rows], len(kinds))

    def _collect(self, own: list[tuple[Weighted, ...]]) -> None:
        numbers: dict[tuple[int, PodTerm, str], int] = {}
        for kind, pair in enumerate(self._kinds[0].tolist()):
            row, place = divmod(pair, len(self._namespaces))
            namespace = self._namespaces[place]
            for weight, term in own[row]:
                scoped = not term.namespaces and term.namespace_selector is None
                key = (weight, term, namespace if scoped else "")
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = self._add(weight, term, namespace)
                self._holders[number].append(kind)
                self._by_kind.setdefault(kind, []).append(number)

    def _add(self, weight: int, term: PodTerm, namespace: str) -> int:
        number = len(self._terms)
        self._terms.append((weight, term))
        self._holders.append([])
        for label_set in self._neighbours.meant_by(term, namespace).tolist():
            self._by_labels.setdefault(label_set, []).append(number)
        return number

    def _standing(self, number: int) -> IntArray:
        nodes = self._nodes.get(number)
        if nodes is None:
            pods = self._pods_of_kind.of(np.array(self._holders[number], dtype=np.int64))
            nodes = self._state.pods.node[pods]
            for booking in self._occupancy.bookings[: self._seen]:
                nodes = self._with(nodes, booking, number)
            self._nodes[number] = nodes
        return nodes

    def _catch_up(self) -> None:
        bookings = self._occupancy.bookings
        if self._rewinds != self._occupancy.rewinds:
            self._nodes, self._seen, self._rewinds = {}, 0, self._occupancy.rewinds
        for booking in bookings[self._seen :]:
            for number in set(self._held_by(booking.pod)) & self._nodes.keys():
                self._nodes[number] = self._with(self._nodes[number], booking, number)
        self._seen = len(bookings)

    def _held_by(self, pod: int) -> list[int]:
        return self._by_kind.get(int(self._kinds[1][pod]), [])

    def _with(self, nodes: IntArray, booking: Booking, number: int) -> IntArray:
        """A pod that holds a term twice counts twice, as in the scheduler's sums."""
        times = self._held_by(booking.pod).count(number)
        return np.append(nodes, np.full(times, booking.destination, dtype=np.int64)) if times else nodes


class Holders:
    def __init__(self, occupancy: Occupancy, neighbours: Neighbours) -> None:
        self._occupancy = occupancy
        self._neighbours = neighbours

    @cached_property
    def refusing(self) -> Terms:
        """Required anti-affinity."""
        return Terms(self._occupancy, self._neighbours, _refusing)

    @cached_property
    def scoring(self) -> Terms:
        """Required affinity and both kinds of preferences; a weight below 0 repels."""
        return Terms(self._occupancy, self._neighbours, _scoring)
