"""The preflight: everything that a first cycle depends on, tried once and told with its remedy, before anything depends on it.

It goes on after a failure, so that one run shows all that is missing. Nothing is written anywhere.
"""

from __future__ import annotations

import email.utils
import math
from collections.abc import Callable, Sequence

from rebalancer.collect.cluster import ClusterObjects, node_directory, read_cluster
from rebalancer.collect.probe import ProbeResult, probe, unserved
from rebalancer.collect.prometheus import Prometheus
from rebalancer.deadline import Deadline
from rebalancer.detect.classify import detect
from rebalancer.detect.findings import NodeClass
from rebalancer.errors import KubernetesError, KubernetesForbidden, MetricsError, MetricsMissing, RebalancerError
from rebalancer.gpu.telling import NOTE, REMEDIES, UNMEASURED_REMEDY, by_reason, fault_words, summary, unmeasured_words
from rebalancer.kube.access import can_i, server_version
from rebalancer.kube.client import KubeClient
from rebalancer.plan.hinting import ENABLED, NAMESPACE_LABEL
from rebalancer.policy.model import Mode
from rebalancer.report.checks import Check, CheckReport, CheckStatus
from rebalancer.runtime.clock import Clock, SystemClock
from rebalancer.runtime.hint_readiness import hints_unready
from rebalancer.runtime.observe import observe, require_coverage
from rebalancer.runtime.rights import Right, gang_rights, lease_rights, optional_rights, reading_rights, writing_rights
from rebalancer.runtime.session import Connections, Session, connected
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.state.cluster import ClusterState
from rebalancer.units import format_duration, format_time

MOST_SKEW_S = 10.0
SHOWN_JOBS = 12
NEWEST_KNOWN = (1, 37)
OLDEST_KNOWN = (1, 27)


class _Checks:
    def __init__(self) -> None:
        self.found: list[Check] = []
        self.exit_status = 0

    def ok(self, name: str, sentence: str) -> None:
        self.found.append(Check(name=name, status=CheckStatus.OK, sentence=sentence))

    def warn(self, name: str, sentence: str, remedy: str = "") -> None:
        self.found.append(Check(name=name, status=CheckStatus.WARN, sentence=sentence, remedy=remedy))

    def fail(self, name: str, sentence: str, remedy: str, *, exit_status: int) -> None:
        self.found.append(Check(name=name, status=CheckStatus.FAIL, sentence=sentence, remedy=remedy))
        self.exit_status = self.exit_status or exit_status

    def failed(self, name: str, error: RebalancerError) -> None:
        self.fail(name, error.message, error.remedy, exit_status=error.exit_status)


def check(session: Session, *, stage: Callable[[str], None] = lambda words: None, clock: Clock | None = None) -> tuple[CheckReport, int]:
    """The report, and the exit status of the first failure; 0 when nothing failed."""
    clock, checks = clock or SystemClock(), _Checks()
    orders = session.orders
    checks.ok("mode", f"{orders.mode.value}, from {orders.mode_source}")
    origin = session.settings.policy_file or "the built-in policy"
    checks.ok("policy", f"{orders.policy.metadata.name}, from {origin}")
    for sentence in session.warnings():
        checks.warn("policy", sentence)
    cluster = ""
    deadline = Deadline.after(session.settings.cycle_timeout)
    try:
        with connected(session) as connections:
            for notice in connections.prometheus.notices:
                checks.warn("prometheus", notice)
            cluster = _check_connected(session, connections, checks, stage, clock, deadline)
    except RebalancerError as error:
        checks.failed("settings", error)
    return CheckReport(cluster=cluster, created_at=format_time(clock.now()), checks=tuple(checks.found)), checks.exit_status


def _check_connected(
    session: Session, connections: Connections, checks: _Checks, stage: Callable[[str], None], clock: Clock, deadline: Deadline
) -> str:
    client = connections.client
    stage(f"asking {client.server}")
    try:
        _check_server(client, checks, clock, deadline)
        _check_rights(session, client, checks, deadline)
        objects = read_cluster(client, deadline=deadline)
    except KubernetesError as error:
        if isinstance(error, KubernetesForbidden) and checks.exit_status:
            checks.warn("cluster", "not read, for want of the rights above; so the queries were not tried either")
        else:
            checks.failed("kubernetes", error)
        _check_prometheus(connections.prometheus, checks, clock, deadline)
        return ""
    checks.ok("cluster", f"{len(objects.nodes)} nodes and {len(objects.pods)} pods read")
    for reason, count in sorted(objects.odd.items()):
        checks.warn("cluster", f"{count} objects could not be read and are ignored: {reason}")
    _check_hints(session, client, objects, checks, deadline)
    stage(f"asking {connections.prometheus.url}")
    if _check_prometheus(connections.prometheus, checks, clock, deadline):
        _check_queries(session, connections, objects, checks, clock, deadline)
        stage("trying one look")
        _check_one_look(session, connections, checks, clock, deadline)
    return objects.cluster


def _check_server(client: KubeClient, checks: _Checks, clock: Clock, deadline: Deadline) -> None:
    version = server_version(client, deadline=deadline)
    words = f"{client.server} answers, version {version.git_version}"
    if OLDEST_KNOWN <= (version.major, version.minor) <= NEWEST_KNOWN:
        checks.ok("kubernetes", words)
    else:
        checks.warn("kubernetes", f"{words}, which this program was not made for", "watch the first plans in dry-run mode")
    said = client.get("/version", deadline=deadline).headers.get("date", "")
    try:
        skew = clock.now() - email.utils.parsedate_to_datetime(said).timestamp()
    except (TypeError, ValueError):
        return
    if abs(skew) > MOST_SKEW_S:
        direction = "ahead of" if skew > 0 else "behind"
        checks.warn("clock", f"this machine's clock is {format_duration(abs(skew))} {direction} the API server's", "synchronise the clocks")
    else:
        checks.ok("clock", f"within {MOST_SKEW_S:g} s of the API server's")


def _check_rights(session: Session, client: KubeClient, checks: _Checks, deadline: Deadline) -> None:
    orders, namespace, election = session.orders, session.settings.namespace, session.settings.leader_election
    lease = election.lease_name if election.enabled else ""
    spec = orders.policy.spec
    watches = session.settings.kubernetes.watch
    missing = _missing(client, [right for right in reading_rights() if watches or right.verb != "watch"], deadline)
    for right in missing:
        if right.verb == "watch":
            remedy = f"add the rule {right.rule}, or set kubernetes.watch to false"
            checks.warn("rights", f"may not {right.words}, so the service lists it in each cycle", remedy)
        else:
            checks.fail("rights", f"may not {right.words}", f"add the rule {right.rule}", exit_status=4)
    for right in _missing(client, optional_rights(), deadline):
        checks.warn("rights", f"may not {right.words}, so GPUs that are handed out in that way are not known", f"add the rule {right.rule}")
    if gangs := _missing(client, gang_rights(), deadline):
        more = f" and {len(gangs) - 1} more kinds of groups and jobs" if len(gangs) > 1 else ""
        rules = ", ".join(right.rule for right in gangs)
        words = f"may not {gangs[0].words}{more}, so a gang of theirs counts as needing all of its members"
        checks.warn("rights", words, f"where pods carry their marks, add {rules}")
    if all(right.verb == "watch" for right in missing):
        checks.ok("rights", "may read everything that a cycle reads")
    missing = _missing(client, lease_rights(namespace=namespace, lease=lease), deadline)
    for right in missing:
        checks.fail("rights", f"leader election may not {right.words}", f"add the rule {right.rule}", exit_status=4)
    if lease and not missing:
        checks.ok("rights", "may do what leader election needs")
    for mode in (Mode.ANNOTATE, Mode.EVICT):
        rights = writing_rights(
            spec,
            mode,
            namespace=namespace,
            lease="",
            memory=session.settings.memory_name,
            announcement=election.lease_name,
        )
        missing = _missing(client, rights, deadline)
        if not missing:
            checks.ok("rights", f"may do what mode {mode.value} needs")
        elif mode is orders.mode:
            for right in missing:
                checks.fail("rights", f"mode {mode.value} may not {right.words}", f"add the rule {right.rule}", exit_status=4)
        else:
            lacking = ", ".join(right.words for right in missing)
            checks.ok("rights", f"mode {mode.value} is not in force, and would lack: {lacking}")


def _check_hints(session: Session, client: KubeClient, objects: ClusterObjects, checks: _Checks, deadline: Deadline) -> None:
    if not session.orders.hints:
        return
    settings = session.settings
    why = hints_unready(client, namespace=settings.namespace, name=settings.leader_election.lease_name, deadline=deadline)
    if why:
        checks.warn("hints", f"steering.hints is on, and plans do without: {why}")
        return
    asking = sum((each.metadata.labels or {}).get(NAMESPACE_LABEL) == ENABLED for each in objects.namespaces)
    words = f"the admission policy is installed, and {asking} of {len(objects.namespaces)} namespaces ask for hints"
    if asking:
        checks.ok("hints", words)
    else:
        checks.warn("hints", words, f"label those that should: kubectl label namespace NAME {NAMESPACE_LABEL}={ENABLED}")


def _missing(client: KubeClient, rights: Sequence[Right], deadline: Deadline) -> list[Right]:
    return [
        right
        for right in rights
        if not can_i(
            client,
            verb=right.verb,
            group=right.group,
            resource=right.resource,
            subresource=right.subresource,
            namespace=right.namespace,
            name=right.name,
            deadline=deadline,
        )
    ]


def _check_prometheus(prometheus: Prometheus, checks: _Checks, clock: Clock, deadline: Deadline) -> bool:
    """True when it answers: what is wrong with the address or the credentials is said once, not once a query."""
    try:
        jobs = prometheus.instant("count by (job) (up)", at=clock.now(), deadline=deadline, name="scraped jobs")
    except MetricsError as error:
        checks.failed("prometheus", error)
        return False
    names = sorted(filter(None, (labels.get("job", "") for labels in jobs.labels)))
    more = f" and {len(names) - SHOWN_JOBS} more" if len(names) > SHOWN_JOBS else ""
    words = f"scrapes the jobs {', '.join(names[:SHOWN_JOBS])}{more}" if names else "has no series `up`, so its scrape jobs are not known"
    checks.ok("prometheus", f"{prometheus.url} answers and {words}")
    return True


def _check_queries(
    session: Session, connections: Connections, objects: ClusterObjects, checks: _Checks, clock: Clock, deadline: Deadline
) -> None:
    results = probe(
        connections.prometheus,
        spec=session.orders.policy.spec,
        directory=node_directory(objects),
        at=clock.now(),
        deadline=deadline,
    )
    _check_recorded(results, checks)
    useless = set(map(id, unserved(results)))
    aged: set[str] = set()
    for result in results:
        if result.useful and result.query.subject == "age" and not result.problem:
            if result.query.signal not in aged:  # two queries together tell the ages of a signal
                _check_useful(result, checks)
            aged.add(result.query.signal)
        elif result.useful:
            _check_useful(result, checks)
        elif id(result) in useless:
            _check_useless(result, checks)


def _check_recorded(results: Sequence[ProbeResult], checks: _Checks) -> None:
    """Rules that are said to be there and have recorded nothing that this policy can use: said once a signal and subject."""
    looked_up = [result for result in results if result.query.recorded and result.query.subject != "age"]
    served = {(result.query.signal, result.query.subject) for result in looked_up if result.useful}
    for subject, result in {(result.query.signal, result.query.subject): result for result in reversed(looked_up)}.items():
        if subject not in served:
            words = f"{_source(result)}{result.problem}, so the queries themselves are asked"
            checks.warn(_subject(result), words, f"load the rules that `rebalancer policy rules` prints; asked was {result.query.text}")


def _subject(result: ProbeResult) -> str:
    return f"{result.query.signal} of {result.query.subject}" if result.query.subject != "age" else f"{result.query.signal} age"


def _check_useful(result: ProbeResult, checks: _Checks) -> None:
    age = f", the oldest sample {format_duration(result.oldest_sample_s)} old" if math.isfinite(result.oldest_sample_s) else ""
    by = f", node names from {result.resolved_by}" if result.resolved_by else ""
    things = "pods" if result.query.subject == "pods" else "nodes"
    words = f"{_source(result)}{result.series} series for {result.matched} of {result.wanted} {things}{by}{age}"
    if result.problem:
        checks.warn(_subject(result), f"{words}; {result.problem}", _seen(result))
    else:
        checks.ok(_subject(result), words)
    for warning in result.warnings:
        checks.warn(_subject(result), f"Prometheus warns: {warning}")


def _check_useless(result: ProbeResult, checks: _Checks) -> None:
    """A source that is not there is no news when another one serves; when none does, each says what it was asked."""
    remedy = f"asked was {result.query.text}"
    if result.query.subject == "age":
        checks.warn(_subject(result), f"{_source(result)}{result.problem}, so staleness cannot be seen behind the mean", remedy)
    else:
        checks.fail(_subject(result), f"{_source(result)}{result.problem}", remedy + _seen(result, "; "), exit_status=5)


def _source(result: ProbeResult) -> str:
    """``node_exporter: `` of ``cpu of nodes (node_exporter)``; nothing for a query of the operator's own."""
    _, opening, rest = result.query.name.partition(" (")
    return f"{rest.rstrip(')')}: " if opening else ""


def _seen(result: ProbeResult, before: str = "") -> str:
    return f"{before}labels seen: {'; '.join(result.labels_seen)}" if result.labels_seen else ""


def _check_one_look(session: Session, connections: Connections, checks: _Checks, clock: Clock, deadline: Deadline) -> None:
    """What a cycle would do up to detection: the last word on whether the queries together are enough."""
    spec = session.orders.policy.spec
    try:
        state = observe(
            client=connections.client,
            prometheus=connections.prometheus,
            spec=spec,
            at=clock.now(),
            deadline=deadline,
            stopwatch=Stopwatch(),
        )
        require_coverage(state, spec)
        findings = detect(state, spec)
    except MetricsMissing as error:
        remedy = "mend what the lines above lack, or lower metrics.minCoverage"
        checks.fail("metrics", error.message, remedy, exit_status=error.exit_status)
        return
    except MetricsError as error:
        checks.failed("metrics", error)
        return
    except RebalancerError as error:
        checks.failed("cluster", error)
        return
    sources = tuple(f"signal {name}: " for name in spec.judged_signals)
    chosen = session.settings.prometheus.recording_rules
    for note in state.coverage.notes:
        if note.startswith(NOTE):  # said below, with remedies
            continue
        if chosen or not note.startswith(sources):  # without a choice the queries have said that already
            checks.ok("metrics", note)
    for name in spec.judged_signals:
        nodes, pods = state.coverage.nodes[name], state.coverage.pods[name]
        checks.ok("metrics", f"signal {name} is known for {nodes.known} of {nodes.of} nodes and {pods.known} of {pods.of} pods")
    _check_gpus(state, checks)
    counts = ", ".join(
        f"{findings.nodes_of_class(c)} {c.word}" for c in (NodeClass.HOT, NodeClass.NORMAL, NodeClass.COLD, NodeClass.UNKNOWN)
    )
    checks.ok("nodes", f"by the policy: {counts}")


def _check_gpus(state: ClusterState, checks: _Checks) -> None:
    """Which devices were found, how sure it is who is on them, and each sort of fault; nothing in a cluster without GPUs."""
    said = summary(state.gpus)
    if said:
        checks.ok("gpu", said)
    silent = unmeasured_words(state.gpus, state.nodes.names)
    if silent:
        checks.warn("gpu", silent, UNMEASURED_REMEDY)
    for reason, faults in by_reason(state.gpus.faults).items():
        checks.warn("gpu", fault_words(faults), REMEDIES[reason])
