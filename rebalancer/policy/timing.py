"""When can a policy act for the first time, and do its times make sense together?

Each number of a policy may be fine by itself and still leave a rebalancer that never moves a pod, or never rests. That is told when the
file is read, not found out after a month of silence. Errors are for policies that can never act; warnings for those that will surprise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rebalancer.policy.model import Mode, Spec
from rebalancer.policy.quantities import limit_of
from rebalancer.units import format_duration

RETENTION_S = 15 * 86400.0
"""What Prometheus keeps by default; nothing older can confirm anything."""
USUAL_SCRAPE_S = 60.0
"""The longer of the two scrape intervals in wide use (30 s and 60 s); a sample may be this old before the next one arrives."""
SHORTEST_SCRAPE_S = 5.0
LONG_CONFIRMATION_S = 3600.0
CRANE_MEANS_FRESH_S = 480.0
"""How long readers believe the five-minute means among the annotations of crane-scheduler, by the policy that it is shipped with."""


@dataclass(frozen=True, slots=True)
class TimingFault:
    """``at``: path below ``spec`` of the value to correct, as written in the file."""

    at: tuple[str | int, ...]
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"spec.{'.'.join(str(step) for step in self.at)}: {self.message}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Timing:
    earliest_action_s: float
    """Seconds from the first window over ``high`` to the earliest cycle that may act on it."""
    latest_action_s: float
    """Seconds from a lasting rise of the load to the latest first action: the mean's window and one interval are added."""
    errors: tuple[TimingFault, ...]
    warnings: tuple[TimingFault, ...]


def judge_timing(spec: Spec) -> Timing:
    """The first possible action of a policy, and what its times and limits rule out."""
    confirmation = (spec.confirm.at_least - 1) * spec.confirm.step
    return Timing(
        earliest_action_s=confirmation,
        latest_action_s=confirmation + spec.metrics.window + spec.interval,
        errors=tuple(_never(spec, confirmation)),
        warnings=(*_nothing_moves(spec), *_marks(spec), *_metrics(spec, confirmation), *_rests(spec), *_annotations(spec)),
    )


def _never(spec: Spec, confirmation: float) -> Iterator[TimingFault]:
    span = confirmation + spec.metrics.window
    if span > RETENTION_S:
        yield TimingFault(
            ("confirm", "step"),
            f"no node can be confirmed hot sooner than after {format_duration(span)}, longer than Prometheus keeps samples",
            "lower step or atLeast",
        )
    if spec.metrics.max_age < SHORTEST_SCRAPE_S:
        yield TimingFault(
            ("metrics", "maxAge"),
            f"every sample is older than {format_duration(spec.metrics.max_age)} before the next scrape, so no node would ever be known",
            "use at least three scrape intervals, such as 3m",
        )
    if "*" in spec.victims.namespaces.exclude:
        yield TimingFault(("victims", "namespaces", "exclude"), "* excludes every namespace, so no pod may ever be moved", "name them")


def _nothing_moves(spec: Spec) -> Iterator[TimingFault]:
    limits = {"total": spec.budgets.total, "perNode": spec.budgets.per_node}
    limits |= {"perNamespace": spec.budgets.per_namespace, "perWorkload": spec.budgets.per_workload}
    for key, limit in limits.items():
        if limit_of(limit, 1_000_000) == 0:
            yield TimingFault(
                ("budgets", key), f"the budget is {limit}, so nothing will ever be evicted", "allow at least 1, or use dry-run"
            )
    answers = set(spec.victims.classes.model_dump(exclude={"unknown_gpu"}).values())
    if answers == {"refuse"}:
        yield TimingFault(("victims", "classes"), "every class is refused, so nothing will ever be moved", "allow one class")
    elif spec.mode is Mode.EVICT and "allow" not in answers:
        yield TimingFault(("victims", "classes"), "no class is allowed, so nothing will ever be evicted", "allow one, or use mode annotate")
    if spec.metrics.min_coverage == 100:
        yield TimingFault(
            ("metrics", "minCoverage"), "a single node or pod without samples stops every move", "use 90, or accept that new pods block it"
        )


def _marks(spec: Spec) -> Iterator[TimingFault]:
    for row, pool in enumerate(spec.pools):
        for name, threshold in pool.signals.items():
            if threshold.high >= 100:
                words = "percentage points over the pool's mean" if pool.thresholds == "deviation" else "percent"
                yield TimingFault(
                    ("pools", row, "signals", name, "high"),
                    f"no node of pool {pool.name} is hot by {name} before {threshold.high:g} {words}",
                    "lower high, or drop the signal",
                )


def _metrics(spec: Spec, confirmation: float) -> Iterator[TimingFault]:
    metrics, confirm = spec.metrics, spec.confirm
    if SHORTEST_SCRAPE_S <= metrics.max_age < USUAL_SCRAPE_S:
        yield TimingFault(
            ("metrics", "maxAge"),
            f"{format_duration(metrics.max_age)} is shorter than a usual scrape interval of {format_duration(USUAL_SCRAPE_S)}, "
            "so healthy nodes may count as unknown",
            "use at least three scrape intervals",
        )
    if metrics.window < 2 * USUAL_SCRAPE_S:
        yield TimingFault(
            ("metrics", "window"),
            f"a rate needs two samples, and {format_duration(metrics.window)} holds fewer at a scrape interval of "
            f"{format_duration(USUAL_SCRAPE_S)}",
            "use at least four scrape intervals",
        )
    if confirm.windows > 1 and confirm.step > metrics.window:
        yield TimingFault(
            ("confirm", "step"),
            f"windows of {format_duration(metrics.window)} every {format_duration(confirm.step)} leave gaps that nothing looks at",
            "let step be at most metrics.window",
        )
    if metrics.statistic == "max" and confirm.at_least <= math.ceil(metrics.window / confirm.step):
        yield TimingFault(
            ("confirm", "atLeast"),
            f"one spike shows in {math.ceil(metrics.window / confirm.step)} windows when their maximum is judged, enough to confirm a node",
            "raise atLeast over that, or use statistic mean",
        )
    if confirmation > LONG_CONFIRMATION_S:
        yield TimingFault(
            ("confirm", "step"), f"a hot node is left alone for {format_duration(confirmation)} at least", "lower step or atLeast"
        )


def _rests(spec: Spec) -> Iterator[TimingFault]:
    interval = format_duration(spec.interval)
    if spec.cooldown.workload < spec.interval:
        yield TimingFault(
            ("cooldown", "workload"),
            f"{format_duration(spec.cooldown.workload)} is over before the next cycle in {interval}, so a workload may be moved in each",
            "use several intervals",
        )
    if spec.cooldown.node < spec.interval:
        yield TimingFault(
            ("cooldown", "node"),
            f"{format_duration(spec.cooldown.node)} is over before the next cycle in {interval}, so it has no effect",
            "use at least one interval",
        )
    if spec.budgets.window < spec.interval:
        yield TimingFault(
            ("budgets", "window"),
            f"{format_duration(spec.budgets.window)} is over before the next cycle in {interval}, so every cycle has the full budget",
            "use several intervals",
        )
    if spec.breaker.pending_after >= spec.breaker.hold:
        yield TimingFault(
            ("breaker", "pendingAfter"),
            f"moves are forgotten after {format_duration(spec.breaker.hold)}, before a pod of theirs counts as pending",
            "let hold be longer than pendingAfter",
        )
    if spec.quarantine.hold < spec.cooldown.workload:
        yield TimingFault(
            ("quarantine", "hold"),
            f"{format_duration(spec.quarantine.hold)} is shorter than cooldown.workload, so the quarantine has no effect",
            "let it be longer than cooldown.max",
        )


def _annotations(spec: Spec) -> Iterator[TimingFault]:
    steering, interval = spec.steering, format_duration(spec.interval)
    if steering.crane_annotations and 2 * spec.interval > CRANE_MEANS_FRESH_S:
        yield TimingFault(
            ("interval",),
            f"crane annotations of the last five minutes are good for {format_duration(CRANE_MEANS_FRESH_S)}, and with a cycle every "
            f"{interval} one that is missed lets them run out",
            "use at most 4m",
        )
    if steering.own_annotation and steering.load_expiry < 2 * spec.interval:
        yield TimingFault(
            ("steering", "loadExpiry"),
            f"{format_duration(steering.load_expiry)} is less than two cycles of {interval}, so a missed one lets the value run out",
            "use at least three intervals",
        )
