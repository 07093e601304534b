"""The town behind an API server, and a real Prometheus: one look and one plan, by the controller's own code and by the command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.policy.model import Mode, RebalancePolicy, Spec
from rebalancer.runtime.considering import Orders, Verdict, consider
from rebalancer.runtime.memory import Memory
from rebalancer.runtime.observe import observe
from rebalancer.runtime.stopwatch import Stopwatch
from rebalancer.simulate.embedded import EmbeddedCluster
from tests.integration.end_to_end.town import town
from tests.support.embedded import READS, REVIEWS, Ran, run_command


@dataclass(frozen=True)
class Town:
    """The API server of the town. Its own imitation of Prometheus is never asked: series come from the real one."""

    cluster: EmbeddedCluster
    client: KubeClient
    kubeconfig: Path
    now: float

    def look(self, prometheus: str, spec: Spec | None = None, *, at: float | None = None, memory: Memory | None = None) -> Verdict:
        """Observe and consider at ``at``, as a cycle in evict mode does; nothing is written."""
        policy = RebalancePolicy(spec=spec or Spec())
        with_one = Prometheus(PrometheusAccess(url=prometheus), pause_s=0.01)
        try:
            state = observe(
                client=self.client,
                prometheus=with_one,
                spec=policy.spec,
                at=self.now if at is None else at,
                deadline=Deadline.after(60),
                stopwatch=Stopwatch(),
            )
        finally:
            with_one.close()
        return consider(state, memory or Memory(), Orders(policy=policy, mode=Mode.EVICT, mode_source="a test"))

    def command(self, prometheus: str, *arguments: str | Path, **env: str) -> Ran:
        """A command line against this town and that Prometheus, in this process, at the real now."""
        found = {"KUBECONFIG": str(self.kubeconfig), "REBALANCER_PROMETHEUS__URL": prometheus}
        self.cluster.api.tell_time_by(time.time)
        try:
            return run_command(*arguments, env={**found, **env})
        finally:
            self.cluster.api.tell_time_by(None)

    @property
    def written(self) -> list[str]:
        """Paths of whatever would have changed the cluster; asking for one's rights is a POST and changes nothing."""
        asked = self.cluster.api.requests.all()
        return [r.path for r in asked if r.method not in READS and not r.path.endswith(REVIEWS)]

    @property
    def evictions(self) -> list[str]:
        """Paths of the evictions that were asked for."""
        return [request.path for request in self.cluster.api.requests.of("POST", "/eviction")]


StartTown = Callable[[], Town]


@pytest.fixture(scope="package")
def now() -> float:
    """The moment that all series of these tests are laid around: the real now, since commands ask for it."""
    return float(int(time.time()))


@pytest.fixture(scope="package")
def start_town(tmp_path_factory: pytest.TempPathFactory, now: float) -> Iterator[StartTown]:
    """A town of one's own, for tests that change it."""
    with ExitStack() as stack:

        def start() -> Town:
            cluster = stack.enter_context(EmbeddedCluster(town(now)))
            kubeconfig = cluster.write_kubeconfig(tmp_path_factory.mktemp("town") / "kubeconfig")
            client = KubeClient.connect(kubeconfig=kubeconfig, context=None)
            stack.callback(client.close)
            return Town(cluster=cluster, client=client, kubeconfig=kubeconfig, now=now)

        yield start


@pytest.fixture(scope="package")
def shared_town(start_town: StartTown) -> Iterator[Town]:
    """The town for tests that only look at it; whatever they do, nothing was written there."""
    shared = start_town()
    yield shared
    assert shared.written == []
    assert shared.cluster.prometheus.requests.all() == []
