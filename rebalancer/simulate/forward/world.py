"""The fast-forward world: a clock that goes from sample to sample, and what happens to nodes and pods between two of them.

One tick: what comes from outside, pending pods are placed, every running pod uses what its slot wants, CPU is throttled where a node has
not enough, the gauges take a sample, pods whose end has come are gone. Between ticks a strategy may look and act. Times of starts and ends
lie anywhere between ticks; a pod that was there for a part of a tick uses that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.plan.grades import HOT, SOFT_TAINTS
from rebalancer.policy.hotness import Metrics
from rebalancer.simulate.forward.arranging import NOT_YET
from rebalancer.simulate.forward.chance import Stream, stream
from rebalancer.simulate.forward.demand import Demand, DemandPlan
from rebalancer.simulate.forward.eviction import EvictionApi
from rebalancer.simulate.forward.gauges import Gauges, Lens, Timing
from rebalancer.simulate.forward.ground import Ground
from rebalancer.simulate.forward.happenings import Calendar, Happening, What, slots_of
from rebalancer.simulate.forward.observing import Observer, Surroundings, View
from rebalancer.simulate.forward.owners import Owners
from rebalancer.simulate.forward.placing import Placing
from rebalancer.simulate.forward.pods import PodRows
from rebalancer.simulate.forward.strategy import Actions
from rebalancer.simulate.forward.tally import Landed, Moment, Tally
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that is the same for every strategy: the ground, the demand, what comes from outside, how metrics arrive."""

    name: str
    seed: int
    ground: Ground
    demand: DemandPlan
    happenings: tuple[Happening, ...]
    timing: Timing
    high: FloatArray
    """(nodes, signals): by what marks a node counts as hot, ratio; NaN where the signal is not judged."""
    placed: IntArray
    """(slots,): where each slot's first pod runs at the start; -1 pending, `NOT_YET`."""
    uids: tuple[str, ...] = ()
    """uids of the first pods, by slot; made up when empty."""


class ForwardWorld:
    """``warm_up_ticks``: samples taken before the start, so that every window is whole then. One instance a strategy."""

    def __init__(self, setting: Setting, *, metrics: Metrics, lens: Lens, warm_up_ticks: int, tally: Tally) -> None:
        ground = self._ground = setting.ground
        self._step = setting.timing.interval_s
        self.now = ground.start - warm_up_ticks * self._step
        self._pods = PodRows(len(ground.slots.owner) + len(ground.slots.owner) // 8)
        self._owners = Owners(ground, self._pods, slots_of(ground.slots.owner))
        self._gauges = Gauges(
            start=self.now,
            timing=setting.timing,
            lens=lens,
            nodes=len(ground.nodes.names),
            signals=len(ground.signals),
            pods=self._pods.capacity,
        )
        self._observer = Observer(ground, self._pods, self._gauges, metrics=metrics, lens=lens)
        self._placing = Placing(stream(setting.seed, Stream.TIES))
        self._startups = stream(setting.seed, Stream.STARTUPS)
        self._demand = Demand(setting.demand, stream(setting.seed, Stream.NOISE), start=ground.start)
        self._calendar = Calendar(setting.happenings)
        self._ready: BoolArray = ground.nodes.ready.copy()
        self._soft: BoolArray = np.zeros((len(ground.nodes.names), len(SOFT_TAINTS)), dtype=np.bool_)
        self._cpu = ground.signal_column.get(CPU, -1)
        self._free_cpu: FloatArray = np.maximum(ground.nodes.capacity - ground.nodes.system, 0.0)[:, self._cpu]
        self._tally = tally
        self._settle(setting)
        for _ in range(warm_up_ticks):
            self.tick()

    @property
    def soft_taints(self) -> BoolArray:
        """(nodes, taints)."""
        return self._soft.copy()

    @property
    def loads(self) -> FloatArray:
        """(nodes, signals): what the pods of each node wanted in the last tick, as a share of capacity; NaN unknown or down."""
        return self._tally.loads

    def look(self) -> View:
        """What a controller sees now."""
        return self._observer.look(self.now, self._around())

    def act(self, view: View, actions: Actions) -> tuple[int, ...]:
        """Carry out what a strategy decided on the view of this moment; returns the rows of the state whose eviction was accepted."""
        if actions.soft_taints is not None:
            self._soft = _by_taint(actions.soft_taints)
        api = EvictionApi(view.state)
        accepted: list[int] = []
        for pod in actions.evictions:
            refusal = api.evict(pod)
            self._tally.answered(view.state, pod, accepted=not refusal)
            if not refusal:
                accepted.append(pod)
                row, node = int(view.rows[pod]), int(view.state.pods.node[pod])
                self._owners.delete(row, at=self.now, confirmed=node < 0 or bool(self._ready[node]), evicted_from=node)
        self._place()
        return tuple(accepted)

    def tick(self) -> None:
        """Let one sampling interval pass."""
        for happening in self._calendar.until(self.now):
            self._happen(happening)
        self._owners.step_rollouts(at=self.now)
        self._place()
        self._use(self.now, self.now + self._step)
        self.now += self._step
        self._reap()

    # ---- what happens -----------------------------------------------------------------------------------------------------

    def _settle(self, setting: Setting) -> None:
        """The pods that are there at the start."""
        slots = self._ground.slots
        for slot in np.flatnonzero(setting.placed > NOT_YET).tolist():
            born, node = float(slots.born_at[slot]), int(setting.placed[slot])
            row = self._owners.create(slot, at=born, uid=setting.uids[slot] if setting.uids else "", first=True)
            if node >= 0:
                self._pods.bind(row, node, at=born, running_at=born)

    def _happen(self, happening: Happening) -> None:
        subject, at = happening.subject, self.now
        if happening.what is What.SCALE:
            slots = self._owners.slots_of.get(subject)
            if slots is not None:
                self._demand.multiply(slots, happening.factor)
        elif happening.what is What.NODE_DOWN:
            self._ready[subject] = False
        elif happening.what is What.NODE_LOST:
            for row in self._on(subject):
                self._owners.delete(row, at=at, confirmed=False)
        elif happening.what is What.NODE_UP:
            self._ready[subject] = True
            lost = np.array(self._on(subject), dtype=np.int64)
            lost = lost[np.isfinite(self._pods.deleted_at[lost]) & ~np.isfinite(self._pods.gone_at[lost])]
            self._pods.gone_at[lost] = at
        elif happening.what is What.ARRIVE:
            self._owners.arrive(subject, at=at)
        elif happening.what is What.LEAVE:
            self._owners.leave(subject, at=at)
        elif happening.what is What.ROLL_OUT:
            self._owners.roll_out(subject)
        self._owners.news = True

    def _on(self, node: int) -> Sequence[int]:
        rows = self._pods.living()
        found: list[int] = rows[self._pods.node[rows] == node].tolist()
        return found

    def _place(self) -> None:
        """Let the scheduler try every pending pod, if anything has changed since it last did."""
        if not self._owners.news:
            return
        self._owners.news = False
        self._gauges.make_room(self._pods.capacity)
        if not (self._pods.node[self._pods.living()] < 0).any():
            return
        view = self._observer.skeleton(self.now, self._around())
        for pod, node in self._placing.place(view.state):
            if node >= 0:
                self._bind(int(view.rows[pod]), node)

    def _bind(self, row: int, node: int) -> None:
        least, most = self._ground.slots.startup_s[self._pods.slot[row]]
        running_at = self.now + float(self._startups.uniform(least, most))
        self._pods.bind(row, node, at=self.now, running_at=running_at)
        source = self._owners.moved_from.pop(row, -1)
        if source >= 0:
            slot = int(self._pods.slot[row])
            self._tally.landed(
                Landed(at=self.now, slot=slot, row=row, uid=self._pods.uids[row], source=source, node=node, running_at=running_at)
            )

    def _around(self) -> Surroundings:
        return Surroundings(self._ready, self._soft, self._owners.rolling, self._owners.controllers)

    # ---- what is used -----------------------------------------------------------------------------------------------------

    def _use(self, begin: float, end: float) -> None:
        pods, ground = self._pods, self._ground
        wanted = self._demand.at((begin + end) / 2, step_s=self._step)
        rows = pods.living()
        bound = rows[pods.node[rows] >= 0]
        node, slot = pods.node[bound], pods.slot[bound]
        part = np.minimum(pods.gone_at[bound], end) - np.maximum(pods.running_at[bound], begin)
        share = np.where(self._ready[node], np.clip(part / self._step, 0.0, 1.0), 0.0)
        demand = wanted.amount[slot] * share[:, None]
        by_node = _sum_by_node(node, demand, nodes=len(self._ready))
        load = np.where(self._ready[:, None], (by_node + ground.nodes.system) / ground.nodes.capacity, np.nan)
        self._sample(bound, node, by_node, demand, seen=wanted.seen[slot], ran=share > 0)
        self._tally.observe(
            Moment(
                at=end,
                step_s=self._step,
                load=load,
                lacking_cores=self._lacking(by_node),
                rows=bound,
                node=node,
                demand=demand,
                pending=len(rows) - len(bound),
                unready=int(((pods.running_at[rows] > end) & ~np.isfinite(pods.deleted_at[rows])).sum()),
            ),
            uids=pods.uids,
        )

    def _sample(self, rows: IntArray, node: IntArray, by_node: FloatArray, demand: FloatArray, *, seen: BoolArray, ran: BoolArray) -> None:
        """What the exporters show: usage after throttling, nothing of nodes that are down, NaN of what cannot be seen."""
        ground, used = self._ground, demand
        if self._cpu >= 0:
            wanted = by_node[:, self._cpu]
            throttle = np.minimum(1.0, np.divide(self._free_cpu, wanted, out=np.ones_like(wanted), where=wanted > 0))
            throttle[np.isnan(throttle)] = 1.0
            used = demand.copy()
            used[:, self._cpu] *= throttle[node]
            by_node = by_node.copy()
            by_node[:, self._cpu] *= throttle
        measured = np.where(self._ready[:, None], by_node + ground.nodes.system, np.nan)
        self._gauges.record(measured, rows=rows, pods=np.where(seen, used, np.nan), ran=ran)

    def _lacking(self, by_node: FloatArray) -> float:
        """Cores that were wanted and not there."""
        if self._cpu < 0:
            return 0.0
        return float(np.nansum(np.maximum(0.0, by_node[:, self._cpu] - self._free_cpu)))

    def _reap(self) -> None:
        pods = self._pods
        rows = pods.living()
        over = rows[pods.gone_at[rows] <= self.now]
        if len(over):
            pods.bury(over)
            for row in over.tolist():
                self._owners.gone(row, at=self.now)
            self._owners.news = True
        departed = pods.departed()
        if len(departed):
            old = departed[pods.gone_at[departed] < self.now - self._gauges.forget_s]
            self._gauges.forget(old)
            pods.release(old)


def _by_taint(soft_taints: BoolArray) -> BoolArray:
    """(nodes, taints); a strategy without grades puts the one that stands alone."""
    given = np.asarray(soft_taints, dtype=np.bool_)
    if given.ndim == 2:
        return given.copy()
    marked = np.zeros((len(given), len(SOFT_TAINTS)), dtype=np.bool_)
    marked[:, HOT] = given
    return marked


def _sum_by_node(node: IntArray, demand: FloatArray, *, nodes: int) -> FloatArray:
    """(nodes, signals)."""
    total = np.zeros((nodes, demand.shape[1]))
    for column in range(demand.shape[1]):
        total[:, column] = np.bincount(node, weights=demand[:, column], minlength=nodes)
    return total
