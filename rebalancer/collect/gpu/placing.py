"""What each pod asks for and where it is, worked out once a distinct case and told by number.

Most pods say nothing about their devices, so that what is known of them follows from their ask and their node: a case for each such pair.
A pod that says more is a case of its own, which is kept from cycle to cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.collect.gpu.memo import Kept
from rebalancer.collect.gpu.objects import Claimed
from rebalancer.collect.gpu.pod_clues import PodGpu
from rebalancer.collect.samples import PodKey
from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.reading import Asked, asks_of
from rebalancer.gpu.meaning import Meaning, common_meaning
from rebalancer.gpu.names import GpuNames
from rebalancer.gpu.nodes.reading import NodeDevices
from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import NodeView
from rebalancer.gpu.places.reading import Placed, place
from rebalancer.gpu.sightings import Sightings
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.gpu import GpuAsk

NOWHERE = Placed()
_NO_DEVICES = NodeView("", ())


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPods:
    """Pods with something to say about GPUs; (pods here,) each. ``number``: of their clues; ``node``: row, -1 for none; ``active``: it
    uses its node. ``rows``: in the table of all pods, ascending."""

    rows: IntArray
    keys: tuple[PodKey, ...]
    records: tuple[PodGpu, ...]
    number: IntArray
    node: IntArray
    active: BoolArray


@dataclass(frozen=True, slots=True)
class AskedPods:
    """``number`` (pods here,): of ``asked``."""

    number: IntArray
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """``number`` (pods here,): of ``placed``."""

    number: IntArray
    placed: tuple[Placed, ...]


def asked_by(
    pods: GpuPods, told: Mapping[int, NodeDevices], claimed: Mapping[int, Claimed], *, names: GpuNames, memo: Kept[Asked]
) -> AskedPods:
    """With the meaning of each pod's node, or the one that all nodes with devices agree on. ``claimed``: by place among ``pods``."""
    meanings: dict[Meaning, int] = {common_meaning(each.meaning for each in told.values() if each.devices): 0}
    rows = np.fromiter(told, dtype=np.int64, count=len(told))
    of_row = np.fromiter((meanings.setdefault(each.meaning, len(meanings)) for each in told.values()), dtype=np.int64, count=len(told))
    nodes = int(max(pods.node.max(initial=-1), rows.max(initial=-1))) + 2  # the last is for none
    of_node = np.zeros(nodes, dtype=np.int64)
    of_node[rows] = of_row
    cases, first, number = np.unique(pods.number * len(meanings) + of_node[pods.node], return_index=True, return_inverse=True)
    by_number = list(meanings)
    asked: list[Asked] = []
    for case, pod in zip(cases.tolist(), first.tolist(), strict=True):
        clues, meaning = pods.records[pod].clues, by_number[case % len(meanings)]
        key = (case // len(meanings), meaning)
        asked.append(memo.find(key, (clues,)) or memo.keep(key, (clues,), asks_of(clues, Context(meaning, names))))
    for pod, claims in claimed.items():
        requests = claims.requests or (() if asked[number[pod]].asks else claims.extended)
        if requests:
            number[pod] = len(asked)
            meaning = by_number[int(of_node[pods.node[pod]])]
            asked.append(asks_of(replace(pods.records[pod].clues, claims=requests), Context(meaning, names)))
    return AskedPods(number=number, asked=tuple(asked))


def placed_by(
    pods: GpuPods,
    asked: AskedPods,
    views: Mapping[int, NodeView],
    claimed: Mapping[int, Claimed],
    *,
    sightings: Sightings,
    memo: Kept[Placed],
) -> PlacedPods:
    """Of pods that ask for something and use their node; all others are `NOWHERE`."""
    placed: list[Placed] = [NOWHERE]
    number = np.zeros(len(pods.rows), dtype=np.int64)
    asking = np.array([bool(each.asks) for each in asked.asked], dtype=np.bool_)[asked.number] & pods.active
    reported = _reported(pods, views, sightings)
    own = np.fromiter((record.tells for record in pods.records), dtype=np.bool_, count=len(pods.records))
    own[list(reported)] = True
    for pod in np.flatnonzero(asking & own).tolist():
        asks, view = asked.asked[asked.number[pod]].asks, views.get(int(pods.node[pod]), _NO_DEVICES)
        number[pod] = len(placed)
        placed.append(_own_place(pods, pod, asks, view, claimed.get(pod), reported.get(pod, ()), memo))
    alike = np.flatnonzero(asking & ~own)
    width = int(pods.node.max(initial=0)) + 1
    _, first, case = np.unique(asked.number[alike] * width + pods.node[alike], return_index=True, return_inverse=True)
    number[alike] = case + len(placed)
    for pod in alike[first].tolist():
        asks, view = asked.asked[asked.number[pod]].asks, views.get(int(pods.node[pod]), _NO_DEVICES)
        key = (view.name, id(asks))
        placed.append(memo.find(key, (asks, view)) or memo.keep(key, (asks, view), place(pods.records[pod].place, view, asks)))
    return PlacedPods(number=number, placed=tuple(placed))


def _own_place(
    pods: GpuPods,
    pod: int,
    asks: tuple[GpuAsk, ...],
    view: NodeView,
    claimed: Claimed | None,
    reported: Sequence[int],
    memo: Kept[Placed],
) -> Placed:
    record, key = pods.records[pod], pods.keys[pod]
    if claimed is not None or reported:
        return place(_with_claims(record.place, claimed), view, asks, reported=reported)
    kept = memo.find(key, (record, asks, view))
    return kept or memo.keep(key, (record, asks, view), place(record.place, view, asks))


def _with_claims(clues: PlaceClues, claimed: Claimed | None) -> PlaceClues:
    return clues if claimed is None else replace(clues, claimed=claimed.devices, missing_claims=claimed.missing)


def _reported(pods: GpuPods, views: Mapping[int, NodeView], sightings: Sightings) -> Mapping[int, list[int]]:
    """Pod -> places of the devices of its node that exporters label with it."""
    found: dict[int, list[int]] = {}
    if not sightings.pods:
        return found
    places = {
        (view.name, device.parent if device.instance >= 0 else device.uuid, device.instance): place
        for view in views.values()
        for place, device in enumerate(view.devices)
    }
    by_key = {key: pod for pod, key in enumerate(pods.keys)}
    for seen in sightings.pods:
        pod, where = by_key.get((seen.namespace, seen.pod)), places.get((seen.node, seen.uuid, seen.instance))
        if pod is not None and where is not None and seen.node == views[int(pods.node[pod])].name:
            found.setdefault(pod, []).append(where)
    return found
