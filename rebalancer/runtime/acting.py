"""Acting on a plan and remembering it: every eviction is written down before it is tried, and struck out when it did not happen.

So a crash between the two can only make a cooldown too long, never forget one.
"""

from __future__ import annotations

import structlog

from rebalancer.act.actuator import Actuator, carry_out_plan
from rebalancer.act.outcome import Outcome, Result
from rebalancer.deadline import Deadline
from rebalancer.errors import RebalancerError
from rebalancer.plan.model import Move, Plan
from rebalancer.policy.model import Mode
from rebalancer.runtime.memory import Memory, OpenMove, forget, remember
from rebalancer.runtime.store import MemoryStore
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef

log = structlog.get_logger(__name__)


class Acting:
    """Acts on one plan and keeps the memory in step: each eviction is written down before it is tried."""

    def __init__(self, actuator: Actuator, store: MemoryStore, *, plan: Plan, state: ClusterState, memory: Memory) -> None:
        self._actuator = actuator
        self._store = store
        self._plan = plan
        self._state = state
        self.memory = memory
        self._noted: OpenMove | None = None

    def run(self, *, at: float, deadline: Deadline) -> tuple[tuple[str, ...], list[Outcome]]:
        plan = self._plan
        self._store.save(self.memory, deadline=deadline)
        notes = self._actuator.prepare(plan, at=at, deadline=deadline)
        moves = iter(plan.moves)

        def allowed() -> str:
            move = next(moves)
            if not self._actuator_moves_pods():
                return ""
            return self._write_down(move, at=at, deadline=deadline)

        def done(outcome: Outcome) -> None:
            self._close(outcome, deadline=deadline)

        outcomes = carry_out_plan(plan, self._actuator, at=at, deadline=deadline, allowed=allowed, done=done)
        return notes, outcomes

    def _actuator_moves_pods(self) -> bool:
        return self._plan.mode == Mode.EVICT.value

    def _write_down(self, move: Move, *, at: float, deadline: Deadline) -> str:
        opened = open_move(move, self._state, at=at)
        memory = remember(self.memory, opened)
        try:
            self._store.save(memory, deadline=deadline)
        except RebalancerError as error:
            return str(error)
        self.memory, self._noted = memory, opened
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
        if noted is None or outcome.result is Result.EVICTED:
            return
        self.memory = forget(self.memory, noted)
        try:
            self._store.save(self.memory, deadline=deadline)
        except RebalancerError as error:
            log.warning("an eviction that did not happen stays remembered until the next cycle", error=str(error))


def open_move(move: Move, state: ClusterState, *, at: float) -> OpenMove:
    """The move as it is remembered: what was predicted, so that it can be checked."""
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
        predicted_gain=move.gain,
        source_before={n: s.source_before for n, s in move.signals.items() if s.source_before is not None},
        predicted_source_after={n: s.source_after for n, s in move.signals.items() if s.source_after is not None},
    )
