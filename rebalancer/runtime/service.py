"""The service: a cycle at every interval, health and metrics beside it, and an end that leaves nothing behind.

The schedule is APScheduler's, the work is `Controller.cycle`. A cycle that fails is counted, told and forgotten; the next one starts from
nothing but the cluster. Signals only set an event; the cycle looks at it before every request and every eviction.

With leader election, only the replica that leads runs cycles, each of them under the term in which it began. A standby follows the policy
file, answers its probes, and looks at nothing else.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from rebalancer.act.actuator import Actuator
from rebalancer.act.outcome import Result
from rebalancer.deadline import Deadline
from rebalancer.errors import Interrupted, KubernetesError, MetricsError, RebalancerError
from rebalancer.policy.model import Mode
from rebalancer.runtime.clock import Clock
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.health import Health
from rebalancer.runtime.hint_keeper import HintKeeper
from rebalancer.runtime.leadership import Leadership, Term
from rebalancer.runtime.load_watching import LoadWatch
from rebalancer.runtime.metrics import CycleEnd, Metrics
from rebalancer.runtime.node_annotations import NodeAnnotations
from rebalancer.runtime.reloading import reload_orders
from rebalancer.runtime.session import Session

log = structlog.get_logger(__name__)

JOB = "cycle"
JITTER_SHARE = 0.05
FINISH_S = 6.0
"""After a stop request, how long a running cycle may take to end by itself."""
CLEAN_UP_S = 2.5
"""How long taking our taints off may take."""
RELEASE_S = 1.0
"""And giving the lease back; together they stay under ten seconds."""
AGAIN_S = 1.0
"""When a leadership begins while a tick still runs, its first cycle is tried again after so long."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the service is made of, opened and closed by the command."""

    session: Session
    controller: Controller
    actuators: Mapping[Mode, Actuator]
    """Those of the controller: what a mode leaves in the cluster is cleaned up when it is left, and at the end."""
    metrics: Metrics
    health: Health
    loads: LoadWatch
    clock: Clock
    leadership: Leadership | None = None
    """None: there is no other replica, so this one always leads."""
    annotations: NodeAnnotations | None = None
    """Those of the controller."""
    hints: HintKeeper | None = None
    """None: no replacement gets a hint."""


class Service:
    def __init__(self, parts: Parts, *, stop: threading.Event) -> None:
        self._parts = parts
        self._stop = stop
        self._idle = threading.Event()
        self._idle.set()
        self._interval_s = 0.0
        self._mode: Mode | None = None
        """Of the last cycle: its traces may be in the cluster."""
        self._term: Term | None = None
        """The last one in which a cycle began."""
        self._alone = Term(lambda term: "", reserve_s=0.0)
        """The one without end, where there is no other replica."""
        self._scheduler = BackgroundScheduler(
            timezone=datetime.UTC,
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )

    def run(self) -> bool:
        """Serve until the stop event is set. True when everything ended in time, False when a cycle hangs in a request."""
        self._parts.health.policy_valid()
        self._scheduler.add_listener(self._missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        self._interval_s = self._parts.session.orders.policy.spec.interval
        if self._parts.hints is not None:
            self._parts.hints.start(self._term_now)
            self._parts.health.watch("placement hints", self._parts.hints.alive)
        self._scheduler.add_job(self.tick, self._trigger(), id=JOB, next_run_time=datetime.datetime.now(datetime.UTC))
        self._scheduler.start()
        self._campaign()
        self._stop.wait()
        log.info("stopping", finish_within_s=FINISH_S)
        ending = Deadline.after(FINISH_S + CLEAN_UP_S)
        leadership = self._parts.leadership
        if leadership is not None:
            leadership.interrupt()
        self._scheduler.shutdown(wait=False)
        finished = self._idle.wait(FINISH_S)
        # What a former leader left in the cluster is its successor's to judge: a standby takes nothing off.
        deadline = Deadline.after(CLEAN_UP_S)
        if self._parts.hints is not None:
            self._parts.hints.close(within_s=CLEAN_UP_S / 2)
        if self._mode is not None and (leadership is None or leadership.term is not None):
            self._clean_up(self._mode, deadline=deadline)
            self._clean_annotations(deadline=ending, hurry=True)
        if leadership is not None:
            leadership.close(release=finished, within_s=RELEASE_S)
        log.info("stopped", clean=finished)
        return finished

    def tick(self) -> CycleResult | None:
        """One cycle with everything around it, or on a standby nothing but the policy file; never raises."""
        self._idle.clear()
        try:
            return None if self._stop.is_set() else self._cycle_or_stand_by()
        except Exception:
            log.exception("a defect of this program beside the cycle; the next one starts afresh")
            return None
        finally:
            self._parts.health.beat(interval_s=self._interval_s)
            self._idle.set()

    def _term_now(self) -> Term | None:
        leadership = self._parts.leadership
        return self._alone if leadership is None else leadership.term

    def _campaign(self) -> None:
        leadership = self._parts.leadership
        self._parts.metrics.leads(leadership is None)
        if leadership is None:
            return
        self._parts.health.standby(True)
        self._parts.loads.stood_down()
        log.info("campaigning", lease=leadership.place, identity=leadership.identity)
        leadership.start(began=self._lead, ended=self._stand_down)
        self._parts.health.watch("leader election", leadership.alive)

    def _lead(self) -> None:
        self._parts.health.standby(False)
        self._parts.metrics.leads(True)
        self._run_in(0.0)

    def _stand_down(self, reason: str) -> None:
        self._parts.health.standby(True)
        self._parts.metrics.stood_down()
        self._parts.loads.stood_down()

    def _run_in(self, seconds: float) -> None:
        if not self._stop.is_set():
            self._scheduler.modify_job(JOB, next_run_time=datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds))

    def _cycle_or_stand_by(self) -> CycleResult | None:
        leadership = self._parts.leadership
        if leadership is None:
            return self._cycle(None)
        term = leadership.term
        if term is None:
            self._parts.controller.rest()
            self._reload()
            self._parts.metrics.mode_in_force(self._parts.session.orders.mode.value)
            return None
        self._term = term
        result = self._cycle(term)
        if term.lost:
            self._parts.metrics.stood_down()  # the cycle may have shown its observation after the loss
            self._parts.loads.stood_down()
            self._parts.metrics.leads(leadership.term is not None)
        return result

    def _cycle(self, term: Term | None) -> CycleResult | None:
        parts, at = self._parts, self._parts.clock.now()
        parts.health.beat()
        try:
            self._reload()
            orders = parts.session.orders
            parts.metrics.mode_in_force(orders.mode.value)
            limit = parts.session.settings.cycle_timeout
            if parts.hints is not None:
                parts.hints.lead(term or self._alone)
            if term is None:
                deadline = Deadline.after(limit, stop=self._stop)
                self._follow(orders.mode, deadline=deadline)
                result = parts.controller.cycle(orders, deadline=deadline)
            else:
                deadline = Deadline.after(limit, stop=term.stop, interruption=term.interruption)
                self._follow(orders.mode, deadline=deadline)
                result = parts.controller.cycle(orders, deadline=deadline, allowed=term.refusal, move_limit_s=term.reserve_s)
        except Interrupted as stop:
            parts.metrics.cycle_ended(CycleEnd.ABANDONED, at=at, seconds={})
            log.info("cycle abandoned", reason=str(stop))
            return None
        except RebalancerError as error:
            parts.metrics.cycle_ended(CycleEnd.FAILED, at=at, seconds={})
            if isinstance(error, MetricsError):
                parts.health.prometheus_failed(error.message)
            elif isinstance(error, KubernetesError):
                parts.health.cluster_failed(error.message)
            log.error("cycle failed, nothing was moved", error=error.message, remedy=error.remedy)
            return None
        except Exception:
            parts.metrics.cycle_ended(CycleEnd.FAILED, at=at, seconds={})
            log.exception("cycle failed on a defect of this program; the next one starts afresh")
            return None
        self._tell(result, at=at)
        return result

    def _tell(self, result: CycleResult, *, at: float) -> None:
        parts, verdict = self._parts, result.verdict
        plan = verdict.decision.plan
        parts.metrics.cycle_ended(_end(result), at=at, seconds=result.seconds)
        parts.health.observed()
        parts.metrics.observed(verdict.state, verdict.findings, verdict.decision.plan.gpus, verdict.accounts)
        parts.loads.observed(verdict.state, verdict.findings.load)
        parts.metrics.planned(plan)
        parts.metrics.settled(verdict.landings)
        parts.metrics.landed(verdict.landing_rate, min_moves=parts.session.orders.policy.spec.breaker.min_moves)
        parts.metrics.breaker({finding.cause for finding in verdict.breaker})
        before = {past.workload for past in verdict.history.evictions}
        moved = [outcome.move.workload for outcome in result.outcomes if outcome.result is Result.EVICTED]
        names = {(ref.kind, ref.namespace, ref.name) for ref in before if ref is not None}
        repeats = sum(ref is not None and (ref.kind, ref.namespace, ref.name) in names for ref in moved)
        parts.metrics.moved(plan, result.outcomes, repeats=repeats)
        parts.metrics.annotated(result.annotated.counts, oldest_s=result.annotated.oldest_s)
        trouble = [outcome for outcome in result.outcomes if outcome.result.trouble]
        if trouble:
            log.warning("moves were not carried out", moves=len(trouble), of=len(plan.moves), first=trouble[0].reason)
        warnings = verdict.state.coverage.warnings
        if warnings:
            log.warning("Prometheus warns that its answers may be partial", warnings=len(warnings), first=warnings[0])
        for note in result.notes:
            log.info("note", text=note)
        for finding in verdict.breaker:
            log.warning("the breaker is open, nothing is moved", cause=finding.cause.value, reason=finding.words)
        log.info(
            "cycle",
            outcome=plan.outcome,
            mode=plan.mode,
            hot_nodes=plan.summary.hot_nodes,
            unknown_nodes=plan.summary.unknown_nodes,
            max_load=plan.summary.max_load,
            moves=plan.summary.moves,
            refused=plan.summary.refused,
            seconds={stage: round(seconds, 3) for stage, seconds in result.seconds.items()},
        )

    def _reload(self) -> None:
        reload_orders(self._parts.session, told=self._parts.metrics.reloaded)
        interval = self._parts.session.orders.policy.spec.interval
        if interval != self._interval_s:
            self._interval_s = interval
            if self._scheduler.running:
                self._scheduler.reschedule_job(JOB, trigger=self._trigger())
        self._follow_hints()

    def _follow_hints(self) -> None:
        hints, orders = self._parts.hints, self._parts.session.orders
        if hints is not None:
            steering = orders.policy.spec.steering
            hints.follow(hints=steering.hints and orders.mode is Mode.EVICT, wait_s=steering.hint_wait)

    def _trigger(self) -> IntervalTrigger:
        jitter = max(1, int(self._interval_s * JITTER_SHARE))
        return IntervalTrigger(seconds=self._interval_s, jitter=jitter, timezone=datetime.UTC)

    def _missed(self, event: JobExecutionEvent) -> None:
        self._parts.metrics.cycle_missed()
        log.warning("a cycle was skipped, since the one before still ran")
        leadership = self._parts.leadership
        term = None if leadership is None else leadership.term
        if term is not None and term is not self._term:
            self._run_in(AGAIN_S)

    def _follow(self, mode: Mode, *, deadline: Deadline) -> None:
        """When the policy or the settings change the mode, take off what the one before left: nobody else would. Raises Interrupted."""
        before = self._mode
        if before is not None and before is not mode:
            log.info("the mode has changed", before=before.value, mode=mode.value)
            self._clean_up(before, deadline=deadline)
            if mode is Mode.DRY_RUN:
                self._clean_annotations(deadline=deadline)
        self._mode = mode  # only now: a stop in between leaves the rest to the clean-up at the end

    def _clean_up(self, mode: Mode, *, deadline: Deadline) -> None:
        """Take the soft taints or marks of ``mode`` off; dry run leaves none and writes nothing."""
        try:
            pools = self._parts.session.orders.policy.spec.pools
            notes = self._parts.actuators[mode].clean_up(deadline=deadline, pools=pools)
        except Interrupted:
            raise
        except RebalancerError as error:
            log.warning("taints or marks of ours may be left; `rebalancer cleanup` removes them", mode=mode.value, error=str(error))
            return
        for note in notes:
            log.info("note", text=note)

    def _clean_annotations(self, *, deadline: Deadline, hurry: bool = False) -> None:
        """Take node load annotations off, as many as the time allows; the others go stale by themselves."""
        if self._parts.annotations is None:
            return
        try:
            pools = self._parts.session.orders.policy.spec.pools
            notes = self._parts.annotations.clean_up(deadline=deadline, pools=pools, hurry=hurry)
        except Interrupted:
            raise
        except RebalancerError as error:
            log.warning("load annotations of ours may be left; `rebalancer cleanup` removes them", error=str(error))
            return
        for note in notes:
            log.info("note", text=note)


def _end(result: CycleResult) -> CycleEnd:
    plan = result.verdict.decision.plan
    if any(outcome.result is Result.EVICTED for outcome in result.outcomes):
        return CycleEnd.MOVED
    if any(outcome.result in (Result.RECORDED, Result.ANNOTATED) for outcome in result.outcomes):
        return CycleEnd.PROPOSED
    if result.outcomes and all(outcome.result is Result.ABANDONED for outcome in result.outcomes):
        return CycleEnd.ABANDONED
    return CycleEnd.BLOCKED if plan.summary.hot_nodes else CycleEnd.BALANCED
