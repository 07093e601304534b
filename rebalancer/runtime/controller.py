"""One cycle: observe, settle what was moved before, detect, plan, act. The whole path of the data in one readable place.

A cycle that cannot see the cluster whole raises and does nothing. What it decides it decides by the pure code alone; dry run differs only
in the actuator that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from rebalancer.act.actuator import Actuator, carry_out_plan
from rebalancer.act.outcome import Outcome, Result
from rebalancer.collect.prometheus import Prometheus
from rebalancer.deadline import Deadline
from rebalancer.detect.classify import detect
from rebalancer.detect.findings import Findings
from rebalancer.errors import RebalancerError
from rebalancer.guard.breaker import breaker_reason
from rebalancer.kube.client import KubeClient
from rebalancer.plan.model import Move
from rebalancer.plan.planner import Decision, decide
from rebalancer.policy.model import Mode, RebalancePolicy
from rebalancer.runtime.clock import Clock
from rebalancer.runtime.memory import Landing, Memory, OpenMove, forget, remember, settle
from rebalancer.runtime.observe import observe, require_coverage
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.runtime.store import MemoryStore
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CycleResult:
    state: ClusterState
    findings: Findings
    decision: Decision
    outcomes: tuple[Outcome, ...]
    landings: tuple[Landing, ...]
    """Earlier moves that this cycle settled."""
    memory: Memory
    breaker: str
    seconds: Mapping[str, float]
    """stage -> duration."""
    notes: tuple[str, ...]
    """What was prepared, steered, or went wrong beside the moves."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What is to be done in this cycle, as the operator last said it."""

    policy: RebalancePolicy
    mode: Mode
    mode_source: str


class Controller:
    """Holds the connections and the memory; `cycle` may be called for as long as the process lives."""

    def __init__(
        self,
        *,
        client: KubeClient,
        prometheus: Prometheus,
        actuators: Mapping[Mode, Actuator],
        store: MemoryStore,
        clock: Clock,
        on_stage: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._client = client
        self._prometheus = prometheus
        self._actuators = actuators
        self._store = store
        self._clock = clock
        self._on_stage = on_stage

    def cycle(self, orders: Orders, *, deadline: Deadline) -> CycleResult:
        """Raises KubernetesError, MetricsError, ConfigurationError or Interrupted; then nothing further was written."""
        stopwatch, spec, at = Stopwatch(), orders.policy.spec, self._clock.now()
        self._on_stage("reading the cluster")
        memory = self._store.load(deadline=deadline)
        state = observe(client=self._client, prometheus=self._prometheus, spec=spec, at=at, deadline=deadline, stopwatch=stopwatch)
        require_coverage(state, spec)
        self._on_stage("detecting")
        with stopwatch.stage("detect"):
            memory, landings = settle(memory, state, spec)
            breaker = breaker_of(state, memory, orders)
            findings = detect(state, spec)
        self._on_stage("planning")
        with stopwatch.stage("plan"):
            decision = decide(
                state=state,
                findings=findings,
                policy=orders.policy,
                history=memory.history(breaker),
                mode=orders.mode,
                mode_source=orders.mode_source,
            )
        self._on_stage("acting")
        with stopwatch.stage("act"):
            acting = _Acting(self._actuators[orders.mode], self._store, memory, state, decision)
            notes, outcomes = acting.run(at=at, deadline=deadline)
        return CycleResult(
            state=state,
            findings=findings,
            decision=decision,
            outcomes=tuple(outcomes),
            landings=landings,
            memory=acting.memory,
            breaker=breaker,
            seconds=stopwatch.seconds,
            notes=notes,
        )


def breaker_of(state: ClusterState, memory: Memory, orders: Orders) -> str:
    """Why nothing may be evicted now, from what the cluster shows and what earlier moves came to."""
    verified = tuple((1.0, x.realised_share) for x in memory.landings if x.realised_share == x.realised_share)
    opened = tuple(m.eviction.at for m in memory.open_moves)
    return breaker_reason(state=state, spec=orders.policy.spec, open_since=opened, verified=verified)


class _Acting:
    """Acts on one plan and keeps the memory in step: each eviction is written down before it is tried."""

    def __init__(self, actuator: Actuator, store: MemoryStore, memory: Memory, state: ClusterState, decision: Decision) -> None:
        self._actuator = actuator
        self._store = store
        self.memory = memory
        self._state = state
        self._decision = decision
        self._stop = ""
        self._noted: OpenMove | None = None

    def run(self, *, at: float, deadline: Deadline) -> tuple[tuple[str, ...], list[Outcome]]:
        plan = self._decision.plan
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
        return self._decision.plan.mode == Mode.EVICT.value

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
            mode=self._decision.plan.mode,
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
