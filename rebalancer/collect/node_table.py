"""The node table: what the API server says of nodes, and what load is a share of.

Load is a share of allocatable, as packing is, so that the two can be compared. Where an over-sell webhook amplifies allocatable, the
scheduler's figure stays amplified, but load is a share of the raw one, which such webhooks publish in an annotation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from rebalancer.collect.samples import Samples, SignalSamples
from rebalancer.collect.usage_columns import NodeUsageColumns
from rebalancer.kube.wire import NodeWire
from rebalancer.state.arrays import FloatArray
from rebalancer.state.requests import Amounts, amount, amounts, in_units
from rebalancer.state.scheduling import Taint
from rebalancer.state.tables import Nodes

RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"
"""JSON of quantities: allocatable before the webhook multiplied it."""
_AMPLIFIED = ("cpu", "memory")
_PODS = "pods"


@dataclass(frozen=True, slots=True)
class NodeAmounts:
    """(nodes,) allocatable as the scheduler reads it, and the raw one where it is published. ``unreadable``: names of nodes whose
    allocatable is no set of quantities; nothing fits there and their load is unknown."""

    allocatable: tuple[Amounts, ...]
    raw: tuple[Amounts, ...]
    unreadable: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for each in self.allocatable for name in each)


def sorted_nodes(wires: Sequence[NodeWire]) -> list[NodeWire]:
    """By name, each name once, whatever order the pages came in."""
    by_name = {wire.metadata.name: wire for wire in wires}
    return [by_name[name] for name in sorted(by_name)]


def read_amounts(wires: Sequence[NodeWire]) -> NodeAmounts:
    allocatable: list[Amounts] = []
    raw: list[Amounts] = []
    unreadable: list[str] = []
    for wire in wires:
        try:
            found, unamplified = node_amounts(wire.status.allocatable, wire.metadata.annotations)
        except ValueError:
            unreadable.append(wire.metadata.name)
            found, unamplified = {}, {}
        allocatable.append(found)
        raw.append(unamplified)
    return NodeAmounts(allocatable=tuple(allocatable), raw=tuple(raw), unreadable=tuple(unreadable))


def node_amounts(quantities: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> tuple[Amounts, Amounts]:
    """Allocatable of a node, and the raw one where it is published. Raises ValueError when it is no set of quantities."""
    found = _allocatable(quantities or {})
    return found, _raw(annotations or {}) if found else {}


def load_base(resource: str, allocatable: Amounts, raw: Amounts) -> float | None:
    """What load is a share of, in the state's units; None where the node does not have the resource."""
    value = raw.get(resource, allocatable.get(resource))
    return None if value is None else in_units(resource, value)


def _allocatable(quantities: Mapping[str, str]) -> Amounts:
    found = dict(amounts(quantities))
    if _PODS in quantities:
        found[_PODS] = amount(_PODS, quantities[_PODS])
    return found


def _raw(annotations: Mapping[str, str]) -> Amounts:
    """The amplified resources before they were; empty when nothing readable is published."""
    text = annotations.get(RAW_ALLOCATABLE)
    if not text:
        return {}
    try:
        found = amounts(msgspec.json.decode(text, type=dict[str, str]))
    except (msgspec.DecodeError, ValueError):
        return {}
    return {name: value for name, value in found.items() if name in _AMPLIFIED and value > 0}


def allocatable_matrix(found: NodeAmounts, resources: Sequence[str]) -> FloatArray:
    """(nodes, resources): 0 where a node does not have the resource."""
    column = {name: number for number, name in enumerate(resources)}
    matrix = np.zeros((len(found.allocatable), len(resources)))
    for row, each in enumerate(found.allocatable):
        for name, value in each.items():
            matrix[row, column[name]] = in_units(name, value)
    return matrix


def capacity_matrix(names: Sequence[str], found: NodeAmounts, samples: Samples) -> FloatArray:
    """(nodes, signals): from the signal's own query or value, else allocatable before any over-sell; NaN where there is neither."""
    matrix = np.full((len(names), len(samples.signals)), np.nan)
    for column, signal in enumerate(samples.signals):
        for row, name in enumerate(names):
            value = _capacity(signal, name, found.allocatable[row], found.raw[row])
            if value is not None and np.isfinite(value) and value > 0:
                matrix[row, column] = value
    return matrix


def _capacity(signal: SignalSamples, node: str, allocatable: Amounts, raw: Amounts) -> float | None:
    if signal.capacity is not None:
        return signal.capacity.get(node)
    resource = signal.capacity_resource or signal.signal.resource
    return None if resource is None else load_base(resource, allocatable, raw)


def base_notes(found: NodeAmounts) -> list[str]:
    """Which base of load is not the plain one, in words."""
    notes: list[str] = []
    published = sum(1 for each in found.raw if each)
    if published:
        notes.append(f"the load of {published} nodes is a share of their raw allocatable ({RAW_ALLOCATABLE}), not of the amplified one")
    if found.unreadable:
        notes.append(f"allocatable of {len(found.unreadable)} nodes cannot be read ({found.unreadable[0]} is one): nothing is placed there")
    return notes


def build_nodes(
    wires: Sequence[NodeWire], *, allocatable: FloatArray, capacity: FloatArray, usage: NodeUsageColumns, departed: FloatArray
) -> Nodes:
    return Nodes(
        names=tuple(wire.metadata.name for wire in wires),
        labels=tuple(wire.metadata.labels or {} for wire in wires),
        annotations=tuple(wire.metadata.annotations or {} for wire in wires),
        taints=tuple(
            tuple(Taint(key=taint.key, value=taint.value or "", effect=taint.effect) for taint in wire.spec.taints or ()) for wire in wires
        ),
        unschedulable=np.array([bool(wire.spec.unschedulable) for wire in wires], dtype=np.bool_),
        ready=np.array([is_ready(wire) for wire in wires], dtype=np.bool_),
        created_at=np.array(
            [np.nan if wire.metadata.creation_timestamp is None else wire.metadata.creation_timestamp.timestamp() for wire in wires],
            dtype=np.float64,
        ),
        allocatable=allocatable,
        capacity=capacity,
        usage=usage.usage,
        departed=departed,
        sample_age_s=usage.age_s,
        history=usage.usage_history / capacity[:, :, None],
        unknown=usage.unknown,
    )


def is_ready(wire: NodeWire) -> bool:
    """Condition Ready is True; Unknown, which is what a silent kubelet gets, is not ready."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in wire.status.conditions or ())
