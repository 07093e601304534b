"""What nodes say of their load, kept as columns from one look to the next, so that a look costs as much as what has changed.

Thousands of nodes are annotated once a minute; at any look some dozens are new. An object that is the same as in the look before is told
by being the same object, and its row is kept; the rows of the others are read. The columns of one look are never written again: each look
that finds a change makes copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

import numpy as np

from rebalancer.collect.node_table import load_base, node_amounts
from rebalancer.kube.wire_steering import NodeLoadWire
from rebalancer.state.arrays import FloatArray, IntArray, by_column
from rebalancer.state.requests import amount, in_units
from rebalancer.steer.load_annotations import LoadColumns, Oddity, read_nodes
from rebalancer.steer.node_view import side_by_side
from rebalancer.steer.own_annotation import SIGNALS, OwnColumns, read_node_loads

_SIZED = ("cpu", "memory")
"""Signals whose size the API server tells in their own unit; of the others the size stays unknown."""
Odd = tuple[str, Oddity]


@dataclass(frozen=True, slots=True)
class Reading:
    """How annotations are read: in which zone, which series, and which pool a node with these labels is in."""

    zone: tzinfo
    series: tuple[str, ...]
    pool_of: Callable[[Mapping[str, str]], int]


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """One look. ``machine`` (nodes, `SIGNALS`) in the signals' units and ``allocatable`` (nodes, `SIGNALS`) as shares of it; float64, NaN
    unknown. ``pool`` (nodes,) as `Reading.pool_of` says."""

    names: tuple[str, ...]
    rows: Mapping[str, int]
    """name -> row"""
    crane: LoadColumns
    own: OwnColumns
    machine: FloatArray
    allocatable: FloatArray
    pool: IntArray
    odd: Mapping[Odd, str] = field(default_factory=dict)
    """(series, why) -> one of the nodes whose annotation does not count."""
    own_odd: str = ""
    """One of the nodes whose own annotation is none."""


class NodeTable:
    """Takes one list of nodes after the other, each in the order of a list."""

    def __init__(self, reading: Reading) -> None:
        self._nodes: list[NodeLoadWire] = []
        self._odd: dict[str, tuple[Odd, ...]] = {}
        self._own_odd: dict[str, None] = {}
        self._reading = reading
        self.columns = self._empty()
        """Of the last look."""

    def read_as(self, reading: Reading) -> None:
        """From now on in this way; everything is read again at the next look."""
        self._reading, self._nodes, self._odd, self._own_odd = reading, [], {}, {}
        self.columns = self._empty()

    def look(self, nodes: list[NodeLoadWire]) -> bool:
        """Bring the columns up to date. False when nothing has changed."""
        if nodes == self._nodes:  # the same objects are not compared any further
            self._nodes = nodes
            return False
        before, old = self._nodes, self.columns
        fresh = [row for row, (node, known) in enumerate(zip(nodes, before, strict=False)) if node is not known]
        self._nodes = nodes
        if len(nodes) == len(before) and all(nodes[row].metadata.name == old.names[row] for row in fresh):
            self.columns = self._with(_copied(old), fresh)
            return True
        names = side_by_side([node.metadata.name for node in nodes])
        source = np.array([old.rows.get(name, -1) for name in names], dtype=np.int64)
        fresh = [row for row, known in enumerate(source.tolist()) if known < 0 or nodes[row] is not before[known]]
        self._forget(set(old.names).difference(names))
        self.columns = self._with(_moved(old, names, source), fresh)
        return True

    def _empty(self) -> NodeColumns:
        none: list[Mapping[str, str]] = []
        size = by_column((0, len(SIGNALS)))
        crane = read_nodes(none, zone=self._reading.zone, names=self._reading.series)
        return NodeColumns((), {}, crane, read_node_loads(none), size, size, np.empty(0, dtype=np.int64))

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._odd.pop(name, None)
            self._own_odd.pop(name, None)

    def _with(self, columns: NodeColumns, fresh: Sequence[int]) -> NodeColumns:
        """The columns with some rows read anew; they are copies already."""
        nodes = [self._nodes[row] for row in fresh]
        written = [node.metadata.annotations or {} for node in nodes]
        crane, own = read_nodes(written, zone=self._reading.zone, names=self._reading.series), read_node_loads(written)
        self._note_odd(nodes, written, crane, own)
        for kept, new in zip(_arrays(columns), _arrays_of(crane, own), strict=False):
            kept[fresh] = new
        for row, node in zip(fresh, nodes, strict=True):
            columns.machine[row], columns.allocatable[row] = _size(node)
            columns.pool[row] = self._reading.pool_of(node.metadata.labels or {})
        examples: dict[Odd, str] = {}
        for name, odd in self._odd.items():
            for each in odd:
                examples.setdefault(each, name)
        counted = Counter(each for odd in self._odd.values() for each in odd)
        return replace(
            columns,
            crane=replace(columns.crane, odd=counted),
            own=replace(columns.own, odd=len(self._own_odd)),
            odd=examples,
            own_odd=next(iter(self._own_odd), ""),
        )

    def _note_odd(self, nodes: Sequence[NodeLoadWire], written: Sequence[Mapping[str, str]], crane: LoadColumns, own: OwnColumns) -> None:
        """Which of the nodes are odd. Nearly always none is, and nobody looks closer."""
        self._forget([node.metadata.name for node in nodes])
        if not crane.odd and not own.odd:
            return
        for node, each in zip(nodes, written, strict=True):
            odd = read_nodes([each], zone=self._reading.zone, names=self._reading.series).odd
            if odd:
                self._odd[node.metadata.name] = tuple(odd)
            if read_node_loads([each]).odd:
                self._own_odd[node.metadata.name] = None


def _arrays_of(crane: LoadColumns, own: OwnColumns) -> tuple[FloatArray, ...]:
    loads = (crane.usage, crane.written_at, crane.hot, crane.hot_written_at)
    return (*loads, own.load, own.deviation, own.written_at, own.expires_at)


def _arrays(columns: NodeColumns) -> tuple[FloatArray, ...]:
    return (*_arrays_of(columns.crane, columns.own), columns.machine, columns.allocatable)


def _copied(old: NodeColumns) -> NodeColumns:
    return _of(old, old.names, old.rows, [array.copy(order="K") for array in _arrays(old)], old.pool.copy())


def _moved(old: NodeColumns, names: tuple[str, ...], source: IntArray) -> NodeColumns:
    """Copies of the columns with rows where they are now; NaN for new ones (``source`` -1)."""
    rows = {name: row for row, name in enumerate(names)}
    return _of(old, names, rows, [_taken(array, source) for array in _arrays(old)], np.append(old.pool, -1)[source])


def _of(old: NodeColumns, names: tuple[str, ...], rows: Mapping[str, int], arrays: Sequence[FloatArray], pool: IntArray) -> NodeColumns:
    usage, written_at, hot, hot_written_at, load, deviation, own_at, expires_at, machine, allocatable = arrays
    crane = LoadColumns(old.crane.names, usage, written_at, hot, hot_written_at, {})
    return NodeColumns(names, rows, crane, OwnColumns(load, deviation, own_at, expires_at), machine, allocatable, pool)


def _taken(array: FloatArray, source: IntArray) -> FloatArray:
    return np.asarray(np.concatenate([array, np.full((1, *array.shape[1:]), np.nan)])[source], dtype=np.float64, order="F")


def _size(node: NodeLoadWire) -> tuple[FloatArray, FloatArray]:
    """The machine in the signals' units, and the share of it that pods may have. A size that cannot be read is unknown."""
    machine, share = np.full(len(SIGNALS), np.nan), np.full(len(SIGNALS), np.nan)
    try:
        allocatable, raw = node_amounts(node.status.allocatable, node.metadata.annotations)
    except ValueError:
        return machine, share
    for column, name in enumerate(SIGNALS):
        base = load_base(name, allocatable, raw) if name in _SIZED else None
        if base is None or base <= 0:
            continue
        whole = _capacity(node.status.capacity, name)
        machine[column] = base if whole is None else whole
        share[column] = base / machine[column]
    return machine, share


def _capacity(quantities: Mapping[str, str] | None, name: str) -> float | None:
    try:
        found = in_units(name, amount(name, (quantities or {})[name]))
    except (KeyError, ValueError):
        return None
    return found if found > 0 else None
