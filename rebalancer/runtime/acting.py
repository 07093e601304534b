"""Acting on a plan and remembering it: every eviction is written down before it is tried, and struck out when it did not happen.

So a crash between the two can only make a cooldown too long, never forget one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import msgspec
import structlog

from rebalancer.act.actuator import Actuator, carry_out_plan
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, KubernetesError, RebalancerError
from rebalancer.kube.failures import leaves_open
from rebalancer.plan.hinting import EXTENDER, HINT
from rebalancer.plan.model import Move, NodeReport, Plan
from rebalancer.policy.model import Mode
from rebalancer.runtime.hint_port import Hints, NoHints
from rebalancer.runtime.memory import MOST_EVICTIONS, MOST_OPEN, Memory, OpenMove, forget, quarantined_since, remember
from rebalancer.runtime.store import MemoryStore
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef

log = structlog.get_logger(__name__)

NEWS_S = 0.3
"""From the record of a move until every extender has read it. A replacement is scheduled within hundredths of a second of the eviction; one
that came before the news would be placed as if nothing had been reserved for it."""
_SHOWN = 3
"""Names of nodes in a sentence."""
STRIKE_OUT_S = 3.0
"""How long striking out an eviction that did not happen may take: by a time of its own, since the cycle's may be over or stopped."""


class Acting:
    """Acts on one plan and keeps the memory in step: each eviction is written down before it is tried.

    ``allowed`` is asked before anything is written, and right before each move: why nothing may be written any more, in words; empty when
    it may. ``move_limit_s``: how long its word is good for. ``without_taints``: told which nodes lack the taint that the plan counts on,
    says which pods have to stay for that, and why. ``hints``: who gives the replacements their nodes.
    """

    def __init__(
        self,
        actuator: Actuator,
        store: MemoryStore,
        *,
        plan: Plan,
        state: ClusterState,
        memory: Memory,
        allowed: Callable[[], str] = lambda: "",
        move_limit_s: float = math.inf,
        without_taints: Callable[[Plan, Collection[str]], Mapping[str, str]] = lambda plan, nodes: {},
        hints: Hints | None = None,
    ) -> None:
        self._actuator = actuator
        self._store = store
        self._plan = plan
        self._state = state
        self.memory = memory
        self._allowed = allowed
        self._move_limit_s = move_limit_s
        self._without_taints = without_taints
        self._hints: Hints = hints or NoHints()
        self._noted: OpenMove | None = None
        sources = {move.source for move in plan.moves}
        self._loads = {report.name: _loads(report) for report in plan.nodes if report.name in sources}

    def run(self, *, at: float, deadline: Deadline) -> tuple[tuple[str, ...], list[Outcome]]:
        """Raises what saving the memory and `Actuator.prepare` raise; then nothing was evicted."""
        plan = self._plan
        refused = self._allowed()
        if refused:
            return (f"nothing was written: {refused}",), [self._abandoned(move, refused, deadline=deadline) for move in plan.moves]
        self._store.save(self.memory, deadline=deadline)
        prepared = self._actuator.prepare(plan, at=at, deadline=deadline)
        plan, stay = self._steered(plan, prepared.untainted)
        for outcome in stay:
            self._close(outcome, deadline=deadline)
        plan, unhinted = self._announced(plan, at=at, deadline=deadline)
        for outcome in unhinted:
            self._close(outcome, deadline=deadline)

        def allowed(move: Move) -> str:
            refused = self._allowed()
            if refused or plan.mode != Mode.EVICT.value:
                return refused
            # Writing down may take long, so the question is asked again after it, right before the eviction.
            return self._write_down(move, at=at, deadline=deadline) or _news_travels(move, deadline=deadline) or self._allowed()

        def done(outcome: Outcome) -> None:
            self._close(outcome, deadline=deadline)

        outcomes = carry_out_plan(
            plan, self._actuator, at=at, deadline=deadline, allowed=allowed, done=done, move_limit_s=self._move_limit_s
        )
        self._hints.carried_out()
        return prepared.notes, [*stay, *unhinted, *outcomes]

    def _announced(self, plan: Plan, *, at: float, deadline: Deadline) -> tuple[Plan, list[Outcome]]:
        """Say whose replacements are about to come; without the moves that count on it when it cannot be said."""
        hinted = [move for move in plan.moves if move.steered_by == HINT]
        if plan.mode != Mode.EVICT.value or not hinted or self._allowed():
            return plan, []
        try:
            why = self._hints.announce([self._opened(move, at=at) for move in hinted], deadline=deadline)
        except Interrupted as stop:
            why = stop.message
        if not why:
            return plan, []
        bonds = {move.bond for move in hinted if move.bond}
        stay = [move for move in plan.moves if move.steered_by == HINT or move.bond in bonds]
        kept = tuple(move for move in plan.moves if move not in stay)
        return msgspec.structs.replace(plan, moves=kept), [Outcome(move, Result.ABANDONED, f"not tried: {why}") for move in stay]

    def _opened(self, move: Move, *, at: float) -> OpenMove:
        return open_move(move, self._state, at=at, loads=self._loads.get(move.source, {}))

    def _steered(self, plan: Plan, untainted: Collection[str]) -> tuple[Plan, list[Outcome]]:
        """The plan without the moves that only taints make worth while which could not be put: their pods might come straight back."""
        if not untainted or not plan.moves:
            return plan, []
        refused = self._without_taints(plan, untainted)
        nodes = ", ".join(sorted(untainted)[:_SHOWN]) + (f" and {len(untainted) - _SHOWN} more" if len(untainted) > _SHOWN else "")
        stay = [
            Outcome(move, Result.ABANDONED, f"not tried: the soft taint of {nodes} could not be put, and without it {why}")
            for move in plan.moves
            if (why := refused.get(move.pod.uid, ""))
        ]
        kept = tuple(move for move in plan.moves if move.pod.uid not in refused)
        return msgspec.structs.replace(plan, moves=kept), stay

    def _abandoned(self, move: Move, why: str, *, deadline: Deadline) -> Outcome:
        outcome = Outcome(move, Result.ABANDONED, f"not tried: {why}")
        self._close(outcome, deadline=deadline)
        return outcome

    def _yet_to_come(self, move: Move) -> int:
        """The move, and those of its gang where it is the first: a gang is not begun that could not be followed to its end."""
        gang = [other for other in self._plan.moves if other.gang == move.gang] if move.gang else [move]
        return len(gang) if gang[0] is move else 1

    def _write_down(self, move: Move, *, at: float, deadline: Deadline) -> str:
        if len(self.memory.open_moves) + self._yet_to_come(move) > MOST_OPEN:
            return f"{len(self.memory.open_moves)} earlier moves wait for their replacements, which is as many as are followed"
        opened = self._opened(move, at=at)
        if move.makes_room_for is None:
            memory = remember(self.memory, opened)
        else:  # nothing was promised of its replacement, which may have to wait; only that it was evicted counts
            memory = replace(self.memory, evictions=(*self.memory.evictions, opened.eviction)[-MOST_EVICTIONS:])
        try:
            self._store.save(memory, deadline=deadline)
        except RebalancerError as error:
            if isinstance(error, KubernetesError) and leaves_open(error):
                self._strike_out(deadline=deadline)  # it may be there all the same, and would hold a pod that nobody evicts
            return str(error)
        self.memory, self._noted = memory, opened
        if move.steered_by == HINT:
            self._hints.expect(opened)
        return ""

    def _close(self, outcome: Outcome, *, deadline: Deadline) -> None:
        log.info(
            "move",
            pod=f"{outcome.move.pod.namespace}/{outcome.move.pod.name}",
            source=outcome.move.source,
            destination=outcome.move.destination,
            gain=outcome.move.gain,
            reason=outcome.move.reason,
            result=outcome.result.value,
            answer=outcome.reason,
            mode=self._plan.mode,
        )
        noted, self._noted = self._noted, None
        if noted is None or outcome.result.counts:
            return
        self._hints.withdraw(noted)
        self.memory = forget(self.memory, noted)
        self._strike_out(deadline=deadline)

    def _strike_out(self, *, deadline: Deadline) -> None:
        """Save the memory without an eviction that did not happen."""
        refused = self._allowed()
        if refused:
            # Another may be reading the memory by now, and would lose its next write to ours.
            log.warning("an eviction that did not happen stays remembered", error=refused)
            return
        try:
            self._store.save(self.memory, deadline=Deadline.after(STRIKE_OUT_S, clock=deadline.clock))
        except RebalancerError as error:
            log.warning("an eviction that did not happen may stay remembered", error=str(error))


def _news_travels(move: Move, *, deadline: Deadline) -> str:
    """Let the extender hear of a move that counts on it. Why the move may not be tried any more, in words; empty when it may."""
    if move.steered_by != EXTENDER:
        return ""
    try:
        return "" if deadline.wait(NEWS_S) else "the deadline of the cycle has passed"
    except Interrupted as stop:
        return stop.message


def tell_rests(actuator: Actuator, *, before: Memory, after: Memory, at: float, deadline: Deadline) -> tuple[str, ...]:
    """Say on each workload that this look let rest that it rests, once it is saved that it does; the sentences, for whoever watches."""
    sentences: list[str] = []
    for workload, rest in quarantined_since(before, after):
        sentences.append(rest.words(workload))
        actuator.tell_rest(workload, sentences[-1], at=at, deadline=deadline)
    return tuple(sentences)


def _loads(report: NodeReport) -> Mapping[str, float]:
    return {name: signal.load for name, signal in report.signals.items() if signal.load is not None}


def open_move(move: Move, state: ClusterState, *, at: float, loads: Mapping[str, float]) -> OpenMove:
    """The move as it is remembered: what was predicted, so that it can be checked. ``loads``: signal -> load of the source before the plan.

    The plan's loads of a move include the moves before it; here each stands for itself, since any of them may not happen.
    """
    falls = {
        n: s.source_before - s.source_after for n, s in move.signals.items() if s.source_before is not None and s.source_after is not None
    }
    pod = state.pod_index.get(move.pod.uid, -1)
    controller = int(state.pods.controller[pod]) if pod >= 0 else -1
    workload = move.workload
    return OpenMove(
        eviction=PastEviction(
            at=at,
            pod_uid=move.pod.uid,
            namespace=move.pod.namespace,
            pod=move.pod.name,
            workload=None if workload is None else WorkloadRef(workload.kind, workload.namespace, workload.name),
            controller_uid=state.controllers[controller] if controller >= 0 else "",
            tenant=move.tenant,
            source=move.source,
            destination=move.destination,
            usage={name: s.usage for name, s in move.signals.items() if s.usage is not None},
        ),
        alternatives=move.alternatives,
        chance=move.chance,
        predicted_gain=move.gain,
        source_before=loads,
        predicted_source_after={name: loads[name] - fall for name, fall in falls.items() if name in loads},
    )
