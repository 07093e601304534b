"""Tries every query of a policy once and says what each found: for ``rebalancer check``, before anything depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rebalancer.collect.asking import Asking
from rebalancer.collect.in_flight import run_jobs
from rebalancer.collect.pod_usage import assemble_pods
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.prometheus_wire import Answer
from rebalancer.collect.queries import NamedQuery
from rebalancer.collect.resolve import describe_foreign, resolve, show
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import believed
from rebalancer.collect.signal_plan import describe_queries, forced_label, plan_signals
from rebalancer.deadline import Deadline
from rebalancer.errors import MetricsError
from rebalancer.policy.model import Spec

SHOWN_LABELS = 3


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one query found. ``matched`` of ``wanted`` nodes or pods of the cluster have a sample that can be used."""

    query: NamedQuery
    series: int = 0
    matched: int = 0
    wanted: int = 0
    oldest_sample_s: float = float("nan")
    """Of a query for ages: the greatest age found, seconds; NaN for others, and where there is none."""
    resolved_by: str = ""
    """How node names were found, in words."""
    labels_seen: tuple[str, ...] = ()
    """The first label sets, as PromQL writes them."""
    warnings: tuple[str, ...] = ()
    problem: str = ""
    """Why the query is of no use, or what is odd about it, in words; empty when all is well."""

    @property
    def useful(self) -> bool:
        return self.matched > 0


def probe(prometheus: Prometheus, *, spec: Spec, directory: NodeDirectory, at: float, deadline: Deadline) -> tuple[ProbeResult, ...]:
    """One result a query, in the order of `describe_queries`; a query that fails is a result with a problem, not an error."""
    asking = Asking(prometheus, directory=directory, at=at, deadline=deadline)
    queries = describe_queries(spec, recorded=prometheus.access.recording_rules)
    maxima = {plan.signal.name: plan.maximum for plan in plan_signals(spec)}
    jobs = [partial(_probe, asking, query, spec=spec, maximum=maxima[query.signal]) for query in queries]
    results = run_jobs(jobs, in_flight=prometheus.access.max_in_flight, deadline=deadline)
    late = f"Prometheus at {prometheus.url} had not answered at the deadline"
    return tuple(result or ProbeResult(query=query, problem=late) for query, result in zip(queries, results, strict=True))


def unserved(results: Sequence[ProbeResult]) -> tuple[ProbeResult, ...]:
    """The results of no use that no other query makes up for: of several sources of a signal, one that answers is enough."""
    served = {(result.query.signal, result.query.subject) for result in results if result.useful}
    return tuple(result for result in results if (result.query.signal, result.query.subject) not in served)


def _probe(asking: Asking, query: NamedQuery, *, spec: Spec, maximum: float | None) -> ProbeResult:
    try:
        answer = asking.instant(query)
    except MetricsError as error:
        return ProbeResult(query=query, problem=str(error))
    if not len(answer):
        wanted = len(asking.directory.pod_nodes if query.subject == "pods" else asking.directory.names)
        problem = "no series" if query.recorded else f"no series; {asking.scraped_jobs()}"
        return ProbeResult(query=query, wanted=wanted, problem=problem, warnings=answer.warnings)
    if query.subject == "pods":
        return _probe_pods(asking, query, answer, spec=spec, maximum=maximum)
    return _probe_nodes(asking, query, answer, spec=spec, maximum=maximum)


def _probe_nodes(asking: Asking, query: NamedQuery, answer: Answer, *, spec: Spec, maximum: float | None) -> ProbeResult:
    found = resolve(answer.labels, directory=asking.directory, forced=forced_label(spec), lookups=asking.lookups)
    values, dropped = believed(answer, maximum=maximum if query.subject == "nodes" else None)
    newest = values[:, -1]
    nodes = [node for node, value in zip(found.nodes, newest.tolist(), strict=True) if node and np.isfinite(value)]
    oldest = float("nan")
    if query.subject == "age" and nodes:
        is_stamp = query.recorded or any(query in (way.live, way.last_seen) for plan in plan_signals(spec) for way in plan.nodes)
        own = newest[[bool(node) for node in found.nodes]]
        oldest = float(np.nanmax(asking.at - own if is_stamp else own))
    double = len(nodes) - len(set(nodes))
    problems = [
        describe_foreign(answer.labels, found),
        f"{double} nodes have more than one series" if double else "",
        *(f"{count} samples dropped: {reason.value}" for reason, count in dropped.items()),
    ]
    return ProbeResult(
        query=query,
        series=len(answer),
        matched=len(set(nodes)),
        wanted=len(asking.directory.names),
        oldest_sample_s=oldest,
        resolved_by=found.describe(),
        labels_seen=_seen(answer),
        warnings=answer.warnings,
        problem="; ".join(filter(None, problems)),
    )


def _probe_pods(asking: Asking, query: NamedQuery, answer: Answer, *, spec: Spec, maximum: float | None) -> ProbeResult:
    usage = assemble_pods(
        [answer],
        directory=asking.directory,
        node_label=forced_label(spec),
        maximum=maximum,
        at=asking.at,
        max_age_s=spec.metrics.max_age,
    )
    own = {key[:2] for key in usage.usage} & asking.directory.pod_nodes.keys()
    problems = [*usage.notes, *(f"{count} samples dropped: {reason.value}" for reason, count in usage.dropped.items())]
    return ProbeResult(
        query=query,
        series=len(answer),
        matched=len(own),
        wanted=len(asking.directory.pod_nodes),
        labels_seen=_seen(answer),
        warnings=answer.warnings,
        problem="; ".join(problems) if own else "; ".join([*problems, "no pod of the cluster has a sample"]),
    )


def _seen(answer: Answer) -> tuple[str, ...]:
    return tuple(show(labels) for labels in answer.labels[:SHOWN_LABELS])
