"""What the extender knows of the nodes: one immutable snapshot, which whoever feeds it replaces as a whole.

A request is answered from the one snapshot it began with. Nothing in it depends on the time of a request: how old is too old is decided
when it is asked.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from rebalancer.state.arrays import FloatArray, IntArray, by_column
from rebalancer.steer.load_annotations import LoadColumns
from rebalancer.steer.own_annotation import SIGNALS, OwnColumns

UNKNOWN_NODE = -1


@dataclass(frozen=True, slots=True)
class Bindings:
    """Pods bound in the last minutes, one a row: ``node`` (bindings,) its row in the view or `UNKNOWN_NODE`; ``at`` (bindings,) Unix
    seconds."""

    node: IntArray
    at: FloatArray


NO_BINDINGS = Bindings(np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(frozen=True, slots=True)
class Room:
    """What is reserved on a few nodes: ``rows`` (k,) of the view, the same one perhaps more than once; ``shares`` (k, `SIGNALS`) of them.

    Kept apart from the loads of thousands of nodes, which are not copied for it at each request.
    """

    rows: IntArray
    shares: FloatArray

    def added_to(self, loads: FloatArray, signal: str) -> None:
        """``loads`` (nodes of the view,) of the signal, in place; what is unknown stays so."""
        np.add.at(loads, self.rows, self.shares[:, SIGNALS.index(signal)])


@dataclass(frozen=True, slots=True)
class NodeView:
    """``capacity`` (nodes, `SIGNALS`) in the signals' units and ``bound`` (nodes, `SIGNALS`) as shares of it, see `own_score.bound_load`;
    float64, NaN unknown."""

    names: tuple[str, ...]
    rows: Mapping[str, int]
    crane: LoadColumns
    own: OwnColumns
    capacity: FloatArray
    bound: FloatArray
    made_at: float
    """Unix seconds."""
    bindings: Bindings = NO_BINDINGS
    room: Room | None = None
    """What counts as used although it is not."""

    def bound_by(self, signal: str) -> FloatArray:
        """(nodes,): `bound`, and the room that is reserved."""
        bound = self.bound[:, SIGNALS.index(signal)]
        if self.room is None:
            return bound
        bound = bound.copy()
        self.room.added_to(bound, signal)
        return bound

    def rows_of(self, names: Sequence[str]) -> IntArray:
        """(names,): the row of each, `UNKNOWN_NODE` for a node that the view does not have."""
        found = struct.pack(f"={len(names)}q", *map(self.rows.get, names, repeat(UNKNOWN_NODE)))  # faster than numpy takes in one by one
        return np.frombuffer(found, dtype=np.int64)

    def names_at(self, rows: IntArray) -> list[str]:
        """The names of rows that the view has."""
        names = self.names
        return [names[row] for row in rows.tolist()]


def side_by_side(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, one behind the other in memory.

    They are looked up by the thousand for each question, mostly in their order, and what lies scattered among the objects that they came
    with takes twice the time.
    """
    copies = tuple("\0".join(names).split("\0")) if names else ()
    return copies if len(copies) == len(names) else tuple(names)


def node_view(
    names: Sequence[str],
    *,
    crane: LoadColumns,
    own: OwnColumns,
    made_at: float,
    capacity: FloatArray | None = None,
    bound: FloatArray | None = None,
    bindings: Bindings = NO_BINDINGS,
    rows: Mapping[str, int] | None = None,
) -> NodeView:
    """A view whose arrays nobody can write any more. Without ``capacity`` nodes are judged without what the pod asks for; without
    ``bound``, nothing is anticipated. ``rows``: name -> row, where that is known already."""
    shape = (len(names), len(SIGNALS))
    if rows is None:
        names = side_by_side(names)
        rows = {name: row for row, name in enumerate(names)}  # no proxy: it is asked thousands of times a request
    view = NodeView(
        names=tuple(names),
        rows=rows,
        crane=crane,
        own=own,
        capacity=by_column(shape) if capacity is None else capacity,
        bound=by_column(shape, fill=0.0) if bound is None else bound,
        made_at=made_at,
        bindings=bindings,
    )
    arrays = (view.capacity, view.bound, crane.usage, crane.written_at, crane.hot, crane.hot_written_at)
    for array in (*arrays, own.load, own.deviation, own.written_at, own.expires_at):
        array.setflags(write=False)
    return view
