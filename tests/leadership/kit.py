"""An embedded cluster with a Lease, and candidates for it with lives of seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.kube.client import KubeClient
from rebalancer.kube.lease import LeaseClient
from rebalancer.kube.limiter import TokenBucket
from rebalancer.runtime.election import Election, Timing
from rebalancer.runtime.leadership import Leadership, steady_clock
from rebalancer.simulate.api_server import ApiServer
from rebalancer.simulate.faults import Faults
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.world import World

NAMESPACE, NAME = "rebalancer", "rebalancer"
PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
LEASES = "/leases"
QUICK = Timing(lease_s=1.5, renew_s=1.0, retry_s=0.2)


def give_back(world: World, *, namespace: str = NAMESPACE) -> None:
    """A Lease as its last holder left it, so that the first candidate of a test need not wait for one to be made."""
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0}
    world.create("leases", {"metadata": {"name": NAME, "namespace": namespace}, "spec": spec})


@dataclass
class Candidate:
    """A campaign and what it told: ``told`` holds "began" and "ended: reason" in their order."""

    leadership: Leadership
    client: KubeClient
    told: list[str] = field(default_factory=list)
    began: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> Candidate:
        self.leadership.start(began=self._began, ended=self._ended)
        return self

    def stop(self, *, release: bool = True) -> None:
        self.leadership.close(release=release, within_s=5.0)

    @property
    def leads(self) -> bool:
        return self.leadership.valid_for(0.0)

    def _began(self) -> None:
        self.told.append("began")
        self.began.set()

    def _ended(self, reason: str) -> None:
        self.told.append(f"ended: {reason}")
        self.ended.set()


@dataclass
class Cluster:
    """An API server with nothing in it, and all that was opened towards it."""

    api: ApiServer
    folder: Path
    candidates: list[Candidate] = field(default_factory=list)
    clients: list[KubeClient] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.api.world

    @property
    def faults(self) -> Faults:
        return self.api.faults

    @property
    def stored(self) -> Json:
        """The Lease as it is kept."""
        return self.world.get("leases", NAME, NAMESPACE)

    @property
    def holder(self) -> str:
        """Empty when nobody holds the Lease, or there is none."""
        stored = self.world.find("leases", NAME, NAMESPACE)
        return "" if stored is None else stored["spec"].get("holderIdentity", "")

    def edit(self, *, metadata: Json | None = None, spec: Json | None = None) -> None:
        """Change the Lease behind everybody's back, as a person would."""
        with self.world.lock:
            stored = self.stored
            changed = {**stored, "metadata": {**stored["metadata"], **(metadata or {})}, "spec": {**stored["spec"], **(spec or {})}}
            self.world.replace("leases", changed)

    def client(self, *, limit_s: float = 5.0, bucket: TokenBucket | None = None, token: str = "") -> KubeClient:
        path = self.folder / f"kubeconfig-{len(self.clients)}"
        path.write_text(
            f"""
apiVersion: v1
kind: Config
clusters: [{{name: here, cluster: {{server: "{self.api.url}"}}}}]
users: [{{name: me, user: {{{f'token: "{token}"' if token else ""}}}}}]
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
current-context: here
"""
        )
        client = KubeClient.connect(kubeconfig=path, context=None, timeout_s=limit_s, bucket=bucket)
        self.clients.append(client)
        return client

    def lease(self, client: KubeClient | None = None, *, limit_s: float = 5.0) -> LeaseClient:
        return LeaseClient(client or self.client(), namespace=NAMESPACE, name=NAME, limit_s=limit_s)

    def candidate(
        self,
        name: str,
        *,
        timing: Timing = QUICK,
        client: KubeClient | None = None,
        clock: Callable[[], float] = steady_clock,
        wall: Callable[[], float] = lambda: 1_800_000_000.0,
    ) -> Candidate:
        """A candidate that has not been started."""
        client = client or self.client()
        lease = self.lease(client, limit_s=timing.request_s)
        candidate = Candidate(Leadership(lease, Election(name, timing), clock=clock, wall=wall), client)
        self.candidates.append(candidate)
        return candidate

    def close(self) -> None:
        self.faults.clear()
        for candidate in self.candidates:
            candidate.stop(release=False)
        for client in self.clients:
            client.close()
