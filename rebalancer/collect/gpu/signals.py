"""The signals of GPUs beside those that are read by node and pod: their places on the axis, which the tables of devices fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.collect.gpu.assembling import GpuWords
from rebalancer.collect.gpu.measuring import GPU, GPU_MEMORY, gpu_columns
from rebalancer.collect.samples import Samples, SignalSamples
from rebalancer.collect.usage_columns import NodeUsageColumns, PodUsageColumns
from rebalancer.gpu.meters.devices import Beliefs
from rebalancer.policy.model import Spec
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.devices import Gpus
from rebalancer.state.tables import Signal

SIGNALS = (Signal(GPU, "devices", scoped=True), Signal(GPU_MEMORY, "bytes", scoped=True))


def beliefs_of(spec: Spec) -> Beliefs:
    metrics = spec.gpu.metrics
    return Beliefs(
        max_age_s=spec.metrics.max_age,
        idle_below=spec.gpu.idle.busy_below / 100,
        fatal_xids=frozenset(metrics.fatal_xids),
        too_hot=metrics.too_hot,
    )


def with_gpu_signals(samples: Samples, words: GpuWords, spec: Spec) -> Samples:
    """With a place for each signal of GPUs that the policy judges and gives no query of its own for, in the order of the policy's
    signals."""
    own = {signal.name for signal in spec.signals}
    wanted = [signal for signal in SIGNALS if signal.name in spec.judged_signals and signal.name not in own]
    signals = {each.signal.name: each for each in samples.signals}
    for signal in wanted:
        signals[signal.name] = SignalSamples(
            signal=signal,
            node_usage={},
            node_age_s={},
            node_unknown={},
            pod_usage={},
            capacity={},
            failed=words.samples.failed,
            source=", ".join(words.samples.shapes),
        )
    ordered = tuple(signals[name] for name in spec.judged_signals if name in signals)
    dropped = {**samples.dropped}
    for reason, count in words.samples.dropped.items():
        dropped[reason.value] = dropped.get(reason.value, 0) + count
    notes = (*samples.notes, *words.notes, *words.samples.notes, *(f"GPUs: {shape}" for shape in words.samples.shapes))
    return replace(samples, signals=ordered, dropped=dropped, notes=notes)


@dataclass(frozen=True, slots=True)
class Filled:
    """The columns of usage with those of GPUs."""

    capacity: FloatArray
    nodes: NodeUsageColumns
    pods: PodUsageColumns
    estimated: BoolArray
    """(pods, signals): a part of a device's value, by measurement of the device alone."""


def filled(
    gpus: Gpus,
    words: GpuWords,
    samples: Samples,
    *,
    names: Sequence[str],
    node: IntArray,
    active: BoolArray,
    capacity: FloatArray,
    nodes: NodeUsageColumns,
    pods: PodUsageColumns,
) -> Filled:
    """``node`` and ``active`` (pods,): the row of the node, and whether the pod uses it."""
    estimated = np.zeros(pods.measured.shape, dtype=np.bool_)
    scoped = [column for column, each in enumerate(samples.signals) if each.signal.scoped]
    if not scoped:
        return Filled(capacity, nodes, pods, estimated)
    capacity, measured = capacity.copy(), pods.measured.copy()
    usage, history, age, unknown = nodes.usage.copy(), nodes.usage_history.copy(), nodes.age_s.copy(), dict(nodes.unknown)
    for column in scoped:
        found = gpu_columns(
            gpus, words.samples, samples.signals[column].signal.name, names=names, node=node, windows=history.shape[2], on_node=active
        )
        capacity[:, column], usage[:, column], history[:, column], age[:, column] = found.capacity, found.usage, found.history, found.age_s
        measured[:, column], estimated[:, column] = found.measured, found.estimated
        unknown = {key: why for key, why in unknown.items() if key[1] != column}
        unknown |= {(row, column): why for row, why in found.why.items()}
    return Filled(
        capacity,
        replace(nodes, usage=usage, usage_history=history, age_s=age, unknown=unknown),
        replace(pods, measured=measured),
        estimated,
    )
