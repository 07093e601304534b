"""The server that kube-scheduler asks, with room for what it sends.

Without ``nodeCacheCapable`` it sends whole Node objects: 5,000 of them, with 12 KB each, are 60 MB. A body may have half as much again, and
all bodies that are held at one time 128 MiB together. The process needs twice what it holds: a body as it came in pieces and whole, then
whole and as part of the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.runtime.serving.certificate import Certificate
from rebalancer.runtime.serving.connections import Lost
from rebalancer.runtime.serving.exchange import Limits
from rebalancer.runtime.serving.routing import Routes
from rebalancer.runtime.serving.server import HttpServer
from rebalancer.settings import Listen

MOST_BODY_BYTES = 96 << 20
MOST_IN_ALL_BYTES = 128 << 20
EXTENDER_LIMITS = Limits(body_bytes=MOST_BODY_BYTES, all_bodies_bytes=MOST_IN_ALL_BYTES)


class ExtenderServer(HttpServer):
    """``routes``: (method, path) -> handler; a path that ends with ``/`` matches by prefix. Raises SettingsError as `HttpServer` does."""

    def __init__(
        self,
        listen: Listen,
        *,
        routes: Routes,
        certificate: Certificate | None = None,
        limits: Limits = EXTENDER_LIMITS,
        lost: Callable[[Lost], None] = lambda why: None,
    ) -> None:
        super().__init__(
            listen,
            routes=routes,
            certificate=certificate,
            limits=limits,
            name="extender",
            variable="REBALANCER_EXTENDER__LISTEN",
            lost=lost,
        )
