"""Trusted samples to columns: which node and which pod each one belongs to, and what belongs to pods that have left.

A mean over the last minutes still holds what a pod used that is gone by now. A pod's series on a node where the pod is not (it moved, was
replaced under the same name, has finished, or is no more) is that part: it is booked as departed from the node, never to the pod.
Pods are told apart by namespace and name together, and by node where the series says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.pod_samples import joined
from rebalancer.collect.samples import PodKey, Samples, SignalSamples
from rebalancer.collect.sanity import DropReason
from rebalancer.state.arrays import FloatArray, IntArray

ABSURD_LOAD = 10.0
"""A node cannot be used so many times over: more is a mistake of the unit, millicores or percent say. What is allocatable may be a small
part of what there is, so a load of a few times that is possible."""


@dataclass(frozen=True, slots=True)
class NodeUsageColumns:
    usage: FloatArray
    """(nodes, signals): the newest window."""
    usage_history: FloatArray
    """(nodes, signals, windows) in the signal's unit."""
    age_s: FloatArray
    unknown: Mapping[tuple[int, int], str]
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PodUsageColumns:
    measured: FloatArray
    """(pods, signals); NaN unknown."""
    departed: FloatArray
    """(nodes, signals)."""
    dropped: Mapping[str, int]


def node_columns(names: Sequence[str], samples: Samples, *, capacity: FloatArray) -> NodeUsageColumns:
    """Every node that has no trusted newest sample, or no capacity to compare it with, gets a sentence that says so."""
    shape = (len(names), len(samples.signals))
    history = np.full((*shape, samples.windows), np.nan)
    age = np.full(shape, np.nan)
    unknown: dict[tuple[int, int], str] = {}
    for column, signal in enumerate(samples.signals):
        for row, name in enumerate(names):
            line = signal.node_usage.get(name)
            if line is not None and len(line):
                kept = np.asarray(line, dtype=np.float64)[-samples.windows :]
                history[row, column, samples.windows - len(kept) :] = kept
            age[row, column] = signal.node_age_s.get(name, np.nan)
            reason = _why_unknown(signal, name, history[row, column, -1], capacity[row, column])
            if reason:
                unknown[row, column] = reason
    absurd = history > most_believable(capacity, samples)[:, :, None]
    for row, column in zip(*np.nonzero(absurd[:, :, -1]), strict=True):
        unknown[int(row), int(column)] = _absurd(samples.signals[column], history[row, column, -1], capacity[row, column])
    history[absurd] = np.nan
    return NodeUsageColumns(
        usage=history[:, :, -1].copy(), usage_history=history, age_s=age, unknown=unknown, dropped=_counted(absurd=int(absurd.sum()))
    )


def most_believable(capacity: FloatArray, samples: Samples) -> FloatArray:
    """(nodes, signals): the most that can be used of a resource that the node has; infinity for signals that are of no resource."""
    of_resource = np.array([signal.signal.resource is not None for signal in samples.signals], dtype=np.bool_)
    return np.where(of_resource & ~np.isnan(capacity), ABSURD_LOAD * capacity, np.inf)


def _absurd(signal: SignalSamples, value: float, capacity: float) -> str:
    unit = signal.signal.unit
    return (
        f"its newest sample is {value:.4g} {unit}, {value / capacity:.0f} times the {capacity:.4g} {unit} that the node has: "
        "is it measured in another unit?"
    )


def _counted(*, absurd: int = 0, foreign: int = 0) -> Mapping[str, int]:
    counts = {DropReason.ABSURD.value: absurd, DropReason.FOREIGN.value: foreign}
    return {reason: count for reason, count in counts.items() if count}


def _why_unknown(signal: SignalSamples, node: str, newest: float, capacity: float) -> str:
    name = signal.signal.name
    if np.isnan(newest):
        return signal.node_unknown.get(node) or signal.failed or f"no sample of {name} names this node"
    return f"its {name} capacity is unknown, so {newest:.3g} {signal.signal.unit} is a share of nothing" if np.isnan(capacity) else ""


def pod_columns(
    pods: Mapping[PodKey, int], node: IntArray, *, nodes: Mapping[str, int], samples: Samples, capacity: FloatArray
) -> PodUsageColumns:
    """``pods``: (namespace, name) -> row of the pods that use a node now; ``node`` (pods,): the row of that node; ``capacity``: of nodes.

    What is more than a node can give, no pod can have used, neither one that is there nor one that has left.
    """
    most = np.vstack((most_believable(capacity, samples), np.full((1, len(samples.signals)), np.inf)))  # of no node, row -1: anything
    on_node = np.append(node, -1)
    measured = np.full((len(node), len(samples.signals)), np.nan)
    departed = np.zeros((len(nodes), len(samples.signals)))
    foreign = absurd = 0
    for column, signal in enumerate(samples.signals):
        found = joined(signal.pod_usage, pods=pods, nodes=nodes)
        by_name = found.nodeless & (found.row >= 0)
        measured[found.row[by_name], column] = found.value[by_name]
        ours = ~by_name & (found.where >= 0)
        foreign += int((~by_name & (found.where < 0)).sum())
        here = ours & (found.row >= 0) & (on_node[found.row] == found.where)
        known = here & ~np.isnan(found.value)
        measured[found.row[known], column] = found.value[known]  # a series that names the node knows better than one that does not
        away = ours & ~here
        too_much = away & (found.value > most[found.where, column])
        absurd += int(too_much.sum())
        left = away & ~too_much & ~np.isnan(found.value)  # NaN is no usage that could have left
        departed[:, column] = np.bincount(found.where[left], weights=found.value[left], minlength=len(nodes))
    spoiled = measured > most[node]
    measured[spoiled] = np.nan
    return PodUsageColumns(measured=measured, departed=departed, dropped=_counted(absurd=absurd + int(spoiled.sum()), foreign=foreign))
