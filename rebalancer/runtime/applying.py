"""Carrying out a plan file: is it for this cluster, is it fresh, does each move still hold; then act exactly as a cycle does."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rebalancer.act.outcome import Outcome
from rebalancer.deadline import Deadline
from rebalancer.errors import PlanFileError, UsageError
from rebalancer.plan.document import document
from rebalancer.plan.model import Move, Plan
from rebalancer.plan.planner import lay_bench
from rebalancer.plan.recheck import recheck
from rebalancer.policy.model import Mode
from rebalancer.report.plan_file import plan_from_json
from rebalancer.runtime.acting import Acting, tell_rests
from rebalancer.runtime.clock import SystemClock
from rebalancer.runtime.considering import consider, without_taints
from rebalancer.runtime.event_notes import EventNotes
from rebalancer.runtime.observe import observe, require_coverage
from rebalancer.runtime.session import Session, actuators, connected, memory_store
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.units import format_duration, parse_duration, parse_time


@dataclass(frozen=True, slots=True)
class Applied:
    mode: Mode
    mode_source: str
    outcomes: tuple[Outcome, ...]
    dropped: tuple[tuple[Move, str], ...]
    """Moves that do not hold any more, with the reason."""
    notes: tuple[str, ...]


def read_plan(path: Path, *, max_age: str, now: float | None = None) -> Plan:
    """Raises PlanFileError when the file is no plan, or a plan of the past or the future."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PlanFileError(
            f"cannot read plan {path}: {error.strerror}", remedy="give the file that `rebalancer plan --out` wrote"
        ) from error
    plan = plan_from_json(data, str(path))
    try:
        limit, made = parse_duration(max_age), parse_time(plan.created_at)
    except ValueError as error:
        raise UsageError(f"{path}: {error}", remedy="give --max-age like 15m; make a new plan if the file is damaged") from error
    age = (SystemClock().now() if now is None else now) - made
    if age > limit:
        raise PlanFileError(
            f"plan {path} is {format_duration(age)} old, at most {format_duration(limit)} is allowed",
            remedy="make a new plan; loads change in minutes",
        )
    if age < -60:
        raise PlanFileError(f"plan {path} was made {format_duration(-age)} in the future", remedy="set the clocks right")
    return plan


def apply_plan(plan: Plan, session: Session, *, origin: str, stage: Callable[[str], None] = lambda words: None) -> Applied:
    """Raises PlanFileError for a plan of another cluster, KubernetesError and MetricsError when the cluster cannot be seen whole."""
    orders = replace(session.orders, hints=False)  # it does not stay to give any
    spec, at = orders.policy.spec, SystemClock().now()
    deadline = Deadline.after(session.settings.cycle_timeout)
    with connected(session) as connections:
        stage(f"reading the cluster at {connections.client.server}")
        store = memory_store(connections.client, session, mode=orders.mode)
        memory = store.load(deadline=deadline)
        state = observe(
            client=connections.client, prometheus=connections.prometheus, spec=spec, at=at, deadline=deadline, stopwatch=Stopwatch()
        )
        if plan.cluster != state.cluster:
            raise PlanFileError(
                f"plan {origin} is for cluster {plan.cluster}, {connections.client.server} is cluster {state.cluster}",
                remedy="choose the right --context, or make a new plan",
            )
        require_coverage(state, spec)
        verdict = consider(state, memory, orders)
        bench = lay_bench(state=state, findings=verdict.findings, policy=orders.policy, history=verdict.history, mode=orders.mode)
        proposal, dropped = recheck(plan, bench)
        still = document(
            state=state,
            findings=verdict.findings,
            bench=bench,
            proposal=proposal,
            policy=orders.policy,
            mode=orders.mode,
            mode_source=orders.mode_source,
        )
        stage("acting")
        acts = actuators(connections.client, events=spec.events, instance=socket.gethostname(), told=EventNotes().told)
        unsteered = partial(without_taints, verdict=verdict, orders=orders)
        acting = Acting(acts[orders.mode], store, plan=still, state=state, memory=verdict.memory, without_taints=unsteered)
        notes, outcomes = acting.run(at=at, deadline=deadline)
        rests = tell_rests(acts[orders.mode], before=memory, after=verdict.memory, at=at, deadline=deadline)
    return Applied(
        mode=orders.mode,
        mode_source=orders.mode_source,
        outcomes=tuple(outcomes),
        dropped=dropped,
        notes=(proposal.outcome, *notes, *rests),
    )
