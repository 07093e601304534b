"""Balance: relieve the hot nodes, hottest first, with the fewest pods, each to a place where its replacement would really land.

For a hot node the excess over ``target`` is covered by the smallest set of its pods (`plan.victims`). Each candidate passes the gates, then
the prediction of its landing; what is accepted is booked at once on the plan's budgets, on the scheduler's room and on the load of both
ends, so that the next decision sees it. After each pod the node that is the worst then is next, one over ``high`` before one that only may
swing over it: where budgets end before all is done, they were spent on what helps most. Draining stops at ``target``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalancer.detect.findings import NodeClass
from rebalancer.detect.sentences import reach_words
from rebalancer.guard.gate import Candidate, Refusal, first_refusal
from rebalancer.plan.booking import book_move
from rebalancer.plan.destination import Landing
from rebalancer.plan.gang_moves import GangTry, move_whole, to_move_whole, together
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.reasons import PlanGate
from rebalancer.plan.victims import excess, order
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import on_a_node
from rebalancer.units import format_percent

_Held = dict[tuple[int, int], tuple[int, Refusal]]
"""Row of a gang that cannot move, and of the node to be relieved -> how many moves were booked when that was found, and why."""


@dataclass(slots=True)
class _Source:
    """A hot node while it is being drained."""

    node: int
    hot: BoolArray
    """(signals,) confirmed over high."""
    start: FloatArray
    """(signals,) excess over target when the draining began."""
    open: list[int] = field(default_factory=list)
    """Pods that may still be tried."""
    taken: int = 0

    def forget(self, booked: set[int]) -> None:
        """Pods that left with their gang, for the sake of another node or of this one, are not to be tried any more."""
        left = booked.intersection(self.open)
        if left:
            self.open = [pod for pod in self.open if pod not in left]
            self.taken += len(left)


class Balance:
    name = "balance"

    def propose(self, bench: Bench) -> Proposal:
        sources = self._sources(bench)
        if not sources:
            return Proposal(self.name, (), (), _nothing_hot(bench))
        moves: list[ProposedMove] = []
        refused: list[tuple[int, Refusal]] = []
        held: _Held = {}
        pods_on = _pods_by_node(bench.scene.state, [source.node for source in sources])
        for source in sources:
            self._gather(bench, source, pods_on(source.node), refused)
        waiting = [(self._urgency(bench, source), rank, source) for rank, source in enumerate(sources)]
        heapq.heapify(waiting)
        while waiting:
            _, rank, source = heapq.heappop(waiting)
            if self._relieve(bench, source, moves, refused, held):
                heapq.heappush(waiting, (self._urgency(bench, source), rank, source))
        stay = [(pod, refusal) for pod, refusal in refused if pod not in bench.scene.booked.pods]  # some left with their gang after all
        return Proposal(self.name, tuple(moves), tuple(stay), _outcome(bench, sources, moves, stay))

    def _sources(self, bench: Bench) -> list[_Source]:
        f = bench.findings
        hot = np.flatnonzero(f.node_class == NodeClass.HOT)
        badness = bench.loads.badness(hot, bench.loads.reach(hot))
        names = bench.scene.state.nodes.names
        ranked = sorted(zip(hot.tolist(), badness.tolist(), strict=True), key=lambda pair: (-pair[1], names[pair[0]]))
        return [_Source(node, f.confirmed[node], excess(f.reach[node], f.target[node], f.confirmed[node])) for node, _ in ranked]

    def _gather(self, bench: Bench, source: _Source, pods: IntArray, refused: list[tuple[int, Refusal]]) -> None:
        """Split the pods of the node into those that may be tried and those that a lasting rule refuses."""
        for pod in sorted(pods.tolist(), key=bench.scene.state.pod_name):
            refusal = first_refusal(Candidate(pod, source.node), bench.scene, static=True)
            if refusal is not None:
                refused.append((pod, refusal))
            else:
                source.open.append(pod)

    def _urgency(self, bench: Bench, source: _Source) -> tuple[bool, float]:
        """The least is relieved next: nodes that are over high now, then by how bad they are."""
        at, f = np.array([source.node]), bench.findings
        over = bool((source.hot & (bench.loads.load(at)[0] > f.high[source.node])).any())
        return not over, -float(bench.loads.badness(at, bench.loads.reach(at))[0])

    def _relieve(self, bench: Bench, source: _Source, moves: list[ProposedMove], refused: list[tuple[int, Refusal]], held: _Held) -> bool:
        """Take one pod off the node, or a gang with all its pods. False when nothing more is to be done there; then every pod of it has its
        move or its refusal."""
        source.forget(bench.scene.booked.pods)
        if not source.open:
            return False
        f, state = bench.findings, bench.scene.state
        column = int(np.argmax(np.where(source.hot, f.reach[source.node] / f.high[source.node], -np.inf)))
        need = self._need(bench, source)
        if not (need > 0).any():
            refused.extend((pod, self._not_needed(bench, source, column)) for pod in source.open)
            return False
        if source.taken == 0 and not bench.destinations.open_nodes(int(f.pool[source.node])).any():
            target = format_percent(f.target[source.node, column])
            reason = f"no node of the pool is at or under target on every signal ({state.signals[column].name} target {target})"
            refused.extend((pod, Refusal(PlanGate.NO_BETTER_PLACE.value, reason, retryable=True)) for pod in source.open)
            return False
        return self._take_one(bench, source, need, moves, refused, held)

    def _need(self, bench: Bench, source: _Source) -> FloatArray:
        reach = bench.loads.reach(np.array([source.node]))[0]
        return excess(reach, bench.findings.target[source.node], source.hot)

    def _take_one(
        self,
        bench: Bench,
        source: _Source,
        need: FloatArray,
        moves: list[ProposedMove],
        refused: list[tuple[int, Refusal]],
        held: _Held,
    ) -> bool:
        """Book the first pod that passes everything; gangs are tried when no pod that may go alone does. False when none
        does; then every pod has its refusal."""
        state = bench.scene.state
        pods: IntArray = np.array(source.open, dtype=np.int64)
        share = bench.loads.reach(np.array([source.node])) - bench.loads.reach_without(source.node, pods)
        ranked = order(state, pods, share, need, bench.findings.weight[source.node], bench.disturbance.weights(pods))
        whole = to_move_whole(bench, source.open, source.node) if len(state.gangs) else {}
        ranked.sort(key=lambda position: int(pods[position]) in whole)
        kept: list[tuple[int, Refusal]] = []
        for position in ranked:
            pod = int(pods[position])
            gang = whole.get(pod)
            result: tuple[ProposedMove, ...] | Refusal
            if gang is None:
                result = self._try(bench, source, pod, share[position], need)
            else:
                result = self._try_gang(bench, source, gang, share[np.isin(pods, gang.pods)].sum(axis=0), need, held)
            if not isinstance(result, Refusal):
                moves.extend(result)
                source.forget(bench.scene.booked.pods)
                return True
            kept.append((pod, result))
        refused.extend(kept)
        source.open.clear()
        return False

    def _try_gang(
        self, bench: Bench, source: _Source, gang: GangTry, share: FloatArray, need: FloatArray, held: _Held
    ) -> tuple[ProposedMove, ...] | Refusal:
        """``share`` (signals,): what all its members on the node take of it."""
        booked, key = bench.loads.mark(), (gang.gang, source.node)
        known = held.get(key)
        if known is not None and known[0] == booked:
            return known[1]
        here = int((bench.scene.state.pods.node[list(gang.pods)] == source.node).sum())
        words = f"{together(bench, gang)}: {self._reason(bench, source, need, share, of_gang=here)}"
        found = self._too_small(bench, source, share, need) or move_whole(bench, gang, reason=lambda pod: words)
        if isinstance(found, Refusal):
            held[key] = (booked, found)
        return found

    def _try(self, bench: Bench, source: _Source, pod: int, share: FloatArray, need: FloatArray) -> tuple[ProposedMove] | Refusal:
        refusal = first_refusal(Candidate(pod, source.node), bench.scene, static=False) or self._too_small(bench, source, share, need)
        if refusal is not None:
            return refusal
        landing = bench.destinations.predict(pod, source.node)
        if not isinstance(landing, Landing):
            return Refusal(landing.gate.value, landing.reason, retryable=True)
        reason = bench.disturbance.not_worth_it(pod, landing)
        if reason:
            return Refusal(PlanGate.GAIN_TOO_SMALL.value, reason, retryable=True)
        return (book_move(bench, Candidate(pod, source.node), landing, reason=self._reason(bench, source, need, share)),)

    def _too_small(self, bench: Bench, source: _Source, share: FloatArray, need: FloatArray) -> Refusal | None:
        policy = bench.scene.spec.gain
        weight = bench.findings.weight[source.node]
        cured = float((weight * np.minimum(share, need))[need > 0].sum())
        wanted = float((weight * source.start).sum())
        if cured <= 0 or cured < policy.min_relative / 100 * wanted:
            reason = (
                f"it takes {format_percent(cured, digits=2)} of the node, {format_percent(cured / wanted, digits=1)} of the excess "
                f"over target; gain.minRelative is {policy.min_relative:g} %"
            )
            return Refusal(PlanGate.GAIN_TOO_SMALL.value, reason, retryable=True)
        return None

    def _reason(self, bench: Bench, source: _Source, need: FloatArray, share: FloatArray, *, of_gang: int = 0) -> str:
        """``share``: what the pod takes of the node, or so many of a gang that leave it together."""
        f, signals = bench.findings, bench.scene.state.signals
        hot = np.flatnonzero(source.hot)
        column = int(hot[np.argmax(f.reach[source.node, hot] / f.high[source.node, hot])])
        load = reach_words(float(f.load[source.node, column]), float(f.reach[source.node, column]))
        start = (
            f"{signals[column].name} load {load} > high "
            f"{format_percent(f.high[source.node, column])} in {f.over[source.node, column]} of {f.windows} windows"
        )
        covers = bool((share[need > 0] >= need[need > 0] - 1e-12).all())
        target = format_percent(f.target[source.node, column])
        they = f"its {of_gang} pods there" if of_gang > 1 else "its pod there"
        alone, brings, takes = "this pod alone brings", "it brings", "it takes"
        if of_gang:
            alone = brings = f"{they} bring{'s' if of_gang == 1 else ''}"
            takes = f"{they} take{'s' if of_gang == 1 else ''}"
        if covers and source.taken == 0:
            return f"{start}; {alone} it under target {target}"
        if covers:
            return f"{start}; with {source.taken} other pod{'s' if source.taken > 1 else ''} {brings} it under target {target}"
        return f"{start}; {takes} {format_percent(share[column])} of the node, {format_percent(need[column])} is over target {target}"

    def _not_needed(self, bench: Bench, source: _Source, column: int) -> Refusal:
        state = bench.scene.state
        load = bench.loads.load(np.array([source.node]))[0, column]
        reason = (
            f"{state.nodes.names[source.node]} is under target after {source.taken} move{'s' if source.taken != 1 else ''}: "
            f"{state.signals[column].name} load {format_percent(load)}"
        )
        return Refusal(PlanGate.NOT_NEEDED.value, reason, retryable=True)


def _pods_by_node(state: ClusterState, nodes: Sequence[int]) -> Callable[[int], IntArray]:
    """A look-up of the pods that use each of ``nodes``, sorted once and not searched once a node."""
    asked = np.zeros(len(state.nodes.names) + 1, dtype=np.bool_)  # the last one is for pods on no node
    asked[list(nodes)] = True
    rows = np.flatnonzero(asked[state.pods.node] & on_a_node(state))
    rows = rows[np.argsort(state.pods.node[rows], kind="stable")]
    bounds = np.searchsorted(state.pods.node[rows], np.arange(len(state.nodes.names) + 1))
    return lambda node: rows[bounds[node] : bounds[node + 1]]


def _nothing_hot(bench: Bench) -> str:
    f = bench.findings
    unknown = f.nodes_of_class(NodeClass.UNKNOWN)
    judged = len(f.node_class) - unknown
    words = f"nothing to do: none of {judged} nodes with a known load is hot"
    return f"{words}; {unknown} more have an unknown load" if unknown else words


def _outcome(bench: Bench, sources: list[_Source], moves: list[ProposedMove], refused: list[tuple[int, Refusal]]) -> str:
    hot = f"{len(sources)} hot node{'s' if len(sources) != 1 else ''}"
    if moves:
        drained = len({source.node for source in sources}.intersection(move.source for move in moves))
        return f"{len(moves)} move{'s' if len(moves) != 1 else ''} from {drained} of {hot}"
    if not any(bench.destinations.open_nodes(pool).any() for pool in {int(bench.findings.pool[s.node]) for s in sources}):
        return f"{hot}, but no destination: no node of the pool is at or under target"
    if not refused:
        return f"{hot}, but no pod runs there"
    return f"{hot}, but every one of {len(refused)} candidates is refused"
