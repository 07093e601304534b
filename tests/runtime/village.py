"""A village of six nodes with one hot one, served over HTTP, and the real controller on it: for what only shows over several cycles.

Node ``n0`` is hot: of its eight cores seven are busy, three of them for ``web-hot``, which alone brings it under target. A ``filler`` in
kube-system runs on every node; nobody may move it, and a test may heat it. Time passes only when a test says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rebalancer.act.actuator import Actuator
from rebalancer.act.outcome import Outcome, Result
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.deadline import Deadline
from rebalancer.kube.client import KubeClient
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.runtime.considering import Orders
from rebalancer.runtime.controller import Controller, CycleResult
from rebalancer.runtime.session import actuators
from rebalancer.runtime.store import ConfigMapStore, MemoryStore
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.load import LoadModel, Profile
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import START, World, updated
from tests.simulate.cluster_kit import deployment, node, owner_of, pod

GIB = 2.0**30
HOT = "n0"
NODES = tuple(f"n{i}" for i in range(6))
NAMESPACE = "ops"
"""Where the controller keeps its memory."""


def village() -> World:
    """The objects, settled, and what they use; every pod has run for a day."""
    world = bare_world(seed=3, now=START - 86400.0)
    for name in ("kube-system", "shop", NAMESPACE):
        world.create("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
    for name in NODES:
        node(world, name)
    owners = {name: deployment(world, name, 3, namespace="shop", cpu="500m") for name in ("web", "api", "cache")}
    owners["filler"] = deployment(world, "filler", len(NODES), namespace="kube-system", cpu="500m")
    uses: dict[tuple[str, str], float] = {}

    def place(owner: str, name: str, on: str, cores: float, *, cpu: str = "500m", namespace: str = "shop") -> None:
        pod(world, name, namespace=namespace, on=on, owner=owner_of(owners[owner]), labels={"app": owner}, cpu=cpu, memory="1Gi")
        uses[namespace, name] = cores

    for number, (owner, cores) in enumerate((("web", 3.0), ("api", 1.5), ("cache", 1.35))):
        place(owner, f"{owner}-hot", HOT, cores, cpu="500m" if owner == "web" else "2")
        for sibling in (1, 2):
            place(owner, f"{owner}-{sibling}", NODES[1 + (2 * number + sibling) % 5], 0.4)
    for name in NODES:
        place("filler", f"filler-{name}", name, 1.0, namespace="kube-system")
    load = world.load or LoadModel(world)
    for (namespace, name), cores in uses.items():
        load.set_profile(namespace, name, Profile(cores, GIB, swing=0.0, noise=0.0))
    world.advance(86400.0)
    return world


@dataclass
class Village:
    cluster: EmbeddedCluster
    client: KubeClient
    prometheus: Prometheus

    @property
    def world(self) -> World:
        return self.cluster.world

    def now(self) -> float:
        return self.world.now

    @property
    def load(self) -> LoadModel:
        assert self.world.load is not None
        return self.world.load

    def controller(self, store: MemoryStore | None = None, **changed: Actuator) -> Controller:
        """A new one, as after a restart; ``store``: else the ConfigMap."""
        acts: dict[Mode, Actuator] = dict(actuators(self.client, events=True, instance="test"))
        acts |= {Mode(name.replace("_", "-")): actuator for name, actuator in changed.items()}
        return Controller(
            client=self.client,
            prometheus=self.prometheus,
            actuators=acts,
            store=store or ConfigMapStore(self.client, namespace=NAMESPACE),
            clock=self,
        )

    def pass_time(self, minutes: float) -> None:
        self.cluster.advance(minutes * 60)

    def heat(self, on: str, factor: float) -> None:
        """Let the filler of a node use ``factor`` times what it used until now."""
        self.load.scale([("kube-system", f"filler-{on}")], factor)

    def cordon(self, *names: str, on: bool = True) -> None:
        for name in names:
            self.world.replace("nodes", updated(self.world.get("nodes", name), "spec", {"unschedulable": on}))

    def where(self, app: str) -> Mapping[str, str]:
        """pod -> node of a workload's pods that are not leaving."""
        return {
            p["metadata"]["name"]: p["spec"].get("nodeName", "")
            for p in self.world.objects("pods")
            if p["metadata"]["labels"].get("app") == app and "deletionTimestamp" not in p["metadata"]
        }

    def taints(self) -> dict[str, list[str]]:
        found = {n["metadata"]["name"]: [t["key"] for t in n["spec"].get("taints") or ()] for n in self.world.objects("nodes")}
        return {name: keys for name, keys in found.items() if keys}

    def events(self) -> list[Any]:
        return list(self.world.objects("events"))

    def writes(self) -> list[str]:
        """``METHOD path`` of every request that would change the cluster."""
        return [f"{r.method} {r.path}" for r in self.cluster.api.requests.all() if r.method not in ("GET", "HEAD")]


def orders(mode: Mode = Mode.EVICT, **spec: Any) -> Orders:
    return Orders(policy=built_in_policy(mode=mode, **spec), mode=mode, mode_source="a test")


def cycle(controller: Controller, given: Orders | None = None) -> CycleResult:
    return controller.cycle(given or orders(), deadline=Deadline.after(60.0))


def evicted(result: CycleResult) -> list[str]:
    return [outcome.move.pod.name for outcome in result.outcomes if outcome.result is Result.EVICTED]


def outcomes(result: CycleResult) -> list[Outcome]:
    return list(result.outcomes)


def refused(result: CycleResult, pod: str) -> str:
    """``gate: reason`` of a pod that stays; empty when it was no candidate."""
    return next((f"{r.gate}: {r.reason}" for r in result.verdict.decision.plan.refused if r.pod.name == pod), "")


@contextlib.contextmanager
def serving(folder: Path, world: World | None = None) -> Iterator[Village]:
    with EmbeddedCluster(world or village()) as cluster:
        client = KubeClient.connect(kubeconfig=cluster.write_kubeconfig(folder / "kubeconfig"), context=None)
        prometheus = Prometheus(PrometheusAccess(url=cluster.prometheus_url))
        try:
            yield Village(cluster, client, prometheus)
        finally:
            client.close()
            prometheus.close()
