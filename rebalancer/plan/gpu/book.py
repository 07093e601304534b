"""The book of devices of a plan: where a replacement could be given what it asks for, where that is sure to be well, and what is booked.

Which device a pod gets is for its scheme to choose. Where the rule is known (gpushare takes the fitting device with the least free memory,
the first of those that are alike) the book counts on that one; a node where a booking counts on the rule takes no other in the same plan,
since the order in which replacements come is not the plan's. Everywhere else the worst choice has to be good: a node fits when every device
that the scheme could give the pod has room for it by measurement, is sound, and is of the right model.

An evicted pod keeps what it holds until it is gone. `release` says that it is; bookings and releases are undone in reverse order.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rebalancer.plan.gpu.columns import Columns, Saved, columns_of, hidden_bytes
from rebalancer.plan.gpu.judging import Judge, Use
from rebalancer.plan.gpu.needs import BY_BEST_FIT, Need, Needs, needs_of
from rebalancer.plan.gpu.offers import Offer, offer_of
from rebalancer.plan.gpu.table import DeviceTable, units_of
from rebalancer.policy.gpu import Gpu
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.cluster import ClusterState

OfferKey = tuple[Need, frozenset[str] | None]


class DeviceBook:
    """Nothing is worked out before the first pod that asks for a device is looked at."""

    def __init__(self, state: ClusterState, policy: Gpu | None = None) -> None:
        self.state = state
        self.policy = policy or Gpu()
        self._log: list[Saved] = []
        self._offers: dict[OfferKey, Offer] = {}
        self._offered: dict[int, tuple[Offer, ...]] = {}
        self._uses: dict[int, Use] = {}
        self._kept: dict[int, tuple[Offer, BoolArray]] = {}
        """By id of an offer: where it is possible now."""

    def copy(self) -> DeviceBook:
        """A book of its own with the same bookings, for trials; its log begins anew."""
        other = DeviceBook(self.state, self.policy)
        other._offers, other._offered, other._uses = self._offers, self._offered, self._uses  # which bookings do not change
        other.table, other.needs, other.columns = self.table, self.needs, self.columns.copy()
        return other

    @cached_property
    def table(self) -> DeviceTable:
        return DeviceTable(self.state)

    @cached_property
    def needs(self) -> tuple[Needs, ...]:
        """By row of ``gpus.asks``."""
        return tuple(needs_of(asks) for asks in self.state.gpus.asks)

    @cached_property
    def columns(self) -> Columns:
        return columns_of(self.table, self.needs)

    @cached_property
    def judge(self) -> Judge:
        return Judge(self.table, self.columns, self.policy.unmeasured == "by-request")

    def asks(self, pod: int) -> bool:
        """Whether the pod asks for devices at all; the other questions are for those that do."""
        return len(self.state.gpus.pod) > 0 and pod in self.table.ask_of_pod

    def needs_of(self, pod: int) -> Needs:
        return self.needs[self.table.ask_of_pod[pod]]

    def use_of(self, pod: int) -> Use:
        found = self._uses.get(pod)
        if found is None:
            memory = self.table.memory_of(pod, by_request=self.policy.unmeasured == "by-request")
            found = self._uses[pod] = Use(memory, self.table.busy_of(pod))
        return found

    def possible(self, pod: int) -> BoolArray:
        """(nodes,): where the scheme's scheduler would find a device for it by what was asked for. True for nodes that cannot be read, and
        for what device plugins hand out, which kube-scheduler counts by the node."""
        mask = np.ones(len(self.state.nodes.names), dtype=np.bool_)
        needs = self.needs_of(pod)
        for offer in self.offered(pod) if not needs.obstacle else ():
            if not offer.need.by_plugin:
                mask &= self._possible(offer)
        return mask

    def _possible(self, offer: Offer) -> BoolArray:
        """(nodes,): kept until something is booked, since most pods that are looked at ask alike."""
        kept = self._kept.get(id(offer))
        if kept is None or kept[0] is not offer:
            nodes = len(self.state.nodes.names)
            enough = offer.count_on(nodes, self.judge.would_give(offer)) >= offer.need.devices
            kept = self._kept[id(offer)] = (offer, enough | self.table.faulty)
        return kept[1]

    def fits(self, pod: int, nodes: IntArray | None = None) -> BoolArray:
        """(nodes,): where it is possible, and whatever device its scheme gives it is a good one. With ``nodes``: of these rows alone."""
        columns, table = self.columns, self.table
        if self.needs_of(pod).obstacle:
            return np.zeros(len(columns.closed) if nodes is None else len(nodes), dtype=np.bool_)
        mask, use = ~columns.closed & ~table.faulty, self.use_of(pod)
        asked = np.zeros(len(mask), dtype=np.bool_)
        if nodes is not None:
            asked[nodes] = True
        for offer in self.offered(pod):
            mask &= self._fits(offer if nodes is None else offer.within(asked), use)
        return mask if nodes is None else mask[nodes]

    def book(self, pod: int, node: int) -> None:
        """Count the devices of a replacement on the node, whether it fits there or not."""
        self._save(node)
        self.columns.booked[node] += 1
        if self.needs_of(pod).obstacle:
            self.columns.closed[node] = True
        else:
            use = self.use_of(pod)
            for offer in self.offered(pod):
                self._book(offer, use, node)

    def release(self, pod: int) -> None:
        """The pod is gone from its node, and what it held is free."""
        node = int(self.state.pods.node[pod])
        self._save(node)
        gpus, columns = self.state.gpus, self.columns
        pairs = self.table.pairs_of(pod)
        rows, held = gpus.held.device[pairs], gpus.held
        own = np.full(len(pairs), np.nan)
        if len(gpus.held_use):
            own = np.where(gpus.held_use.estimated[pairs], np.nan, gpus.held_use.memory_bytes[pairs])
        columns.holders[rows] -= 1
        columns.alone[rows] -= held.exclusive[pairs]
        columns.units[rows] -= units_of(self.table, pairs)
        columns.compute[rows] -= np.nan_to_num(held.compute[pairs])
        columns.memory[rows] -= np.nan_to_num(held.memory_bytes[pairs])
        columns.unknown[rows] -= np.isnan(held.memory_bytes[pairs])
        left = np.maximum(0.0, columns.used[rows] - np.nan_to_num(own))
        columns.used[rows] = np.where(columns.holders[rows] == 0, np.minimum(left, self.table.left[rows]), left)
        if pod in self._unplaced:
            for need in self.needs_of(pod).each:
                columns.hidden_devices[node] -= need.devices if need.alone else 0
                columns.hidden_compute[node] -= 0.0 if need.alone else need.compute
                columns.hidden_memory[node] -= hidden_bytes(need)

    def mark(self) -> int:
        """A point to come back to by `undo`."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Take back all bookings and releases since the mark."""
        self._kept.clear()
        while len(self._log) > mark:
            self.columns.restore(self._log.pop())

    @cached_property
    def _unplaced(self) -> frozenset[int]:
        return frozenset(self.state.gpus.unplaced.tolist())

    def _save(self, node: int) -> None:
        self._kept.clear()
        self._log.append(self.columns.save(self.table.devices.of_node(node), node))

    def offered(self, pod: int) -> tuple[Offer, ...]:
        """What nodes offer for each need of the pod."""
        found = self._offered.get(pod)
        if found is None:
            models = None if not self.policy.same_model or int(self.state.pods.node[pod]) < 0 else self.table.models_of(pod)
            found = self._offered[pod] = tuple(self._offer(need, models) for need in self.needs_of(pod).each)
        return found

    def _offer(self, need: Need, models: frozenset[str] | None) -> Offer:
        key = (need, models)
        offer = self._offers.get(key)
        if offer is None:
            offer = self._offers[key] = offer_of(self.table, need, models)
        return offer

    def _fits(self, offer: Offer, use: Use) -> BoolArray:
        nodes, judge, columns, need = len(self.state.nodes.names), self.judge, self.columns, offer.need
        could, good = judge.could_give(offer), judge.good(offer, use)
        if need.alone:
            free = offer.count_on(nodes, could) - columns.hidden_devices - columns.taken - columns.begun
            sure = free >= need.devices
        else:
            sure = offer.count_on(nodes, judge.surely_free(offer)) >= need.devices
            if not need.by_plugin:
                sure &= columns.hidden_devices == 0
        bad = offer.any_on(nodes, could & ~good)
        if need.scheme in BY_BEST_FIT:
            bad &= offer.any_on(nodes, ~good & self.next_given(offer)) | (columns.booked > 0) | self._uncertain(offer)
        return np.asarray(sure & ~bad & ~offer.any_on(nodes, judge.over_full(offer)), dtype=np.bool_)

    def next_given(self, offer: Offer) -> BoolArray:
        """(rows,): the device of each node that the rule of best fit takes next."""
        judge = self.judge
        rows = np.flatnonzero(judge.would_give(offer))
        order = rows[np.lexsort((self.table.devices.index[offer.rows[rows]], judge.free_by_ask(offer)[rows], offer.node[rows]))]
        first: IntArray = np.unique(offer.node[order], return_index=True)[1]
        chosen = np.zeros(len(offer.rows), dtype=np.bool_)
        chosen[order[first]] = True
        return chosen

    def _uncertain(self, offer: Offer) -> BoolArray:
        """(nodes,): which device is next hangs on what is not known."""
        nodes, columns = len(self.state.nodes.names), self.columns
        hidden = (columns.hidden_devices > 0) | ~(columns.hidden_memory == 0)
        return np.asarray(hidden | offer.any_on(nodes, columns.unknown[offer.rows] > 0), dtype=np.bool_)

    def _book(self, offer: Offer, use: Use, node: int) -> None:
        need, columns, judge = offer.need, self.columns, self.judge
        own = offer.on(node)
        could, would = judge.could_give(own), judge.would_give(own)
        candidates = own.rows[could]
        if need.alone:
            columns.taken[node] += need.devices
            columns.likely_holders[own.rows[would][: need.devices]] += 1
            return
        bad = could & ~judge.good(own, use)
        wanted = np.nan_to_num(judge.wanted(own, use), nan=np.inf)
        columns.reserved[candidates] += wanted[could]
        if need.by_plugin:
            return
        if need.scheme in BY_BEST_FIT and bad.any():
            columns.closed[node] = True
        if (columns.holders[candidates] == 0).any():
            columns.begun[node] += need.devices
        columns.held_compute[candidates] += need.compute
        columns.held_memory[candidates] += own.memory[could]
        free = np.where(would, judge.free_by_ask(own), np.inf)
        likely = np.lexsort((self.table.devices.index[own.rows], free))[: need.devices]
        likely = likely[would[likely]]
        columns.likely_holders[own.rows[likely]] += 1
        columns.likely_compute[own.rows[likely]] += need.compute
        columns.likely_memory[own.rows[likely]] += np.nan_to_num(own.memory[likely])
