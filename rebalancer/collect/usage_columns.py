"""Trusted samples to columns: which node and which pod each one belongs to, and what belongs to pods that have left.

A mean over the last minutes still holds what a pod used that is gone by now. A pod's series on a node where the pod is not (it moved, was
replaced under the same name, has finished, or is no more) is that part: it is booked as departed from the node, never to the pod.
Pods are told apart by namespace and name together, and by node where the series says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.samples import PodKey, Samples, SignalSamples
from rebalancer.collect.sanity import DropReason
from rebalancer.state.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class NodeUsageColumns:
    usage: FloatArray
    """(nodes, signals): the newest window."""
    usage_history: FloatArray
    """(nodes, signals, windows) in the signal's unit."""
    age_s: FloatArray
    unknown: Mapping[tuple[int, int], str]


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
    return NodeUsageColumns(usage=history[:, :, -1].copy(), usage_history=history, age_s=age, unknown=unknown)


def _why_unknown(signal: SignalSamples, node: str, newest: float, capacity: float) -> str:
    name = signal.signal.name
    if np.isnan(newest):
        return signal.node_unknown.get(node) or signal.failed or f"no sample of {name} names this node"
    return f"its {name} capacity is unknown, so {newest:.3g} {signal.signal.unit} is a share of nothing" if np.isnan(capacity) else ""


def pod_columns(pods: Mapping[PodKey, int], node: IntArray, *, nodes: Mapping[str, int], samples: Samples) -> PodUsageColumns:
    """``pods``: (namespace, name) -> row of the pods that use a node now; ``node`` (pods,): the row of that node."""
    measured = np.full((len(node), len(samples.signals)), np.nan)
    departed = np.zeros((len(nodes), len(samples.signals)))
    foreign = 0
    on_node: list[int] = node.tolist()
    for column, signal in enumerate(samples.signals):
        nodeless: dict[int, float] = {}
        values = [np.nan] * len(on_node)
        gone: dict[int, float] = {}
        for (namespace, pod, node_name), value in signal.pod_usage.items():
            row = pods.get((namespace, pod), -1)
            if not node_name and row >= 0:
                nodeless[row] = value
                continue
            where = nodes.get(node_name, -1)
            if where < 0:
                foreign += 1
            elif row >= 0 and on_node[row] == where:
                values[row] = value
            elif value == value:  # NaN is no usage that could have left
                gone[where] = gone.get(where, 0.0) + value
        for row, value in nodeless.items():
            if np.isnan(values[row]):
                values[row] = value
        measured[:, column] = values
        for where, value in gone.items():
            departed[where, column] = value
    return PodUsageColumns(measured=measured, departed=departed, dropped={DropReason.FOREIGN.value: foreign} if foreign else {})
