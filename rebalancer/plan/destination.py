"""Where the replacement of a pod would land, and whether that is a good place.

kube-scheduler takes the node with the best score, so the destination is predicted with its filters and scores, not wished for. Ties are
arbitrary in it, and on more than a hundred feasible nodes it looks at a changing sample; so the prediction is a small distribution over
nodes, and a move is only planned when nearly all of it is good.

A good place is in the source's pool, known on every judged signal, at or under ``target`` before, and after at most half way from
``target`` to ``high``: the other half is left to noise. For a pod that asks for GPUs it is one where any of them that it may get will do
(`plan.gpu.book`): its scheduler counts what was asked for, and knows nothing of what is used.

Where the replacement is led to its node (`plan.hinting`), that node is not predicted but chosen: of all feasible ones that are good places
the one with the highest gain, since the scheduler takes it, whatever its own scores or within the reach of what leads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rebalancer.detect.findings import Findings, NodeClass
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.gpu.book import DeviceBook
from rebalancer.plan.gpu.refusing import why_not
from rebalancer.plan.heat import LoadBook
from rebalancer.plan.hinting import HintRule, Led
from rebalancer.plan.reasons import PlanGate
from rebalancer.plan.stock_scores import StockScores, sample_size
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_duration, format_percent

LIKELY = 0.95
"""How much of the landing distribution is looked at when the scheduler only samples the nodes."""
GOOD_ENOUGH = 0.9
"""How much of it must be good places."""
SHOWN = 5
"""Alternatives that a move names."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Predicted destination, the other nodes it may be, and the gain there. ``led_by``: what leads the replacement to a destination that
    was chosen and not predicted, whose alternatives are the next best ones; empty for a prediction. ``chance``: how much of the predicted
    distribution these nodes cover; in a large cluster, or among many nodes that score alike, little."""

    destination: int
    alternatives: tuple[int, ...]
    gain: float
    chance: float
    led_by: str = ""


@dataclass(frozen=True, slots=True)
class NoLanding:
    gate: PlanGate
    reason: str


class Destinations:
    """Predicts landings while a plan grows; reads the plan's placements and load book, changes neither. ``hints``: None gives none."""

    def __init__(
        self,
        state: ClusterState,
        findings: Findings,
        feasibility: Feasibility,
        scores: StockScores,
        loads: LoadBook,
        *,
        devices: DeviceBook,
        horizon_s: float = 0.0,
        hints: HintRule | None = None,
    ) -> None:
        self._state = state
        self._findings = findings
        self._feasibility = feasibility
        self._scores = scores
        self._loads = loads
        self._devices = devices
        self._hints = hints or HintRule(state, on=False)
        with np.errstate(invalid="ignore"):
            self._limit: FloatArray = findings.target + (findings.high - findings.target) / 2
        self._horizon = horizon_s
        self._settled: BoolArray = (findings.node_class != int(NodeClass.UNKNOWN)) & (findings.node_class != int(NodeClass.HOT))
        self._open = np.zeros(0, dtype=np.bool_)
        self._open_at = -1
        """How many moves were booked when ``_open`` was worked out."""

    def open_nodes(self, pool: int) -> BoolArray:
        """(nodes,) nodes of the pool that could take anything at all: known, not hot, at or under target, schedulable."""
        f, nodes = self._findings, self._state.nodes
        if self._open_at != self._loads.moves:
            with np.errstate(invalid="ignore"):
                under = np.where(f.judged, self._loads.reach() <= f.target, True).all(axis=1)
            self._open = np.asarray(self._settled & under & nodes.ready & ~nodes.unschedulable, dtype=np.bool_)
            self._open_at = self._loads.moves
        return np.asarray(self._open & (f.pool == pool), dtype=np.bool_)

    def predict(self, pod: int, source: int, *, may_return: bool = False) -> Landing | NoLanding:
        """The landing of the pod's replacement, or why there is none that helps. ``may_return``: a source that is not hot is as good a
        place as any, for a pod that leaves it for the sake of others."""
        feasible = self._feasibility.allowed(pod)
        if not feasible.any():
            tally = ", ".join(f"{count} {name}" for name, count in self._feasibility.tally(pod).items() if count)
            return NoLanding(PlanGate.NO_FEASIBLE_NODE, f"none of {len(feasible)} nodes would take it: {tally}")
        led = self._hints(pod)
        if led is not None:
            return self._choose(pod, source, self._within(led, pod, feasible), led, may_return=may_return)
        nodes, chance = self._distribution(pod, feasible)
        good = self._good(nodes, source, pod, may_return=may_return)
        if chance[good].sum() < GOOD_ENOUGH - 1e-9:
            return NoLanding(PlanGate.NO_BETTER_PLACE, self._why_bad(nodes, chance, good, source, pod))
        nodes, chance = nodes[good], chance[good]
        gains = self._gains(nodes, source, pod)
        strain = self._strain(nodes, pod)
        names = self._state.nodes.names
        order = sorted(range(len(nodes)), key=lambda i: (-round(float(chance[i]), 9), float(strain[i]), names[int(nodes[i])]))
        best = order[0]
        others = tuple(int(nodes[i]) for i in order[1 : SHOWN + 1])
        named = min(1.0, float(chance[order[: SHOWN + 1]].sum()))
        return Landing(destination=int(nodes[best]), alternatives=others, gain=float(gains[best]), chance=named)

    def _within(self, led: Led, pod: int, feasible: BoolArray) -> IntArray:
        """Rows of the feasible nodes that the replacement can be led to."""
        if math.isinf(led.reach):
            return np.flatnonzero(feasible)
        total = self._scores.total(pod, feasible)
        return np.flatnonzero(feasible & (total >= total[feasible].max() - led.reach))

    def _choose(self, pod: int, source: int, nodes: IntArray, led: Led, *, may_return: bool) -> Landing | NoLanding:
        """The best of the feasible ``nodes`` for a replacement that is led to its node: highest gain, then least strained, then by row."""
        good = self._good(nodes, source, pod, may_return=may_return)
        if not good.any():
            return NoLanding(PlanGate.NO_BETTER_PLACE, self._why_none(nodes, source, pod))
        nodes = nodes[good]
        gains = self._gains(nodes, source, pod)
        order = np.lexsort((nodes, self._strain(nodes, pod), -np.round(gains, 12)))[: SHOWN + 1]
        best, *others = nodes[order].tolist()
        return Landing(destination=best, alternatives=tuple(others), gain=float(gains[order[0]]), chance=1.0, led_by=led.by)

    def _strain(self, nodes: IntArray, pod: int) -> FloatArray:
        """(nodes,) the worst reach of a judged signal with the pod there; -inf on a node that is not judged by any."""
        return np.asarray(np.nanmax(np.where(self._findings.judged[nodes], self._loads.reach_with(nodes, pod), -np.inf), axis=1))

    def _distribution(self, pod: int, feasible: BoolArray) -> tuple[IntArray, FloatArray]:
        """Nodes and their chances. All nodes looked at: the best score, ties alike. A sample: rank i with q * (1 - q)^i, q = K / F."""
        count = int(feasible.sum())
        sample = sample_size(len(feasible))
        if count <= sample:
            best = self._scores.best(pod, feasible)
            return best, np.full(len(best), 1 / len(best))
        q = sample / count
        looked_at = min(count, math.ceil(math.log(1 - LIKELY) / math.log(1 - q)))
        total = self._scores.total(pod, feasible)
        enough = np.partition(total, -looked_at)[-looked_at]
        candidates = np.flatnonzero(total >= enough)  # the best ones and all that tie with the last of them; the others are never -inf
        ranked = candidates[np.argsort(-total[candidates], kind="stable")][:looked_at]
        chance = q * (1 - q) ** np.arange(len(ranked))
        return np.asarray(ranked, dtype=np.int64), chance / chance.sum()

    def _gains(self, nodes: IntArray, source: int, pod: int) -> FloatArray:
        """(nodes,): nothing is won where the pod comes back to."""
        return np.where(nodes == source, 0.0, self._loads.gain(source=source, nodes=nodes, pod=pod))

    def _good(self, nodes: IntArray, source: int, pod: int, *, may_return: bool) -> BoolArray:
        f = self._findings
        before, after = self._loads.reach(nodes), self._loads.reach_with(nodes, pod)
        judged = f.judged[nodes]
        with np.errstate(invalid="ignore"):
            calm = ~(self._coming(nodes, after) > f.high[nodes])  # NaN: nothing is foreseen
            room = np.where(judged, (before <= f.target[nodes]) & (after <= self._limit[nodes]) & calm, True).all(axis=1)
        back = nodes == source
        good = self._settled[nodes] & np.where(back, may_return, room) & (f.pool[nodes] == f.pool[source])
        if self._devices.asks(pod) and good.any():
            good &= self._devices.fits(pod, nodes)
        return np.asarray(good, dtype=np.bool_)

    def _coming(self, nodes: IntArray, after: FloatArray) -> FloatArray:
        """(nodes, signals): what is foreseen for each with all that was booked there and ``after`` holds; NaN where nothing is."""
        f = self._findings
        return np.asarray(f.foreseen.peak[nodes] + (after - f.reach[nodes]), dtype=np.float64)

    def _why_bad(self, nodes: IntArray, chance: FloatArray, good: BoolArray, source: int, pod: int) -> str:
        """A sentence about the likeliest bad place, with its numbers."""
        bad = np.flatnonzero(~good)
        worst = int(nodes[bad[int(np.argmax(chance[bad]))]])
        name = self._state.nodes.names[worst]
        if worst == source:
            return f"kube-scheduler's scores would put it back on {name}"
        f = self._findings
        if f.pool[worst] != f.pool[source]:
            return f"kube-scheduler's scores would put it on {name}, which is in another pool"
        if f.node_class[worst] == NodeClass.UNKNOWN:
            return f"kube-scheduler's scores would put it on {name}, whose load is unknown ({f.reasons[worst]})"
        return f"kube-scheduler's scores would put it on {name}: {self._why_there(worst, pod)}"

    def _why_none(self, nodes: IntArray, source: int, pod: int) -> str:
        """Why none of the nodes that would take the pod is a good place, with the numbers of the coolest in the pool."""
        f = self._findings
        others = nodes[(nodes != source) & (f.pool[nodes] == f.pool[source]) & (f.node_class[nodes] != int(NodeClass.UNKNOWN))]
        words = f"none of {len(nodes)} nodes that would take it is a good place"
        if not len(others):
            return f"{words}: no other node of its pool with a known load is among them"
        strain = self._strain(others, pod)
        coolest = int(others[int(np.argmin(np.where(np.isnan(strain), np.inf, strain)))])
        if not self._settled[coolest]:
            return f"{words}: the coolest, {self._state.nodes.names[coolest]}, is hot"
        return f"{words}: on the coolest, {self._state.nodes.names[coolest]}, {self._why_there(coolest, pod)}"

    def _why_there(self, worst: int, pod: int) -> str:
        """What speaks against a node of the pool whose load is known: its devices, or its load with the pod there."""
        unfit = why_not(self._devices, pod, worst) if self._devices.asks(pod) else ""
        return unfit or self._too_warm(worst, pod)

    def _too_warm(self, worst: int, pod: int) -> str:
        """What the load of a node would be with the pod, and what it may be at most."""
        f, at = self._findings, np.array([worst])
        before, after = self._loads.reach(at)[0], self._loads.reach_with(at, pod)[0]
        with np.errstate(invalid="ignore"):
            over = f.judged[worst] & ~((before <= f.target[worst]) & (after <= self._limit[worst]))
            coming = self._coming(at, after[None, :])[0]
            filled = f.judged[worst] & (coming > f.high[worst])
        if filled.any() and not over.any():
            column = int(np.flatnonzero(filled)[0])
            horizon, high = format_duration(self._horizon), format_percent(f.high[worst, column])
            return (
                f"{self._state.signals[column].name} load {format_percent(before[column])} "
                f"now, which yesterday says will be {format_percent(coming[column])} within {horizon}, over high {high}"
            )
        column = int(np.flatnonzero(over)[0]) if over.any() else 0
        swings = "with room for swings " if f.deviations else ""
        return (
            f"{self._state.signals[column].name} load {swings}"
            f"{format_percent(before[column])} -> {format_percent(after[column])}, where at most {format_percent(f.target[worst, column])} "
            f"before and {format_percent(self._limit[worst, column])} after is a good place"
        )
