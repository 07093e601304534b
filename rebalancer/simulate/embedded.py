"""The embedded cluster as one context manager: a world, its API server and its Prometheus endpoint, and a kubeconfig for them."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import yaml

from rebalancer.simulate.api_server import ApiServer
from rebalancer.simulate.faults import Faults
from rebalancer.simulate.world import World

CONTEXT = "embedded"


class EmbeddedCluster:
    """``with EmbeddedCluster(world) as cluster:`` serves until the block ends; every thread is joined and every socket closed then.

    ``api`` and ``prometheus`` are the two servers, each with ``requests`` (everything that came in), ``faults`` and ``url``.
    """

    def __init__(self, world: World, *, port: int = 0) -> None:
        self.world = world
        self.api = ApiServer(world, port=port)

    def __enter__(self) -> EmbeddedCluster:
        self.api.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.api.stop()

    @property
    def api_url(self) -> str:
        return self.api.url

    @property
    def faults(self) -> Faults:
        """The faults of the API server; those of the Prometheus endpoint are ``prometheus.faults``."""
        return self.api.faults

    def advance(self, seconds: float) -> None:
        """Let virtual time pass: owners, kubelets, the scheduler and the disruption controller act."""
        self.world.advance(seconds)

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig whose only context is this cluster; returns the path."""
        user: dict[str, str] = {"token": self.api.rights.token} if self.api.rights.token else {}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": {"server": self.api_url}}],
            "users": [{"name": CONTEXT, "user": user}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
            "current-context": CONTEXT,
        }
        path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        path.chmod(0o600)
        return path
