"""Usage of pods as columns: which pod and which node by number, and how much. For people and for tests it is a mapping as well.

A pod is known here by namespace, name and the node it was measured on. Pods that the API server knows have the numbers of the directory's
order, so that the columns are joined to the pod table by one look-up a pod, not by one a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.samples import PodKey
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

PlacedPod = tuple[str, str, str]
"""(namespace, pod, node name or empty where the series does not say)"""


class PodSamples(Mapping[PlacedPod, float]):
    """``pod`` (samples,): rows of ``known`` and, behind its end, of ``strangers``; ``place`` (samples,): rows of ``nodes``, which are names
    and may be empty; ``value`` (samples,): finite. No pod is on one node twice."""

    def __init__(
        self,
        *,
        known: Sequence[PodKey],
        strangers: Sequence[PodKey],
        nodes: Sequence[str],
        pod: IntArray,
        place: IntArray,
        value: FloatArray,
    ) -> None:
        self.known, self.strangers, self.nodes = known, strangers, nodes
        self.pod, self.place, self.value = pod, place, value
        self._mapping: dict[PlacedPod, float] | None = None

    @property
    def pods_known(self) -> int:
        """How many of the known pods have a sample."""
        told = np.zeros(len(self.known), dtype=np.bool_)
        told[self.pod[self.pod < len(self.known)]] = True
        return int(told.sum())

    def _as_dict(self) -> dict[PlacedPod, float]:
        if self._mapping is None:
            self._mapping = dict(zip(self._keys(), self.value.tolist(), strict=True))
        return self._mapping

    def _keys(self) -> Iterator[PlacedPod]:
        known = len(self.known)
        for pod, place in zip(self.pod.tolist(), self.place.tolist(), strict=True):
            key = self.known[pod] if pod < known else self.strangers[pod - known]
            yield (*key, self.nodes[place])

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[PlacedPod]:
        return iter(self._as_dict())

    def __getitem__(self, key: PlacedPod) -> float:
        return self._as_dict()[key]


def as_columns(samples: Mapping[PlacedPod, float]) -> PodSamples:
    """The columns of any mapping."""
    if isinstance(samples, PodSamples):
        return samples
    pods: dict[PodKey, int] = {}
    nodes: dict[str, int] = {}
    rows = [(pods.setdefault((namespace, pod), len(pods)), nodes.setdefault(node, len(nodes))) for namespace, pod, node in samples]
    numbers = np.array(rows, dtype=np.int64).reshape(-1, 2)
    values = np.fromiter(samples.values(), dtype=np.float64, count=len(samples))
    return PodSamples(known=(), strangers=tuple(pods), nodes=tuple(nodes), pod=numbers[:, 0], place=numbers[:, 1], value=values)


@dataclass(frozen=True, slots=True)
class Joined:
    """All (samples,): the row of the pod, -1 where there is no such pod; the row of the node, -1 where it is none of ours; whether the
    series says no node; the value."""

    row: IntArray
    where: IntArray
    nodeless: BoolArray
    value: FloatArray


def joined(samples: Mapping[PlacedPod, float], *, pods: Mapping[PodKey, int], nodes: Mapping[str, int]) -> Joined:
    """``pods``: (namespace, name) -> row of the pods that may own a sample; ``nodes``: name -> row."""
    columns = as_columns(samples)
    rows = pods if isinstance(pods, PodRows) else PodRows(pods)
    row_of = np.concatenate((rows.of(columns.known), PodRows(rows).of(columns.strangers)))
    where_of = np.fromiter((nodes.get(name, -1) for name in columns.nodes), dtype=np.int64, count=len(columns.nodes))
    nodeless_of = np.fromiter((not name for name in columns.nodes), dtype=np.bool_, count=len(columns.nodes))
    return Joined(row=row_of[columns.pod], where=where_of[columns.place], nodeless=nodeless_of[columns.place], value=columns.value)


class PodRows(Mapping[PodKey, int]):
    """(namespace, name) -> row. Rows of the pods that several signals know are looked up once."""

    def __init__(self, rows: Mapping[PodKey, int]) -> None:
        self._rows = rows
        self._last: tuple[Sequence[PodKey], IntArray] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PodKey]:
        return iter(self._rows)

    def __getitem__(self, key: PodKey) -> int:
        return self._rows[key]

    def of(self, keys: Sequence[PodKey]) -> IntArray:
        """(keys,): -1 where there is no such pod."""
        if self._last is None or self._last[0] is not keys:
            find = self._rows.get
            self._last = keys, np.fromiter((find(key, -1) for key in keys), dtype=np.int64, count=len(keys))
        return self._last[1]
