"""The embedded cluster as one context manager: a world, its API server and its Prometheus endpoint, and a kubeconfig for them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType

import yaml

from rebalancer.simulate.api_server import ApiServer
from rebalancer.simulate.faults import Faults
from rebalancer.simulate.gpu.series import DeviceSeries
from rebalancer.simulate.history import History
from rebalancer.simulate.http_server import HttpServer
from rebalancer.simulate.load import LoadModel
from rebalancer.simulate.prometheus import PrometheusServer
from rebalancer.simulate.series import ClusterSeries, SampleFaults
from rebalancer.simulate.series_labels import Directory, SeriesOptions
from rebalancer.simulate.ticking import Ticker
from rebalancer.simulate.world import World

CONTEXT = "embedded"


class EmbeddedCluster:
    """``with EmbeddedCluster(world) as cluster:`` serves until the block ends; every thread is joined and every socket closed then.

    ``api`` and ``prometheus`` are the two servers, each with ``requests`` (everything that came in), ``faults`` and ``url``.
    """

    def __init__(
        self,
        world: World,
        *,
        port: int = 0,
        prometheus_port: int = 0,
        series: SeriesOptions | None = None,
        scrape_interval_s: float = 15.0,
        history_s: float = 3600.0,
        tls: ssl.SSLContext | None = None,
        http: Callable[..., HttpServer] = HttpServer,
        speed: float = 0.0,
    ) -> None:
        """``history_s``: how far back samples reach at the start. ``tls``: serve both over https with this context.

        ``http`` makes the server under each endpoint from what `HttpServer` takes, for whoever measures or changes what travels.
        ``speed``: virtual seconds that pass in each real one, by themselves; 0: time passes in `advance` alone. A world that was made with
        the real time as its ``now`` and runs at speed 1 can be used by commands that know nothing of virtual time.
        """
        self.world = world
        load = world.load or LoadModel(world)
        history = History(world, load, interval_s=scrape_interval_s, retention_s=2 * history_s, back_s=history_s)
        gpus = DeviceSeries(world, world.gpus) if world.gpus is not None else None
        self.series = ClusterSeries(history, Directory(world, load), series or SeriesOptions(), gpus=gpus)
        server = partial(http, tls=tls)
        self.api = ApiServer(world, port=port, http=server)
        self.prometheus = PrometheusServer(world, self.series, port=prometheus_port, http=server)
        self._clock = Ticker(world, speed) if speed > 0 else None

    def __enter__(self) -> EmbeddedCluster:
        self.api.start()
        self.prometheus.start()
        if self._clock is not None:
            self._clock.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._clock is not None:
            self._clock.stop()
        self.api.stop()
        self.prometheus.stop()

    @property
    def api_url(self) -> str:
        return self.api.url

    @property
    def prometheus_url(self) -> str:
        return self.prometheus.url

    @property
    def sample_faults(self) -> SampleFaults:
        """What is wrong with the samples: silent, NaN, missing nodes and pods, gaps."""
        return self.series.faults

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
