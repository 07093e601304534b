"""`rebalancer run`: the controller itself, for as long as it is let."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from rebalancer import __version__
from rebalancer.cli.errors import warn
from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, ModeChoice, PolicyFile, PrometheusUrl, SettingsFile, TenantsFile
from rebalancer.cli.output import print_document
from rebalancer.errors import PartlyDone
from rebalancer.report.registry import Format

if TYPE_CHECKING:
    from rebalancer.runtime.controller import CycleResult
    from rebalancer.runtime.hint_keeper import HintKeeper
    from rebalancer.runtime.metrics import Metrics
    from rebalancer.runtime.service import Parts
    from rebalancer.runtime.session import Connections, Session

Once = Annotated[bool, typer.Option("--once", help="One cycle, its plan on stdout, then end.")]
ListenOn = Annotated[str | None, typer.Option("--listen", help="Address of /healthz, /readyz and /metrics.", metavar="HOST:PORT")]
LogFormat = Annotated[str | None, typer.Option("--log-format", help="json or console.")]
LogLevel = Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")]


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    once: Once = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    prometheus_url: PrometheusUrl = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    tenants: TenantsFile = None,
    mode: ModeChoice = None,
    listen: ListenOn = None,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Format of the plan, with --once.")] = Format.TABLE,
) -> None:
    """Run a cycle at every interval: look, plan, and do what the mode allows. SIGTERM ends it within ten seconds."""
    from rebalancer.runtime.logs import setup_logging
    from rebalancer.runtime.session import connected

    session = opened(
        kubeconfig=kubeconfig,
        context=context,
        prometheus_url=prometheus_url,
        settings=settings,
        policy=policy,
        tenants=tenants,
        mode=mode,
        listen=listen,
        log_format=log_format,
        log_level=log_level,
    )
    setup_logging(session.settings.log.format, session.settings.log.level)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with connected(session) as connections, ExitStack() as stack:
        parts = _parts(session, connections, None if once else stack, closing=stack)
        _say_how_it_starts(session, connections)
        if once:
            _once(parts, stop, output)
        else:
            _serve(parts, stop)


def _parts(session: Session, connections: Connections, watches: ExitStack | None = None, *, closing: ExitStack | None = None) -> Parts:
    """``watches`` ends the watches that the settings allow; without it each cycle lists. ``closing``, else ``watches``, closes what load
    annotations need; without either there are none."""
    from rebalancer.policy.model import Mode
    from rebalancer.runtime.clock import SystemClock
    from rebalancer.runtime.controller import Controller
    from rebalancer.runtime.event_notes import EventNotes
    from rebalancer.runtime.health import Health
    from rebalancer.runtime.load_watching import LoadWatch
    from rebalancer.runtime.metrics import Metrics
    from rebalancer.runtime.service import Parts
    from rebalancer.runtime.session import actuators, memory_store, node_annotations
    from rebalancer.runtime.watching import WatchNotes, cluster_source

    orders, clock = session.orders, SystemClock()
    spec = orders.policy.spec
    metrics, health = Metrics(), Health(interval_s=spec.interval, patience_s=session.settings.cycle_timeout)
    source = cluster_source(connections.client, session.settings.kubernetes, metrics=metrics, health=health)
    told = EventNotes(metrics).told
    watch, stack = watches is not None and session.settings.kubernetes.watch, closing or watches
    writing = node_annotations(session, connections, report=WatchNotes(metrics), watch=watch)
    annotations = None if stack is None else stack.enter_context(writing)
    keeper = None if watches is None else _hint_keeper(session, metrics, watches)
    acts = actuators(connections.client, events=spec.events, instance=socket.gethostname(), told=told, tainted=metrics.soft_taint_patched)
    controller = Controller(
        client=connections.client,
        prometheus=connections.prometheus,
        actuators=acts,
        store=memory_store(connections.client, session, mode=Mode.EVICT),
        clock=clock,
        source=None if watches is None else watches.enter_context(source),
        annotations=annotations,
        hints=keeper,
    )
    return Parts(
        session=session,
        controller=controller,
        actuators=acts,
        metrics=metrics,
        health=health,
        loads=LoadWatch(clock),
        clock=clock,
        annotations=annotations,
        hints=keeper,
    )


def _hint_keeper(session: Session, metrics: Metrics, stack: ExitStack) -> HintKeeper:
    """Who gives placement hints, at rest until the policy wants them. ``stack`` closes its connection."""
    from rebalancer.runtime.hint_keeper import HintKeeper
    from rebalancer.runtime.session import hint_client
    from rebalancer.runtime.watching import WatchNotes

    settings = session.settings
    return HintKeeper(
        stack.enter_context(hint_client(session)),
        namespace=settings.namespace,
        lease=settings.leader_election.lease_name,
        notes=metrics,
        report=WatchNotes(metrics),
    )


def _say_how_it_starts(session: Session, connections: Connections) -> None:
    import structlog

    log = structlog.get_logger(__name__)
    for notice in connections.prometheus.notices:
        log.warning("prometheus", notice=notice)
    orders = session.orders
    budgets = orders.policy.spec.budgets
    log.info(
        "start",
        version=__version__,
        mode=orders.mode.value,
        mode_from=orders.mode_source,
        policy=orders.policy.metadata.name,
        policy_file=str(session.settings.policy_file or "built-in"),
        interval_s=orders.policy.spec.interval,
        pools=[pool.name for pool in orders.policy.spec.pools],
        signals=list(orders.policy.spec.judged_signals),
        evictions=f"at most {budgets.total} in {budgets.window:g}s, {budgets.per_node} from one node",
        api_server=connections.client.server,
        prometheus=connections.prometheus.url,
        leader_election=session.settings.leader_election.enabled,
    )


def _once(parts: Parts, stop: threading.Event, output: Format) -> None:
    import structlog

    from rebalancer.deadline import Deadline

    deadline = Deadline.after(parts.session.settings.cycle_timeout, stop=stop)
    result = parts.controller.cycle(parts.session.orders, deadline=deadline)
    for finding in result.verdict.breaker:
        warn(f"the breaker is open: {finding.words}")
    for note in result.notes:
        structlog.get_logger(__name__).info("note", text=note)
    print_document(result.verdict.decision.plan, output)
    _judge(result)


def _judge(result: CycleResult) -> None:
    from rebalancer.report.text import counted

    failed = [outcome for outcome in result.outcomes if not outcome.result.done]
    if failed:
        first = failed[0]
        raise PartlyDone(
            f"{len(failed)} of {counted(len(result.outcomes), 'move')} {'was' if len(failed) == 1 else 'were'} not carried out; "
            f"the first, {first.move.pod.namespace}/{first.move.pod.name}: {first.reason}",
            remedy="run it again once that is settled; each run decides anew",
        )


def _serve(parts: Parts, stop: threading.Event) -> None:
    import structlog

    from rebalancer.runtime.server import HealthServer
    from rebalancer.runtime.service import Service
    from rebalancer.runtime.session import candidacy

    settings = parts.session.settings
    tls = settings.tls
    certificate = None if tls.cert_file is None or tls.key_file is None else (tls.cert_file, tls.key_file)
    exposition, more = parts.metrics.exposition, parts.loads.routes
    with HealthServer(settings.listen, health=parts.health, exposition=exposition, more=more, certificate=certificate) as server:
        parts.health.watch("http", server.alive)
        structlog.get_logger(__name__).info("serving", listen=str(server.address), paths=["/healthz", "/readyz", "/metrics", "/watcher"])
        with candidacy(parts.session) as leadership:
            finished = Service(replace(parts, leadership=leadership), stop=stop).run()
    if not finished:
        # A request hangs in a thread that nothing can interrupt; waiting for it would break the promise to end in time.
        sys.stderr.flush()
        os._exit(0)
