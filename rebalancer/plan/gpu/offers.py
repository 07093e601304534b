"""What the nodes offer for one need: the devices that its scheme may give, and which of them would be right for the pod.

Worked out once for each need and model, since neither changes while a plan grows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rebalancer.plan.gpu.needs import VIRTUAL, Kind, Need
from rebalancer.plan.gpu.table import DeviceTable
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.gpu import ANY_MODEL


@dataclass(frozen=True, slots=True)
class Offer:
    """``rows``: of devices, ascending; the other columns are (rows,)."""

    need: Need
    rows: IntArray
    node: IntArray
    """Of each device."""
    right: BoolArray
    """The device means the same to the pod as what it asks for, and is of a model that it may be on."""
    model: BoolArray
    """Its model is one that the pod may be on."""
    memory: FloatArray
    """Bytes that the need is of the device, by what was asked for; NaN unknown."""
    largest: FloatArray
    """The same of the greatest single ask."""

    def on(self, node: int) -> Offer:
        """What of it is of one node."""
        first, last = np.searchsorted(self.node, (node, node + 1)).tolist()
        return self._part(slice(first, last))

    def within(self, nodes: BoolArray) -> Offer:
        """What of it is of the nodes under a mask (nodes,)."""
        return self._part(np.flatnonzero(nodes[self.node]))

    def _part(self, own: slice | IntArray) -> Offer:
        return Offer(
            need=self.need,
            rows=self.rows[own],
            node=self.node[own],
            right=self.right[own],
            model=self.model[own],
            memory=self.memory[own],
            largest=self.largest[own],
        )

    def any_on(self, nodes: int, mask: BoolArray) -> BoolArray:
        """(nodes,): some device under the mask (rows,) is of the node."""
        found = np.zeros(nodes, dtype=np.bool_)
        found[self.node[mask]] = True
        return found

    def count_on(self, nodes: int, mask: BoolArray) -> IntArray:
        """(nodes,): devices under the mask (rows,)."""
        return np.bincount(self.node[mask], minlength=nodes).astype(np.int64)


def offer_of(table: DeviceTable, need: Need, models: frozenset[str] | None) -> Offer:
    """``models``: of the devices that the pod is on; None where any model will do that the pod asks for."""
    served = np.array([need.served_by(kind) for kind in table.kinds] or [False], dtype=np.bool_)
    model = np.array([_may_be_on(need, kind, models) for kind in table.kinds] or [False], dtype=np.bool_)
    right = model & np.array([need.right_on(kind) for kind in table.kinds] or [False], dtype=np.bool_)
    rows = np.flatnonzero(served[table.kind] & table.given)
    allowed = _by_uuid(table, need)
    if allowed is not None and need.scheme in VIRTUAL:
        rows = rows[allowed[rows]]
    kind = table.kind[rows]
    on_model, on_right = model[kind], right[kind]
    if allowed is not None:
        on_right = on_right & allowed[rows]
    handed_out = table.handed_out[rows]
    return Offer(
        need=need,
        rows=rows,
        node=table.devices.node[rows],
        right=on_right,
        model=on_model,
        memory=_bytes(need.memory_bytes, need.memory_share, handed_out),
        largest=_bytes(need.largest[1], need.largest[2], handed_out),
    )


def _bytes(in_bytes: float, in_share: float, device_bytes: FloatArray) -> FloatArray:
    return np.asarray(in_bytes + in_share * device_bytes if in_share else np.full(len(device_bytes), in_bytes), dtype=np.float64)


def _may_be_on(need: Need, kind: Kind, models: frozenset[str] | None) -> bool:
    """A device of a model that is not known is none that a pod may be on, where it matters which it is."""
    wanted = need.model
    labels = (kind.model,) if any(_names(label, kind.model) for label in wanted.models) else wanted.models
    if replace(wanted, models=labels, uuids=(), not_uuids=()).admits(model=kind.model) is not True:
        return False
    if wanted.models or wanted.like:
        return True
    return models is None or (len(models) == 1 and bool(kind.model) and kind.model in models)


def _names(label: str, model: str) -> bool:
    """Whether a node label's value names the model; sharing adds to it what it does to the device."""
    return bool(model) and (label == model or label.startswith(f"{model}-"))


def _by_uuid(table: DeviceTable, need: Need) -> BoolArray | None:
    """(devices,): those that the hints of the pod leave, none without a uuid; None where the hints name none."""
    wanted = need.model
    if wanted is ANY_MODEL or not (wanted.uuids or wanted.not_uuids):
        return None
    known = table.uuid_rows
    allowed = np.zeros(len(table.devices), dtype=np.bool_)
    if not wanted.uuids:
        allowed[list(known.values())] = True
    allowed[[known[uuid] for uuid in wanted.uuids if uuid in known]] = True
    allowed[[known[uuid] for uuid in wanted.not_uuids if uuid in known]] = False
    return allowed
