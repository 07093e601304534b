"""`rebalancer extender`: what kube-scheduler asks before it places a pod."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from rebalancer import __version__
from rebalancer.cli.opening import opened
from rebalancer.cli.options import Context, Kubeconfig, PolicyFile, SettingsFile

if TYPE_CHECKING:
    from rebalancer.kube.client import KubeClient
    from rebalancer.runtime.session import Session

ListenOn = Annotated[
    str | None, typer.Option("--listen", help="Address of /filter, /prioritize, /healthz, /readyz and /metrics.", metavar="HOST:PORT")
]
LogFormat = Annotated[str | None, typer.Option("--log-format", help="json or console.")]
SWITCH_S = 0.0005
LogLevel = Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")]


def register(app: typer.Typer) -> None:
    app.command("extender")(extender)


def extender(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    settings: SettingsFile = None,
    policy: PolicyFile = None,
    listen: ListenOn = None,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
) -> None:
    """Serve kube-scheduler's extender: filter and score nodes by real load, keep planned nodes for replacements. SIGTERM ends it."""
    import structlog

    from rebalancer.runtime.clock import SystemClock
    from rebalancer.runtime.extending import extender_client, extending
    from rebalancer.runtime.logs import setup_logging

    session = opened(
        kubeconfig=kubeconfig,
        context=context,
        settings=settings,
        policy=policy,
        extender_listen=listen,
        log_format=log_format,
        log_level=log_level,
    )
    setup_logging(session.settings.log.format, session.settings.log.level)
    # So soon does a thread that feeds give way to one that answers; the usual five milliseconds are as long as an answer takes.
    sys.setswitchinterval(SWITCH_S)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    log = structlog.get_logger(__name__)
    with closing(extender_client(session)) as client:
        _say_how_it_starts(session, client)
        with extending(session, client, clock=SystemClock()) as running:
            # What is here now stays to the end: no collection of garbage shall go through it while somebody waits for an answer.
            gc.collect()
            gc.freeze()
            scheme = "http" if session.settings.extender.cert_file is None else "https"
            log.info("serving", listen=str(running.server.address), scheme=scheme)
            stop.wait()
            log.info("stopping")
    log.info("stopped")


def _say_how_it_starts(session: Session, client: KubeClient) -> None:
    import structlog

    settings, policy = session.settings, session.policies.current()
    chosen = settings.extender
    dynamic = {
        "crane_policy_file": str(settings.crane_policy_file or "built-in"),
        "crane_time_zone": chosen.crane_time_zone or policy.spec.steering.crane_time_zone,
        "hot_value": chosen.hot_value,
        "missing": chosen.missing,
    }
    structlog.get_logger(__name__).info(
        "start",
        version=__version__,
        judge=chosen.judge,
        policy=policy.metadata.name,
        policy_file=str(settings.policy_file or "built-in"),
        pools=[pool.name for pool in policy.spec.pools],
        **(dynamic if chosen.judge == "dynamic" else {}),
        reservation_s=chosen.reservation,
        state=f"{settings.namespace}/{settings.memory_name}",
        refuse_all=chosen.refuse_all,
        refresh_s=chosen.refresh,
        oldest_view_s=chosen.oldest_view,
        gpushare=chosen.gpushare.enabled,
        api_server=client.server,
    )
