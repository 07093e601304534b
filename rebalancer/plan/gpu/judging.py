"""Which devices of an offer a scheme could give, which of those are sure to be free, and which are good: masks over the offer's rows.

By ask, a part of a device needs that much of it among all that were given parts; a device alone needs one with nobody on it; a replica
needs one that has a turn left. By measurement, the larger of what was asked for and what the pod uses has to be free of what the device
physically has, less the larger of what was given away and what is used. Unknown is neither free nor idle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rebalancer.plan.gpu.columns import Columns
from rebalancer.plan.gpu.needs import VIRTUAL
from rebalancer.plan.gpu.offers import Offer
from rebalancer.plan.gpu.table import DeviceTable
from rebalancer.state.arrays import BoolArray, FloatArray

_NOISE = 1e-6
"""What adding up shares may have added to one, as a share of a device."""


class Use(NamedTuple):
    """What a pod uses at most of any one device; NaN unknown."""

    memory_bytes: float
    busy: float


@dataclass(frozen=True, slots=True)
class Judge:
    """``by_request``: a device whose memory no exporter measures may be judged by what was asked for alone."""

    table: DeviceTable
    columns: Columns
    by_request: bool

    def could_give(self, offer: Offer) -> BoolArray:
        """What the scheme could give now, whichever devices it has taken for the bookings: where unknown, it could."""
        rows, columns = offer.rows, self.columns
        if offer.need.alone:
            return np.asarray(columns.holders[rows] == 0, dtype=np.bool_)
        if offer.need.by_plugin:
            return self._has_turns(offer)
        return self._has_part(offer, offer.largest, offer.need.largest[0], columns.compute[rows], columns.memory[rows], unknown=True)

    def would_give(self, offer: Offer) -> BoolArray:
        """The same with the bookings on the devices where they most likely are."""
        rows, columns = offer.rows, self.columns
        if offer.need.alone:
            return np.asarray(columns.holders[rows] + columns.likely_holders[rows] == 0, dtype=np.bool_)
        if offer.need.by_plugin:
            return self._has_turns(offer)
        compute, memory = columns.compute[rows] + columns.likely_compute[rows], columns.memory[rows] + columns.likely_memory[rows]
        return self._has_part(offer, offer.largest, offer.need.largest[0], compute, memory, unknown=True)

    def surely_free(self, offer: Offer) -> BoolArray:
        """The devices with room by ask wherever bookings and pods of unknown places are. Not for devices alone, which are counted."""
        rows, columns, node = offer.rows, self.columns, offer.node
        if offer.need.by_plugin:
            return self._has_turns(offer)
        compute = columns.compute[rows] + columns.held_compute[rows] + columns.hidden_compute[node]
        memory = columns.memory[rows] + columns.held_memory[rows] + columns.hidden_memory[node]
        free = self._has_part(offer, offer.memory, offer.need.compute, compute, memory, unknown=False)
        return np.asarray(free & ((columns.holders[rows] > 0) | (columns.taken[node] == 0)), dtype=np.bool_)

    def good(self, offer: Offer, use: Use) -> BoolArray:
        """Whether a device of the offer could take the pod with all that is known of both."""
        sound = self.table.sound[offer.rows] & offer.right
        if offer.need.alone:
            return np.asarray(sound & self._empty(offer, use), dtype=np.bool_)
        return np.asarray(sound & self._roomy(offer, use) & ~self.too_busy(offer, use), dtype=np.bool_)

    def too_busy(self, offer: Offer, use: Use) -> BoolArray:
        """Known to be kept busy for more than all of the time with the pod on it."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.table.busy[offer.rows] + use.busy > 1 + _NOISE, dtype=np.bool_)

    def over_full(self, offer: Offer) -> BoolArray:
        """More of the device's memory is given away than it has: whatever hands it out does not keep count."""
        rows = offer.rows
        with np.errstate(invalid="ignore"):
            return np.asarray(self.columns.memory[rows] > self.table.total[rows] * (1 + _NOISE), dtype=np.bool_)

    def room(self, offer: Offer) -> FloatArray:
        """(rows,) bytes that are free by measurement and by ask, reservations included; NaN unknown."""
        rows, columns = offer.rows, self.columns
        total, used = self.table.total[rows], columns.used[rows]
        if self.by_request:
            total = np.where(np.isnan(total), self.table.handed_out[rows], total)
            used = np.nan_to_num(used)
        return np.asarray(total - np.maximum(columns.memory[rows], used) - columns.reserved[rows], dtype=np.float64)

    def wanted(self, offer: Offer, use: Use) -> FloatArray:
        """(rows,) bytes that the pod wants of each: the larger of ask and use; NaN unknown."""
        larger = np.fmax if self.by_request else np.maximum
        return np.asarray(larger(offer.memory, use.memory_bytes), dtype=np.float64)

    def free_by_ask(self, offer: Offer) -> FloatArray:
        """(rows,) bytes that the scheme counts as free, likely bookings included; NaN unknown."""
        rows, columns = offer.rows, self.columns
        return np.asarray(self.table.handed_out[rows] - columns.memory[rows] - columns.likely_memory[rows], dtype=np.float64)

    def _empty(self, offer: Offer, use: Use) -> BoolArray:
        rows = offer.rows
        used, total = self.columns.used[rows], self.table.total[rows]
        with np.errstate(invalid="ignore"):
            empty, holds = used <= self.table.left[rows], use.memory_bytes <= total
        if self.by_request:
            empty, holds = empty | np.isnan(used), holds | np.isnan(total) | np.isnan(use.memory_bytes)
        return np.asarray(empty & holds, dtype=np.bool_)

    def _roomy(self, offer: Offer, use: Use) -> BoolArray:
        with np.errstate(invalid="ignore"):
            enough = self.room(offer) + _NOISE * np.nan_to_num(self.table.total[offer.rows]) >= self.wanted(offer, use)
        return np.asarray(enough, dtype=np.bool_)

    def _has_turns(self, offer: Offer) -> BoolArray:
        rows, columns = offer.rows, self.columns
        replicas = self.table.devices.replicas[rows]
        with np.errstate(invalid="ignore"):
            return np.asarray((columns.alone[rows] == 0) & ~(columns.units[rows] >= replicas), dtype=np.bool_)

    def _has_part(
        self, offer: Offer, asked: FloatArray, share: float, compute: FloatArray, memory: FloatArray, *, unknown: bool
    ) -> BoolArray:
        """``unknown``: what is not known is taken to be free, and else to be not."""
        rows, columns = offer.rows, self.columns
        handed_out = self.table.handed_out[rows]
        with np.errstate(invalid="ignore"):
            lacks = ~(handed_out - memory + _NOISE * handed_out >= asked)
            if unknown:
                lacks &= ~np.isnan(handed_out - memory - asked)
        fits = (columns.alone[rows] == 0) & ~lacks & (compute + share <= 1 + _NOISE)
        if offer.need.scheme in VIRTUAL:
            fits &= self._has_turns(offer) & (compute < 1 - _NOISE)
        return np.asarray(fits if unknown else fits & (columns.unknown[rows] == 0), dtype=np.bool_)
