"""The service's one HTTP port: health for kubelet, metrics for Prometheus, and what else is told of the cluster.

It answers on threads of its own, so that no cycle, however stuck, can keep a probe waiting, and a bounded number of them, so that no client
can take the process down. Plain http by default; with a certificate of the operator's own on request.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rebalancer.runtime.health import Health
from rebalancer.runtime.serving.certificate import Certificate
from rebalancer.runtime.serving.exchange import Limits
from rebalancer.runtime.serving.pages import metrics, probe
from rebalancer.runtime.serving.routing import Routes
from rebalancer.runtime.serving.server import HttpServer
from rebalancer.settings import Listen

SOCKET_TIMEOUT_S = 5.0
MOST_THREADS = 16


class HealthServer(HttpServer):
    """GET and HEAD, without bodies.

    ``exposition`` gives the metrics in the Prometheus text format; ``more``: routes beside the usual ones. Raises SettingsError when the
    address cannot be listened on or the certificate cannot be used.
    """

    def __init__(
        self,
        listen: Listen,
        *,
        health: Health,
        exposition: Callable[[], bytes],
        more: Routes | None = None,
        certificate: tuple[Path, Path] | None = None,
        socket_timeout_s: float = SOCKET_TIMEOUT_S,
    ) -> None:
        super().__init__(
            listen,
            routes={
                ("GET", "/healthz"): probe(health.live_checks),
                ("GET", "/readyz"): probe(health.ready_checks),
                ("GET", "/metrics"): metrics(exposition),
                **(more or {}),
            },
            certificate=None if certificate is None else Certificate(*certificate),
            limits=Limits(
                connections=MOST_THREADS, handshake_s=socket_timeout_s, request_s=socket_timeout_s, answer_s=max(SOCKET_TIMEOUT_S, 30.0)
            ),
        )
