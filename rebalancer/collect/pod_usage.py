"""From the series of the pod queries to one usage a pod and node, and into how many queries the pods of a large cluster are divided.

A pod is known here by namespace, name and the node it was measured on. A StatefulSet's pod that moved a minute ago still has a series on
the old node: only the key with the node keeps the two apart. Keys are numbers while they are joined, since there are hundreds of thousands.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from rebalancer.collect.pod_book import NOBODY, Placing, pods_of_labels
from rebalancer.collect.pod_samples import PlacedPod, PodSamples
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.resolve import show
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import Dropped, DropReason, believed
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

__all__ = ["PODS_PER_QUERY", "PlacedPod", "PodUsage", "assemble_pods", "shards"]

PODS_PER_QUERY = 20_000
"""Some five megabytes of answer; the number of queries follows from the number of pods, never from that of workloads."""
_SHIFT = 32
"""A pod's number and its place are one number: the pod's above so many bits."""


@dataclass(frozen=True, slots=True)
class PodUsage:
    usage: PodSamples
    dropped: Dropped
    notes: tuple[str, ...] = ()


def shards(*, directory: NodeDirectory, namespaces: Sequence[str], pods: int) -> tuple[tuple[str, ...] | None, ...]:
    """Namespaces divided so that each query yields about `PODS_PER_QUERY` pods; ``(None,)``: one query for all."""
    counts: Counter[str] = Counter(dict.fromkeys(namespaces, 0))
    counts.update(map(itemgetter(0), directory.pod_nodes))
    wanted = math.ceil(max(pods, len(directory.pod_nodes)) / PODS_PER_QUERY)
    wanted = min(wanted, len(counts))
    if wanted <= 1:
        return (None,)
    loads = [0] * wanted
    parts: list[list[str]] = [[] for _ in range(wanted)]
    # Known pods may be fewer than there are: namespaces without any still count a little, so that they are spread too.
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        lightest = loads.index(min(loads))
        parts[lightest].append(name)
        loads[lightest] += count + 1
    return tuple(tuple(sorted(part)) for part in parts)


def assemble_pods(
    answers: Iterable[Answer], *, directory: NodeDirectory, node_label: str | None, maximum: float | None, at: float, max_age_s: float
) -> PodUsage:
    """Join the shards, each of which may be gone before the next is asked for.

    A pod with two series on one node is unknown, one on a node that is not ours is foreign.
    """
    joining = _Joining(directory, node_label)
    for answer in answers:
        values, counted = believed(answer, maximum=maximum)
        joining.dropped.update(counted)
        joining.take(answer, values[:, -1], stale=answer.stamps < at - max_age_s)
    return joining.usage()


class _Joining:
    """What the shards so far have told. A pod on a node is one number, its key; what is told of a key first counts."""

    def __init__(self, directory: NodeDirectory, node_label: str | None) -> None:
        self.dropped: Dropped = Counter()
        self._directory, self._node_label = directory, node_label
        self._placing: Placing | None = None
        self._keys: list[IntArray] = []
        self._values: list[FloatArray] = []
        """NaN where nothing of the first series of a key may be used."""
        self._seen = np.zeros(len(directory.pod_keys), dtype=np.bool_)
        """Known pods of which some series was told."""
        self._twice: set[int] = set()
        self._shown = ""
        """The first pod that was told of twice, with two of its series."""

    def take(self, answer: Answer, values: FloatArray, *, stale: BoolArray) -> None:
        pods = answer.pods or pods_of_labels(answer.labels, self._node_label)
        placing = pods.book.placing(self._directory)
        where = placing.locate(pods.numbers)
        own = np.flatnonzero((where.pod != NOBODY) & (where.node != NOBODY))
        number, node = self._in_one_numbering(placing, where.pod[own], where.node[own])
        self.dropped[DropReason.FOREIGN] += len(answer) - len(own)
        keys = (number << _SHIFT) | node
        first, again = self._told_before(keys, number)
        if len(again):
            self._note_twice(answer, own, keys, again)
        kept = own[first]
        self.dropped[DropReason.STALE] += int(stale[kept].sum())
        self._keys.append(keys[first])
        self._values.append(np.where(stale[kept], np.nan, values[kept]))

    def usage(self) -> PodUsage:
        keys = np.concatenate(self._keys) if self._keys else np.zeros(0, dtype=np.int64)
        values = np.concatenate(self._values) if self._values else np.zeros(0)
        usable = ~np.isnan(values)  # every amount that is believed is finite
        if self._twice:
            doubled = np.isin(keys, list(self._twice))
            self.dropped[DropReason.AMBIGUOUS] += int((usable & doubled).sum())
            usable &= ~doubled
        samples = PodSamples(
            known=self._directory.pod_keys,
            strangers=tuple(self._placing.strangers) if self._placing is not None else (),
            nodes=self._placing.nodes if self._placing is not None else (),
            pod=keys[usable] >> _SHIFT,
            place=keys[usable] & ((1 << _SHIFT) - 1),
            value=values[usable],
        )
        return PodUsage(usage=samples, dropped=+self.dropped, notes=self._notes())

    def _notes(self) -> tuple[str, ...]:
        if not self._twice:
            return ()
        return (f"{len(self._twice)} pods have more than one series and are unknown, such as {self._shown}",)

    def _in_one_numbering(self, placing: Placing, number: IntArray, node: IntArray) -> tuple[IntArray, IntArray]:
        """Answers of one client share a book, and so the numbers; those of another book have strangers of their own numbers."""
        if self._placing is None or self._placing is placing:
            self._placing = placing
            return number, node
        known, strangers = len(self._directory.pod_keys), tuple(placing.strangers)
        ours = self._placing.strangers
        mapped = [n if n < known else known + ours.setdefault(strangers[n - known], len(ours)) for n in number.tolist()]
        return np.array(mapped, dtype=np.int64), node

    # ---- twice --------------------------------------------------------------------------------------------------------

    def _told_before(self, keys: IntArray, number: IntArray) -> tuple[IntArray, IntArray]:
        """Positions in ``keys`` at which a key is told of for the first time, and the others, each in their order."""
        _, first = np.unique(keys, return_index=True)
        fresh = np.zeros(len(keys), dtype=np.bool_)
        fresh[first] = True
        known = number < len(self._seen)
        if self._seen[number[known]].any() or not known.all():  # else no key can have been told of by another shard
            fresh &= ~np.isin(keys, np.concatenate((np.zeros(0, dtype=np.int64), *self._keys)))
        self._seen[number[known]] = True
        return np.flatnonzero(fresh), np.flatnonzero(~fresh)

    def _note_twice(self, answer: Answer, own: IntArray, keys: IntArray, again: IntArray) -> None:
        self.dropped[DropReason.AMBIGUOUS] += len(again)
        if not self._twice:
            second = int(again[0])
            namespace, pod, node = self._placed(int(keys[second]))
            first = int(np.flatnonzero(keys == keys[second])[0])
            # Of a series in another shard only what makes its key is left.
            shown = show(answer.labels[own[first]] if first < second else {"namespace": namespace, "pod": pod, "node": node})
            self._shown = f"{namespace}/{pod}: {shown} and {show(answer.labels[own[second]])}"
        self._twice.update(keys[again].tolist())

    def _placed(self, key: int) -> PlacedPod:
        number, known = key >> _SHIFT, len(self._directory.pod_keys)
        placing = self._placing
        if placing is None:
            raise AssertionError("who was told of twice was placed")
        pod = self._directory.pod_keys[number] if number < known else tuple(placing.strangers)[number - known]
        return (*pod, placing.nodes[key & ((1 << _SHIFT) - 1)])
