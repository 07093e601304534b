"""What a command works with: settings, policy, mode, and the connections that they name. Opened once, closed in one place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.act.actuator import Actuator
from rebalancer.act.annotating import AnnotateActuator
from rebalancer.act.annotating_nodes import AnnotatingNodes
from rebalancer.act.annotation_owners import AnnotationOwners
from rebalancer.act.evicting import EvictActuator
from rebalancer.act.recording import RecordingActuator
from rebalancer.act.tainting import TaintResult
from rebalancer.collect.bindings import BindingEvents
from rebalancer.collect.load_peaks import LoadPeaks
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.errors import PolicyError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.events import EventResult, EventWriter
from rebalancer.kube.lease import LeaseClient
from rebalancer.kube.limiter import TokenBucket
from rebalancer.kube.watch import WatchReport
from rebalancer.policy.model import Mode
from rebalancer.policy.reload import BuiltInPolicy, PolicyFile, PolicySource
from rebalancer.policy.tenants_loader import TenantsFile
from rebalancer.policy.timing import judge_timing
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.crane_source import CranePolicySource
from rebalancer.runtime.election import Election, Timing
from rebalancer.runtime.leadership import Leadership, new_identity
from rebalancer.runtime.node_annotations import NodeAnnotations
from rebalancer.runtime.store import ConfigMapStore, MemoryStore, ReadOnlyStore
from rebalancer.settings import Settings, effective_mode, load_settings


@dataclass(frozen=True, slots=True)
class Session:
    settings: Settings
    policies: PolicySource
    tenants: TenantsFile = field(default_factory=lambda: TenantsFile(None))

    @property
    def orders(self) -> Orders:
        """As the policy file and the settings say now."""
        policy = self.policies.current()
        mode, source = effective_mode(self.settings, policy)
        return Orders(policy=policy, mode=mode, mode_source=source, hints=policy.spec.steering.hints, tenants=self.tenants.current().spec)

    def warnings(self) -> tuple[str, ...]:
        """Sentences about settings and policy that are allowed but may surprise."""
        return (*self.settings.warnings(), *(str(fault) for fault in judge_timing(self.policies.current().spec).warnings))


@dataclass(frozen=True, slots=True)
class Connections:
    client: KubeClient
    prometheus: Prometheus

    def close(self) -> None:
        self.client.close()
        self.prometheus.close()


def open_session(*, settings_file: Path | None, flags: Mapping[str, object], environ: Mapping[str, str] | None = None) -> Session:
    """Read settings and policy. Raises SettingsError and PolicyError; nothing is connected yet."""
    settings = load_settings(settings_file=settings_file, flags=flags, environ=os.environ if environ is None else environ)
    policies: PolicySource = BuiltInPolicy() if settings.policy_file is None else PolicyFile(settings.policy_file)
    session = Session(settings, policies, TenantsFile(settings.tenants_file))
    faults = judge_timing(policies.current().spec).errors
    if faults:
        raise PolicyError(f"policy {policies.current().metadata.name} can never act: {faults[0]}")
    return session


@contextmanager
def connected(session: Session) -> Iterator[Connections]:
    """Clients for the API server and Prometheus that the settings name. Raises SettingsError; nothing is sent yet."""
    session.settings.require_prometheus_url()
    with kubernetes_client(session) as client, connected_prometheus(session) as prometheus:
        yield Connections(client, prometheus)


@contextmanager
def connected_prometheus(session: Session) -> Iterator[Prometheus]:
    """Prometheus alone, for what needs no API server. Raises SettingsError; nothing is sent yet."""
    settings = session.settings
    prometheus = Prometheus(
        PrometheusAccess(
            url=settings.require_prometheus_url(),
            timeout_s=settings.prometheus.timeout,
            ca_file=settings.prometheus.ca_file,
            token_file=settings.prometheus.token_file,
            basic_auth_file=settings.prometheus.basic_auth_file,
            headers=settings.prometheus.header_values(),
            parameters=settings.prometheus.parameters,
            recording_rules=settings.prometheus.recording_rules,
            max_in_flight=settings.prometheus.max_in_flight,
            insecure_skip_verify=settings.prometheus.insecure_skip_verify,
        )
    )
    try:
        yield prometheus
    finally:
        prometheus.close()


@contextmanager
def kubernetes_client(session: Session) -> Iterator[KubeClient]:
    """A client for the API server alone, for what needs no Prometheus."""
    settings = session.settings
    client = KubeClient.connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        page_size=settings.kubernetes.page_size,
        timeout_s=settings.kubernetes.timeout,
        bucket=TokenBucket(settings.kubernetes.qps, settings.kubernetes.burst),
    )
    try:
        yield client
    finally:
        client.close()


@contextmanager
def node_annotator(session: Session) -> Iterator[AnnotatingNodes]:
    """Writes node load annotations, by a connection and a limit of rate of its own: nothing else waits behind thousands of patches."""
    settings = session.settings
    client = KubeClient.connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        page_size=settings.kubernetes.page_size,
        timeout_s=settings.kubernetes.timeout,
    )
    try:
        yield AnnotatingNodes(client, per_second=settings.kubernetes.annotation_qps)
    finally:
        client.close()


@contextmanager
def node_annotations(session: Session, connections: Connections, *, report: WatchReport, watch: bool) -> Iterator[NodeAnnotations]:
    """What a controller writes node load annotations with; nothing is sent before the policy asks for them.

    ``watch``: bindings are read by watch, not listed in each cycle. Raises SettingsError, and PolicyError for crane-scheduler's policy.
    """
    crane = CranePolicySource(session.settings.crane_policy_file)
    with node_annotator(session) as annotating, BindingEvents(connections.client, watch=watch, report=report) as bindings:
        yield NodeAnnotations(
            annotating=annotating,
            owners=AnnotationOwners(connections.client),
            peaks=LoadPeaks(connections.prometheus),
            bindings=bindings,
            crane=crane,
        )


@contextmanager
def candidacy(session: Session) -> Iterator[Leadership | None]:
    """The campaign for the lease, not started yet; None when the settings want no leader election.

    It has a connection of its own and no limit of rate: a renewal must never wait behind the requests of a cycle.
    """
    settings, election = session.settings, session.settings.leader_election
    if not election.enabled:
        yield None
        return
    timing = Timing(lease_s=election.lease_duration, renew_s=election.renew_deadline, retry_s=election.retry_period)
    client = KubeClient.connect(kubeconfig=settings.kubeconfig, context=settings.context, timeout_s=timing.request_s)
    try:
        lease = LeaseClient(client, namespace=settings.namespace, name=election.lease_name, limit_s=timing.request_s)
        yield Leadership(lease, Election(new_identity(), timing))
    finally:
        client.close()


@contextmanager
def hint_client(session: Session) -> Iterator[KubeClient]:
    """A connection of its own, with no limit of rate, for what pods wait for: it must never stand behind the requests of a cycle."""
    settings = session.settings
    client = KubeClient.connect(kubeconfig=settings.kubeconfig, context=settings.context, page_size=settings.kubernetes.page_size)
    try:
        yield client
    finally:
        client.close()


def actuators(
    client: KubeClient,
    *,
    events: bool,
    instance: str,
    told: Callable[[EventResult, str], None] = lambda result, error: None,
    tainted: Callable[[TaintResult], None] = lambda result: None,
) -> Mapping[Mode, Actuator]:
    """One actuator a mode, on one client and its rate limit. ``told``: see `EventWriter`; ``tainted``: see `EvictActuator`."""
    writer = EventWriter(client, instance=instance, told=told) if events else None
    return {
        Mode.DRY_RUN: RecordingActuator(),
        Mode.ANNOTATE: AnnotateActuator(client),
        Mode.EVICT: EvictActuator(client, events=writer, tainted=tainted),
    }


def memory_store(client: KubeClient, session: Session, *, mode: Mode) -> MemoryStore:
    """The cluster's memory: kept in evict mode, only read in the others."""
    store = ConfigMapStore(client, namespace=session.settings.namespace, name=session.settings.memory_name)
    return store if mode is Mode.EVICT else ReadOnlyStore(store)
