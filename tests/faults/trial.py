"""One fault-to-be: the hamlet, served; the real command and the real service against it; and what really happened to its pods.

Time is the world's and passes only in `Trial.pass_time`. Waits between tries are short here, else a row would take the minute that patience
takes in a real cluster; nothing else of the controller is replaced.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import structlog

from rebalancer.cli.run import _parts
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.watched import WatchedCluster
from rebalancer.kube.client import KubeClient
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import WatchTiming
from rebalancer.runtime.leadership import Leadership
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.records import load_memory
from rebalancer.runtime.service import Parts, Service
from rebalancer.runtime.session import candidacy, connected, open_session
from rebalancer.runtime.store import CONFIG_MAP, KEY
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import START, Change
from tests.faults.hamlet import hamlet
from tests.faults.witness import Witnesses
from tests.support.embedded import Ran, bare_environment, eventually, run_command

NAMESPACE = "default"
HIGH = 0.70
ONCE = ("run", "--once", "--mode", "evict", "-o", "json", "--log-format", "json")
LEASE = "rebalancer"
QUICK = Backoff(first_s=0.01, factor=2.0, ceiling_s=0.05, attempts=2)
WATCHING = WatchTiming(backoff=Backoff(first_s=0.05, ceiling_s=0.2))
ELECTED = {
    "leader_election__enabled": "true",
    "leader_election__lease_duration": "8s",
    "leader_election__renew_deadline": "2.4s",
    "leader_election__retry_period": "0.4s",
}
"""A leader that is not heard of stands down soon; an eviction may take long all the same."""
_connect = KubeClient.connect


@dataclass(frozen=True)
class Patience:
    """How long one request may take, in real seconds: no shorter than a busy machine needs, where nothing is waited for in vain."""

    api_s: float = 10.0
    metrics_s: float = 10.0


@dataclass
class Trial:
    """``skew_s``: how far the controller's wall clock is off. ``broken_budgets``: PDBs that were below what they want, with the moment."""

    folder: Path
    cluster: EmbeddedCluster
    witnesses: Witnesses
    kubeconfig: Path
    patience: Patience = Patience()
    skew_s: float = 0.0
    unremembered: list[str] = field(default_factory=list)
    """Pods whose eviction was accepted before it was written down."""
    broken_budgets: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    reached: threading.Event = field(default_factory=threading.Event)
    killed: threading.Event = field(default_factory=threading.Event)
    """A process has come to where it is to be killed, and has been."""
    leadership: Leadership | None = None
    """Of the service that runs."""

    # ---- what happens ---------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """By the clock of the controller's machine."""
        return self.cluster.world.now + self.skew_s

    def pass_time(self, minutes: float = 2.0) -> None:
        self.cluster.advance(60 * minutes)

    def command(self, *arguments: str) -> Ran:
        with self._hurried():
            return run_command(*(arguments or ONCE), env=self.env)

    @contextmanager
    def service(self) -> Iterator[Served]:
        """A service whose cycles are run by hand; with leader election if the settings of the trial say so."""
        session = open_session(settings_file=None, flags={"kubeconfig": self.kubeconfig}, environ=bare_environment(self.env))
        with ExitStack() as stack:
            logs = stack.enter_context(structlog.testing.capture_logs())
            stack.enter_context(self._hurried())
            connections = stack.enter_context(connected(session))
            watches = stack.enter_context(ExitStack())
            leadership = stack.enter_context(candidacy(session))
            parts = replace(_parts(session, connections, watches), leadership=leadership)
            parts.health.policy_valid()
            service = ByHand(parts, stop=threading.Event())
            self.leadership = leadership
            if leadership is not None:
                stack.callback(leadership.close, release=True, within_s=5.0)
                service.campaign()
            yield Served(parts, service, logs)

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.kubeconfig),
            "REBALANCER_PROMETHEUS__URL": self.cluster.prometheus_url,
            "REBALANCER_MODE": "evict",
            "REBALANCER_NAMESPACE": NAMESPACE,
            "REBALANCER_KUBERNETES__QPS": "1000",
            "REBALANCER_KUBERNETES__BURST": "2000",
            "REBALANCER_KUBERNETES__WATCH": "false",
            "REBALANCER_CYCLE_TIMEOUT": "30s",
            **self.settings,
        }

    @contextmanager
    def _hurried(self) -> Iterator[None]:
        """The clock of the controller, and short waits."""
        patience = self.patience

        def connect(*, timeout_s: float = 30.0, **rest: Any) -> KubeClient:
            return _connect(timeout_s=min(timeout_s, patience.api_s), backoff=QUICK, **rest)

        def prometheus(access: PrometheusAccess) -> Prometheus:
            return Prometheus(replace(access, timeout_s=min(access.timeout_s, patience.metrics_s)), pause_s=0.01)

        with (
            mock.patch("rebalancer.runtime.clock.time", SimpleNamespace(time=self.now)),
            mock.patch.object(KubeClient, "connect", connect),
            mock.patch("rebalancer.runtime.session.Prometheus", prometheus),
            mock.patch("rebalancer.runtime.watching.WatchedCluster", partial(WatchedCluster, timing=WATCHING)),
            mock.patch("rebalancer.kube.client.QUIET_AFTER_THROTTLING_S", 0.05),
        ):
            yield

    def leading(self, leads: bool = True) -> None:
        """Wait until the service leads, or does not."""
        assert self.leadership is not None
        leadership = self.leadership
        eventually(lambda: (leadership.term is not None) is leads, seconds=30.0)

    # ---- what is true ---------------------------------------------------------------------------------------------------

    @property
    def evicted(self) -> list[str]:
        """The pods whose eviction the API server accepted, in order."""
        return [gone.name for gone in self.witnesses.api.evicted]

    @property
    def memory(self) -> Memory:
        """As it is in the cluster."""
        stored = self.cluster.world.find("configmaps", CONFIG_MAP, NAMESPACE)
        text = "" if stored is None else (stored.get("data") or {}).get(KEY, "")
        return load_memory(text.encode(), origin="the ConfigMap") if text else Memory()

    @property
    def hot(self) -> list[str]:
        return self.cluster.world.hot_nodes("cpu", HIGH)

    @property
    def tainted(self) -> list[str]:
        nodes = self.cluster.world.objects("nodes")
        return [n["metadata"]["name"] for n in nodes if any(t["key"].startswith("rebalancer.dev/") for t in n["spec"].get("taints") or ())]

    @property
    def deletes(self) -> int:
        return len(self.cluster.api.requests.of("DELETE"))

    def look(self, change: Change) -> None:
        """Called by the world at each change."""
        if change.plural != "poddisruptionbudgets":
            return
        status = change.value.get("status") or {}
        healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        if healthy < wanted:
            self.broken_budgets.append(f"{change.value['metadata']['name']}: {healthy} healthy of {wanted} wanted")

    def accepted(self, uid: str, name: str) -> None:
        """Called by the server when it has accepted an eviction."""
        if uid not in {past.pod_uid for past in self.memory.evictions}:
            self.unremembered.append(name)


class ByHand(Service):
    """A service whose schedule is the test."""

    def campaign(self) -> None:
        self._campaign()

    def _run_in(self, seconds: float) -> None:
        """Nobody waits for a schedule here."""


@dataclass
class Served:
    parts: Parts
    service: ByHand
    logs: list[Any]

    def cycle(self) -> None:
        self.service.tick()

    def counts(self) -> Mapping[str, float]:
        """Every sample of the metrics, by name and labels."""
        lines = self.parts.metrics.exposition().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}

    def lines(self) -> list[str]:
        """The log so far, each line as one text."""
        return [" ".join(f"{key}={value}" for key, value in line.items()) for line in list(self.logs)]

    @property
    def unready(self) -> list[str]:
        """What the readiness probe complains of."""
        return [str(check) for check in self.parts.health.ready_checks() if not check.passed]


@contextmanager
def trial(
    folder: Path, *, now: float = START, tempting: bool = False, patience: Patience | None = None, **settings: str
) -> Iterator[Trial]:
    witnesses = Witnesses()
    world = hamlet(now=now, tempting=tempting)
    with EmbeddedCluster(world, http=witnesses, history_s=7200.0) as cluster:
        kubeconfig = cluster.write_kubeconfig(folder / "kubeconfig")
        made = Trial(
            folder=folder,
            cluster=cluster,
            witnesses=witnesses,
            kubeconfig=kubeconfig,
            patience=patience or Patience(),
            settings={f"REBALANCER_{name.upper()}": value for name, value in settings.items()},
        )
        world.subscribe(made.look)
        witnesses.api.accepted = made.accepted
        yield made
