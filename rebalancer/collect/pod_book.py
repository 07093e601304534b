"""Which pod each series of a pod query is of: label sets by their bytes, so that those of the last cycle need not be decoded again.

A Prometheus writes the same labels in the same way each time, and those of two signals are the same too. A label set that is not known is
decoded and checked; one that is known costs a look-up. What is remembered is who, never how much.

`Placing` says what the label sets mean in one cycle, whose nodes and pods are in a `NodeDirectory`: all of it by number, each number found
once a cycle. A place is what a series says of its node: the label that may name it, and the scrape target.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from rebalancer.collect.pod_labels import PodLabels, pod_labels_of, pod_labels_type
from rebalancer.collect.resolve import match_node
from rebalancer.collect.samples import NodeDirectory, PodKey
from rebalancer.state.arrays import IntArray

Place = tuple[str, str]
"""(node label, instance)"""

NOBODY = -1
_SPARE, _TIMES = 10_000, 2
"""A book is begun anew when it holds so many times the label sets of the last answers, and some more."""


class PodBook:
    """Numbers label sets, pods and places from 0. Threads may share it. ``node_label``: the only label that may name the node, or None."""

    def __init__(self, node_label: str | None) -> None:
        self.node_label = node_label
        self.lock = threading.RLock()
        self.keys: list[PodKey] = []
        """(label sets,): the pod of each; its name is empty where there is none."""
        self.place_of: list[int] = []
        """(label sets,): rows of ``places``."""
        self.places: list[Place] = []
        self._numbers: dict[bytes, int] = {}
        self._sets: list[bytes] = []
        self._place_numbers: dict[Place, int] = {}
        self._namespaces: dict[str, str] = {}
        labels = pod_labels_type(node_label)
        self._decode = None if labels is None else msgspec.json.Decoder(labels).decode
        self._decode_all = msgspec.json.Decoder(dict[str, str]).decode
        self._placing: Placing | None = None

    def read(self, sets: Sequence[msgspec.Raw]) -> IntArray:
        """(series,): the number of each label set. Raises msgspec.DecodeError when one is no set of labels."""
        numbers: list[int] = []
        expected = 0
        with self.lock:
            find, known = self._numbers.get, self._sets
            for each in sets:
                raw = bytes(each)
                # Label sets come in the order in which they came before, but for pods that are new or gone: the next one is nearly always
                # the one with the next number, and a look at it is cheaper than finding it.
                if expected >= len(known) or known[expected] != raw:
                    expected = find(raw, NOBODY)
                    if expected == NOBODY:
                        expected = self._numbers[raw] = self.write(self._labels(raw))
                        known.append(raw)
                numbers.append(expected)
                expected += 1
        return np.array(numbers, dtype=np.int64)

    def _labels(self, raw: bytes) -> PodLabels:
        return self._decode(raw) if self._decode is not None else pod_labels_of(self._decode_all(raw), self.node_label)

    def write(self, labels: PodLabels) -> int:
        """The number of a label set that is not known yet."""
        namespace, place = labels.exported_namespace or labels.namespace, (labels.node, labels.instance)
        with self.lock:
            number = self._place_numbers.setdefault(place, len(self.places))
            if number == len(self.places):
                self.places.append(place)
            # few namespaces, many pods: each name is kept once
            self.keys.append((self._namespaces.setdefault(namespace, namespace), labels.exported_pod or labels.pod))
            self.place_of.append(number)
            return len(self.keys) - 1

    def placing(self, directory: NodeDirectory) -> Placing:
        """What the label sets mean where ``directory`` holds. The last one is remembered."""
        with self.lock:
            if self._placing is None or self._placing.directory is not directory:
                self._placing = Placing(self, directory)
            return self._placing

    def outgrown(self) -> bool:
        """Whether most of the label sets were in none of the answers that the last placing was about."""
        with self.lock:
            used = 0 if self._placing is None else self._placing.used
            return len(self.keys) > _TIMES * used + _SPARE

    def rest(self) -> None:
        """The cycle is over: what it meant is of no use any more."""
        with self.lock:
            self._placing = None


@dataclass(frozen=True, slots=True)
class PodSeries:
    """Whose the series of an answer are: ``numbers`` (series,) of label sets in ``book``."""

    book: PodBook
    numbers: IntArray


@dataclass(frozen=True, slots=True)
class Located:
    """All (series,). ``pod``: the number of its pod, `NOBODY` where it is none. ``node``: the number of its node, that of no name where
    nothing is said, `NOBODY` where it names a node that is not ours."""

    pod: IntArray
    node: IntArray


class Placing:
    """Numbers of pods: rows of ``directory.pod_keys`` and, behind its end, of ``strangers``. Numbers of nodes: rows of ``nodes``."""

    def __init__(self, book: PodBook, directory: NodeDirectory) -> None:
        self.directory = directory
        self.nodes: tuple[str, ...] = (*sorted(directory.names), "")
        self.strangers: dict[PodKey, int] = {}
        self._book = book
        self._node_numbers = {name: number for number, name in enumerate(self.nodes)}
        self._pod = np.zeros(0, dtype=np.int64)
        self._place = np.zeros(0, dtype=np.int64)
        self._by_label = np.zeros(0, dtype=np.int64)
        self._by_instance = np.zeros(0, dtype=np.int64)
        self._labelled = np.zeros(0, dtype=np.bool_)
        self._empty = np.zeros(0, dtype=np.bool_)
        self._told = np.zeros(0, dtype=np.bool_)

    @property
    def used(self) -> int:
        """How many label sets were located."""
        return int(self._told.sum())

    def locate(self, numbers: IntArray) -> Located:
        """``numbers`` (series,): label sets of one answer. If no series of it can be placed, the labels do not say the node here, and none
        is taken for foreign. See `resolve` for the order in which labels are believed."""
        with self._book.lock:
            self._grow()
            self._told[numbers] = True
            place = self._place[numbers]
            node = self._by_label[place]
            if self._book.node_label is None:
                open_to_target = ~self._labelled[place] if (node != NOBODY).any() else np.ones(len(place), dtype=np.bool_)
                node = np.where((node == NOBODY) & open_to_target, self._by_instance[place], node)
            nowhere = self._node_numbers[""]
            if (node != NOBODY).any():
                node = np.where((node == NOBODY) & self._empty[place], nowhere, node)
            else:
                node = np.full(len(node), nowhere, dtype=np.int64)
            return Located(pod=self._pod[numbers], node=node)

    def _grow(self) -> None:
        """Take in what the book has learnt."""
        book, known = self._book, len(self._pod)
        if len(book.keys) > known:
            new = self._pod_numbers(book.keys[known:])
            self._pod = np.concatenate((self._pod, new))
            self._place = np.concatenate((self._place, np.array(book.place_of[known:], dtype=np.int64)))
            self._told = np.concatenate((self._told, np.zeros(len(new), dtype=np.bool_)))
        known = len(self._by_label)
        if len(book.places) > known:
            new_places = book.places[known:]
            self._by_label = np.concatenate((self._by_label, self._matched([node for node, _ in new_places])))
            self._by_instance = np.concatenate((self._by_instance, self._matched([instance for _, instance in new_places])))
            self._labelled = np.concatenate((self._labelled, np.array([bool(node) for node, _ in new_places], dtype=np.bool_)))
            self._empty = np.concatenate((self._empty, np.array([not any(place) for place in new_places], dtype=np.bool_)))

    def _pod_numbers(self, keys: Sequence[PodKey]) -> IntArray:
        find = self.directory.pod_numbers.get
        numbers = np.fromiter((find(key, NOBODY) for key in keys), dtype=np.int64, count=len(keys))
        first, known = len(self._pod), self.directory.pod_keys
        for row, number in enumerate(numbers.tolist(), first):
            if number >= 0:
                self._book.keys[row] = known[number]  # an equal one, which is in memory anyway
        for row in np.flatnonzero(numbers == NOBODY).tolist():
            if keys[row][1]:
                numbers[row] = len(self.directory.pod_keys) + self.strangers.setdefault(keys[row], len(self.strangers))
        return numbers

    def _matched(self, texts: Sequence[str]) -> IntArray:
        numbers: Mapping[str, int] = self._node_numbers
        names = (match_node(text, self.directory) for text in texts)
        return np.fromiter((numbers[name] if name else NOBODY for name in names), dtype=np.int64, count=len(texts))


def pods_of_labels(labels: Sequence[Mapping[str, str]], node_label: str | None) -> PodSeries:
    """The same of label sets that are decoded already."""
    book = PodBook(node_label)
    return PodSeries(book, np.fromiter((book.write(pod_labels_of(each, node_label)) for each in labels), dtype=np.int64, count=len(labels)))
