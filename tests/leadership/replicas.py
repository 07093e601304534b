"""Replicas of the real service in this process, each with connections of its own, on one embedded cluster."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from rebalancer.cli.run import _parts
from rebalancer.runtime.health import Health
from rebalancer.runtime.leadership import Leadership
from rebalancer.runtime.metrics import Metrics
from rebalancer.runtime.service import Parts, Service
from rebalancer.runtime.serving.messages import Answer
from rebalancer.runtime.serving.messages import Request as Asked
from rebalancer.runtime.session import candidacy, connected, open_session
from rebalancer.simulate.http_server import Request
from tests.support.embedded import REVIEWS, Stage, bare_environment, eventually

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/rebalancer"
ELECTED = {
    "REBALANCER_LEADER_ELECTION__ENABLED": "true",
    "REBALANCER_LEADER_ELECTION__LEASE_DURATION": "6s",
    "REBALANCER_LEADER_ELECTION__RENEW_DEADLINE": "4s",
    "REBALANCER_LEADER_ELECTION__RETRY_PERIOD": "0.4s",
    "REBALANCER_MODE": "evict",
}


@dataclass
class Replica:
    """A service in a thread. ``stop`` is what SIGTERM sets."""

    parts: Parts
    leadership: Leadership
    service: Service
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    finished: bool | None = None

    def start(self) -> Replica:
        self.thread = threading.Thread(target=self._run, name=f"service-{self.leadership.identity}")
        self.thread.start()
        return self

    def _run(self) -> None:
        self.finished = self.service.run()

    def terminate(self) -> None:
        self.stop.set()
        if self.thread is not None:
            self.thread.join(20)
            assert not self.thread.is_alive()

    @property
    def health(self) -> Health:
        return self.parts.health

    @property
    def metrics(self) -> Metrics:
        return self.parts.metrics

    @property
    def leads(self) -> bool:
        return self.leadership.valid_for(0.0)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"rebalancer_{name}", labels)

    def cycles(self) -> int:
        """Those that ended, however."""
        found = [s.value for m in self.metrics.registry.collect() for s in m.samples if s.name == "rebalancer_cycles_total"]
        return round(sum(found))

    def did_cycles(self, count: int = 1) -> None:
        eventually(lambda: self.cycles() >= count, seconds=60)

    def watcher(self) -> Answer:
        """What it tells the clients of load-watcher."""
        return self.parts.loads.routes["GET", "/watcher"](Asked("GET", "/watcher"))

    def ready(self) -> bool:
        return all(check.passed for check in self.health.ready_checks())

    def alive(self) -> bool:
        return all(check.passed for check in self.health.live_checks())


@contextlib.contextmanager
def replica(stage: Stage, *, settings: Mapping[str, str] | None = None, policy: Path | None = None) -> Iterator[Replica]:
    """One that has not been started; terminated and closed at the end."""
    environ = bare_environment({**stage.env, **ELECTED, **(settings or {})})
    flags = {"kubeconfig": stage.env["KUBECONFIG"], "policy_file": policy}
    session = open_session(settings_file=None, flags=flags, environ=environ)
    with connected(session) as connections, ExitStack() as watches, candidacy(session) as leadership:
        assert leadership is not None
        stop = threading.Event()
        parts = replace(_parts(session, connections, watches), leadership=leadership)
        made = Replica(parts=parts, leadership=leadership, service=Service(parts, stop=stop), stop=stop)
        try:
            yield made
        finally:
            stage.cluster.faults.clear()
            made.terminate()


def writes(stage: Stage) -> list[Request]:
    """What changed the cluster, but for the Lease."""
    return [r for r in stage.writes if r.path != LEASE and not r.path.endswith(("/leases", REVIEWS))]


def holder(stage: Stage) -> str:
    stored = stage.cluster.world.find("leases", "rebalancer", "default")
    return "" if stored is None else stored["spec"]["holderIdentity"]
