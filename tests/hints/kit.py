"""An embedded cluster whose pods are gated, a keeper of hints beside it, and moves in one line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.errors import KubernetesError
from rebalancer.kube.client import KubeClient
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import Restart, WatchTiming
from rebalancer.plan.hinting import ENABLED, NAMESPACE_LABEL
from rebalancer.runtime.hint_keeper import HintKeeper
from rebalancer.runtime.leadership import Term
from rebalancer.runtime.memory import OpenMove
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.hint_admission import HintAdmission
from rebalancer.simulate.kinds import Json
from rebalancer.simulate.pods import delete_pod
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import World
from rebalancer.state.history import PastEviction
from rebalancer.state.tables import WorkloadRef
from rebalancer.steer.hinting import LABEL, Ungated, owner_label
from tests.simulate.cluster_kit import deployment, node
from tests.support.embedded import eventually

OWN, LEASE, SHOP = "ops", "rebalancer", "shop"
OWNER = owner_label(namespace=OWN, lease=LEASE)
QUICK = WatchTiming(server=1.0, silence=1.5, forbidden=0.3, backoff=Backoff(first_s=0.02, ceiling_s=0.1))
NODES = ("node-a", "node-b", "node-c", "node-d")


@dataclass
class Notes:
    """Everything that a keeper tells."""

    results: list[Ungated] = field(default_factory=list)
    seen: int = 0
    waiting: int = 0
    forbidden_ones: list[str] = field(default_factory=list)
    defects: list[Exception] = field(default_factory=list)

    def gated(self) -> None:
        self.seen += 1

    def ungated(self, result: Ungated, *, since_creation_s: float, since_sight_s: float | None) -> None:
        assert since_creation_s >= 0
        assert since_sight_s is None or since_sight_s >= 0
        self.results.append(result)

    def at_the_gate(self, pods: int) -> None:
        self.waiting = pods

    def restarted(self, resource: str, reason: Restart) -> None:
        pass

    def forbidden(self, resource: str, error: KubernetesError) -> None:
        self.forbidden_ones.append(error.message)

    def defect(self, resource: str, error: Exception) -> None:
        self.defects.append(error)


@dataclass
class Shop:
    """Four nodes and a Deployment of three replicas in a namespace that asks for hints."""

    cluster: EmbeddedCluster
    client: KubeClient
    stack: ExitStack

    @property
    def world(self) -> World:
        return self.cluster.world

    def pods(self, app: str = "web") -> list[Json]:
        return [pod for pod in self.world.objects("pods", SHOP) if (pod["metadata"].get("labels") or {}).get("app") == app]

    def gated(self) -> list[Json]:
        return [pod for pod in self.world.objects("pods") if pod["spec"].get("schedulingGates")]

    def traces(self) -> list[Json]:
        return [pod for pod in self.world.objects("pods") if pod["spec"].get("schedulingGates") or LABEL in pod["metadata"]["labels"]]

    def announced(self) -> Json:
        found = self.world.find("hintannouncements", LEASE, OWN)
        return {} if found is None else found["awaited"]

    def announce(self, awaited: Json) -> None:
        self.world.create("hintannouncements", {"metadata": {"name": LEASE, "namespace": OWN}, "awaited": awaited})

    def keeper(self, *, term: Term | None, notes: Notes | None = None, wait_s: float = 60.0, shown: bool = True) -> HintKeeper:
        """A keeper that is on; with a term it leads, and a cycle has looked unless ``shown`` is False."""
        notes = notes or Notes()
        keeper = HintKeeper(self.client, namespace=OWN, lease=LEASE, notes=notes, report=notes, timing=QUICK)
        keeper.start(lambda: term)
        keeper.follow(hints=True, wait_s=wait_s)
        self.stack.callback(keeper.close, within_s=2.0)
        if term is not None and shown:
            keeper.lead(term)
            keeper.show([], hot=())
        return keeper

    def evict(self, pod: Json) -> None:
        """The pod is on its way out, and its ReplicaSet has made another."""
        with self.world.lock:
            delete_pod(self.world, pod)
            self.world.settle()

    def landed(self, before: Sequence[Json], count: int = 1) -> list[str]:
        """The nodes of the pods that came since, once there are so many and each is bound."""
        old = {pod["metadata"]["uid"] for pod in before}

        def nodes() -> list[str]:
            self.cluster.advance(0.1)
            fresh = [pod["spec"].get("nodeName", "") for pod in self.pods() if pod["metadata"]["uid"] not in old]
            return fresh if len(fresh) == count and all(fresh) else []

        return eventually(nodes, seconds=20)


def leading() -> Term:
    return Term(lambda term: "", reserve_s=0.0)


def move(pod: Json, *nodes: str, at: float = 0.0) -> OpenMove:
    meta = pod["metadata"]
    (owner,) = meta["ownerReferences"]
    eviction = PastEviction(
        at=at,
        pod_uid=meta["uid"],
        namespace=meta["namespace"],
        pod=meta["name"],
        workload=WorkloadRef("Deployment", meta["namespace"], "web"),
        controller_uid=owner["uid"],
        tenant=None,
        source=pod["spec"].get("nodeName", ""),
        destination=nodes[0],
    )
    return OpenMove(eviction, tuple(nodes[1:]), predicted_gain=0.1, source_before={}, predicted_source_after={})


@contextmanager
def shop(folder: Path) -> Iterator[Shop]:
    world = bare_world(seed=3)
    for name in NODES:
        node(world, name)
    world.create("namespaces", {"metadata": {"name": OWN}})
    world.create("namespaces", {"metadata": {"name": SHOP, "labels": {NAMESPACE_LABEL: ENABLED}}})
    world.admission.append(HintAdmission(world, namespace=OWN, announcement=LEASE, owner=OWNER))
    deployment(world, "web", 3, namespace=SHOP)
    with EmbeddedCluster(world) as cluster, ExitStack() as stack:
        cluster.advance(30)
        client = KubeClient.connect(kubeconfig=cluster.write_kubeconfig(folder / "kubeconfig"), context=None)
        stack.callback(client.close)
        yield Shop(cluster, client, stack)
