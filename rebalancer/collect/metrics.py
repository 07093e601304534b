"""Reads every judged signal from Prometheus: a few queries for all nodes and all pods, of which only samples that can be trusted are kept.

The number of queries follows from the number of signals (and of pods, by 20,000), never from that of workloads or nodes. A signal that
cannot be had is inert and says why; only when no signal at all can be had is there nothing to decide by, and that is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import numpy as np

from rebalancer.collect.asking import Asking
from rebalancer.collect.choosing import ENOUGH, is_better, why_not_recorded_nodes, why_not_recorded_pods
from rebalancer.collect.freshness import NO_AGES, Ages, ages_from_query, read_ages
from rebalancer.collect.in_flight import run_jobs
from rebalancer.collect.node_usage import Judging, NodeUsage, assemble_nodes
from rebalancer.collect.pod_usage import PlacedPod, PodUsage, assemble_pods, shards
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.queries import NamedQuery
from rebalancer.collect.resolve import Resolution, describe_foreign, resolve, show
from rebalancer.collect.samples import NodeDirectory, Samples, SignalSamples
from rebalancer.collect.sanity import Dropped, DropReason, believed
from rebalancer.collect.signal_plan import NodeWay, PodWay, SignalPlan, forced_label, plan_signals
from rebalancer.deadline import Deadline
from rebalancer.errors import MetricsError, MetricsMissing, PrometheusUnreachable
from rebalancer.policy.model import Spec
from rebalancer.units import format_duration

_CHECK = "run `rebalancer check` to see each query with what it found"


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one job found for one signal: usage of nodes, of pods, or a capacity; or why not."""

    source: str = ""
    nodes: NodeUsage | None = None
    pods: PodUsage | None = None
    deviation: Mapping[PlacedPod, float] = field(default_factory=lambda: MappingProxyType({}))
    capacity: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    dropped: Dropped = field(default_factory=Counter)
    failed: str = ""
    error: MetricsError | None = None


def read_samples(
    prometheus: Prometheus,
    *,
    spec: Spec,
    directory: NodeDirectory,
    at: float,
    deadline: Deadline,
    namespaces: Sequence[str] = (),
    pods: int = 0,
) -> Samples:
    """All signals at ``at`` (unix seconds). ``namespaces`` and ``pods`` say how the pods may be divided among queries.

    Raises PrometheusUnreachable, PrometheusRefused or MetricsMissing when no signal has a single usable node sample, SettingsError for
    unreadable credentials, Interrupted on a stop.
    """
    parts = shards(directory=directory, namespaces=namespaces, pods=pods)
    plans = plan_signals(spec, shards=parts, recorded=prometheus.access.recording_rules)
    asking = Asking(prometheus, directory=directory, at=at, deadline=deadline)
    jobs = [
        job
        for plan in plans
        for job in (
            partial(_read_nodes, asking, plan, spec=spec),
            partial(_read_pods, asking, plan, spec=spec),
            partial(_read_capacity, asking, plan, spec=spec),
        )
    ]
    try:
        readings = run_jobs(jobs, in_flight=prometheus.access.max_in_flight, deadline=deadline)
    finally:
        prometheus.cycle_is_over()
    late = _Reading(failed=f"Prometheus at {prometheus.url} had not answered at the cycle's deadline")
    signals: list[SignalSamples] = []
    dropped: Dropped = Counter()
    errors: list[MetricsError] = []
    for number, plan in enumerate(plans):
        own = [reading or late for reading in readings[3 * number : 3 * number + 3]]
        errors.extend(reading.error for reading in own if reading.error is not None)
        for reading in own:
            dropped.update(reading.dropped)
        signals.append(_signal_samples(plan, asking, nodes=own[0], pods=own[1], capacity=own[2]))
    _require_something(signals, errors)
    return Samples(
        signals=tuple(signals),
        window_s=spec.metrics.window,
        step_s=spec.confirm.step,
        windows=spec.confirm.windows,
        deviation_s=spec.risk.lookback if spec.risk.deviations else 0.0,
        dropped={reason.value: count for reason, count in sorted(dropped.items(), key=lambda item: item[0].value)},
        notes=tuple(sorted(asking.heard.notes)),  # several threads wrote them; the report must not depend on which was first
        warnings=tuple(sorted(asking.heard.warnings)),
    )


def _signal_samples(plan: SignalPlan, asking: Asking, *, nodes: _Reading, pods: _Reading, capacity: _Reading) -> SignalSamples:
    failed = nodes.failed or capacity.failed
    name = plan.signal.name
    if failed:
        asking.heard.note(f"signal {name} is inert: {failed}")
    elif pods.failed:
        asking.heard.note(f"signal {name} knows no pod: {pods.failed}")
    capacities: Mapping[str, float] | None = None
    if plan.capacity_query is not None:
        capacities = capacity.capacity
    elif plan.capacity.value is not None:
        capacities = dict.fromkeys(sorted(asking.directory.names), plan.capacity.value)
    found = nodes.nodes
    return SignalSamples(
        signal=plan.signal,
        node_usage=found.usage if found is not None else {},
        node_age_s=found.age_s if found is not None else {},
        node_unknown=found.unknown if found is not None else dict.fromkeys(sorted(asking.directory.names), failed),
        pod_usage=pods.pods.usage if pods.pods is not None else {},
        pod_deviation=pods.deviation,
        capacity=capacities,
        capacity_resource=plan.capacity.resource,
        failed=failed,
        source=nodes.source,
        pods_failed="" if failed else pods.failed,
    )


def _require_something(signals: Sequence[SignalSamples], errors: Sequence[MetricsError]) -> None:
    if not signals or any(not signal.failed for signal in signals):
        return
    if errors:
        raise errors[0]
    raise MetricsMissing("; ".join(f"signal {signal.signal.name}: {signal.failed}" for signal in signals), remedy=_CHECK)


@dataclass(frozen=True, slots=True)
class _Candidate:
    way: NodeWay
    answer: Answer
    resolution: Resolution


def _read_nodes(asking: Asking, plan: SignalPlan, *, spec: Spec) -> _Reading:
    best: _Candidate | None = None
    failures: list[str] = []
    error: MetricsError | None = None
    for way in plan.nodes:
        try:
            answer = asking.windows(way.usage, windows=spec.confirm.windows, step_s=spec.confirm.step)
        except MetricsError as failure:
            failures.append(failure.message)
            error = error or failure
            if isinstance(failure, PrometheusUnreachable):
                break  # the next way would wait for the same silence
            continue
        found = resolve(answer.labels, directory=asking.directory, forced=forced_label(spec), lookups=asking.lookups)
        if not found.matched and not way.recorded:
            failures.append(_nothing(asking, way.usage.name, answer))
        than = None if best is None else best.resolution.matched
        if best is None or is_better(found.matched, than=than, recorded=way.recorded, best_recorded=best.way.recorded):
            best = _Candidate(way, answer, found)
        if way.recorded:
            why_not = why_not_recorded_nodes(answer, found, directory=asking.directory, min_coverage=spec.metrics.min_coverage)
            if not why_not:
                break
            asking.heard.note(f"signal {plan.signal.name}: series of nodes ({way.source}) do not suffice: {why_not}")
        elif best.resolution.matched >= ENOUGH * len(asking.directory.names):
            break
    if best is None or not best.resolution.matched:
        foreign = int(best.answer.present.sum()) if best is not None else 0
        return _Reading(failed="; ".join(failures), error=error, dropped=+Counter({DropReason.FOREIGN: foreign}))
    name, way = plan.signal.name, best.way
    asking.heard.note(
        f"signal {name}: {best.resolution.matched} of {len(asking.directory.names)} nodes by {way.source}, "
        f"names from {best.resolution.describe()}"
    )
    if strangers := describe_foreign(best.answer.labels, best.resolution):
        asking.heard.note(f"signal {name}: {strangers}")
    usage = assemble_nodes(
        best.answer,
        resolution=best.resolution,
        ages=_ages(asking, best, spec=spec),
        directory=asking.directory,
        judging=Judging(
            maximum=plan.maximum,
            max_age_s=spec.metrics.max_age,
            step_s=spec.confirm.step,
            rate_window_s=spec.metrics.window if way.is_rate and spec.metrics.statistic == "mean" else None,
        ),
    )
    return _Reading(source=way.source, nodes=usage, dropped=usage.dropped)


def _ages(asking: Asking, found: _Candidate, *, spec: Spec) -> Ages:
    way = found.way
    try:
        if way.live is not None and way.last_seen is not None:
            ask_live, ask_last_seen = partial(asking.instant, way.live), partial(asking.instant, way.last_seen)
            return read_ages(found.answer.labels, at=asking.at, ask_live=ask_live, ask_last_seen=ask_last_seen)
        if way.age is not None:
            answer = asking.instant(way.age)
            return ages_from_query(
                answer, resolve(answer.labels, directory=asking.directory, forced=forced_label(spec), lookups=asking.lookups)
            )
    except MetricsError as error:
        asking.heard.note(error.message)
        return Ages(by_series={}, by_node={}, live=frozenset(), known=False, failed=f"the age of its samples is unknown: {error.message}")
    return NO_AGES


def _read_pods(asking: Asking, plan: SignalPlan, *, spec: Spec) -> _Reading:
    failures: list[str] = []
    error: MetricsError | None = None
    best: tuple[PodWay, PodUsage, int] | None = None
    for way in plan.pods:
        parts = _Shards(asking, way.usage, node_label=forced_label(spec))
        usage = assemble_pods(
            parts.answers(),
            directory=asking.directory,
            node_label=forced_label(spec),
            maximum=plan.maximum,
            at=asking.at,
            max_age_s=spec.metrics.max_age,
        )
        failure = parts.failure
        if failure is not None:
            failures.append(failure.message)
            error = error or failure
        matched = _own_pods(usage, asking.directory)
        if not matched and failure is None and not way.recorded:
            failures.append(f"query {way.usage[0].name!r} found {parts.series} series and no pod of the cluster among them")
        than = None if best is None else best[2]
        if best is None or is_better(matched, than=than, recorded=way.recorded, best_recorded=best[0].recorded):
            best = (way, usage, matched)
        if isinstance(failure, PrometheusUnreachable):
            break
        if way.recorded:
            why_not = why_not_recorded_pods(usage.usage, directory=asking.directory, min_coverage=spec.metrics.min_coverage)
            if not why_not:
                break
            asking.heard.note(f"signal {plan.signal.name}: series of pods ({way.source}) do not suffice: {why_not}")
        elif best[2] >= ENOUGH * len(asking.directory.pod_nodes):
            break
    if best is None or not best[1].usage:
        counted = best[1].dropped if best is not None else Counter()
        return _Reading(failed="; ".join(failures) or "no pod has a sample that can be used", error=error, dropped=counted)
    way, usage, _ = best
    asking.heard.note(f"signal {plan.signal.name}: {len(usage.usage)} pods by {way.source}")
    for note in (*usage.notes, *([error.message] if error is not None else [])):
        asking.heard.note(note)
    return _Reading(source=way.source, pods=usage, deviation=_read_deviations(asking, plan, way, spec=spec), dropped=usage.dropped)


def _read_deviations(asking: Asking, plan: SignalPlan, way: PodWay, *, spec: Spec) -> Mapping[PlacedPod, float]:
    """Of the pods that can be told; nothing depends on them but the room for swings, so what is missing is a note and no failure."""
    if not way.deviation:
        return MappingProxyType({})
    parts = _Shards(asking, way.deviation, node_label=forced_label(spec))
    found = assemble_pods(
        parts.answers(),
        directory=asking.directory,
        node_label=forced_label(spec),
        maximum=plan.maximum,
        at=asking.at,
        max_age_s=spec.metrics.max_age,
    )
    name, lookback = plan.signal.name, format_duration(spec.risk.lookback)
    if parts.failure is not None:
        asking.heard.note(f"signal {name}: room for swings is not known everywhere: {parts.failure.message}")
    elif not found.usage:
        asking.heard.note(f"signal {name}: Prometheus knows no standard deviation over {lookback}, so no room is kept for swings")
    else:
        asking.heard.note(f"signal {name}: standard deviations over {lookback} of {len(found.usage)} pods")
    return found.usage


class _Shards:
    """The shards of one way to measure pods, asked for one by one so that only one answer is in memory.

    The pods of a shard that is not answered are unknown, those of the others need not be.
    """

    def __init__(self, asking: Asking, queries: Sequence[NamedQuery], *, node_label: str | None) -> None:
        self._asking = asking
        self._queries = queries
        self._node_label = node_label
        self.failure: MetricsError | None = None
        """The first."""
        self.series = 0

    def answers(self) -> Iterator[Answer]:
        for query in self._queries:
            try:
                answer = self._asking.pods(query, node_label=self._node_label)
            except MetricsError as error:
                self.failure = self.failure or error
                if isinstance(error, PrometheusUnreachable):
                    return
            else:
                self.series += len(answer)
                yield answer


def _own_pods(usage: PodUsage, directory: NodeDirectory) -> int:
    """How many pods of the cluster have a usage."""
    return usage.usage.pods_known if directory.pod_nodes else len(usage.usage)


def _read_capacity(asking: Asking, plan: SignalPlan, *, spec: Spec) -> _Reading:
    """Capacity by the operator's query: of nodes that have exactly one possible amount above 0."""
    if plan.capacity_query is None:
        return _Reading()
    try:
        answer = asking.instant(plan.capacity_query)
    except MetricsError as error:
        return _Reading(failed=error.message, error=error)
    found = resolve(answer.labels, directory=asking.directory, forced=forced_label(spec), lookups=asking.lookups)
    values, dropped = believed(answer, maximum=None)
    capacity: dict[str, float] = {}
    for node, value in zip(found.nodes, values[:, -1].tolist(), strict=True):
        if node:
            capacity[node] = float("nan") if node in capacity else value
    usable = {node: value for node, value in capacity.items() if np.isfinite(value) and value > 0}
    if not usable:
        return _Reading(failed=_nothing(asking, plan.capacity_query.name, answer), dropped=dropped)
    return _Reading(capacity=usable, dropped=dropped)


def _nothing(asking: Asking, query: str, answer: Answer) -> str:
    """Why a query was of no use: it has no series, or none that speaks of a node of ours."""
    if not len(answer):
        return f"query {query!r} found no series; {asking.scraped_jobs()}"
    seen = ", ".join(show(labels) for labels in answer.labels[:2])
    return f"query {query!r} found {len(answer)} series, none of a node of the cluster; labels seen: {seen}"
