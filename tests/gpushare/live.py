"""The service against the embedded API server, over real HTTP on both sides."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalancer.kube.client import KubeClient
from rebalancer.kube.retries import Backoff
from rebalancer.kube.watch import WatchTiming
from rebalancer.runtime.extender_server import ExtenderServer
from rebalancer.runtime.gpushare.service import GpuShareService
from rebalancer.settings import Listen
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import Change, World
from tests.gpushare.kit import EACH, NOW, bind_question, gpu_node, gpu_pod

Json = dict[str, Any]
QUICK = WatchTiming(server=1.0, silence=1.2, forbidden=0.3, backoff=Backoff(first_s=0.02, ceiling_s=0.1))


@dataclass
class Auditor:
    """Adds up every device at every change of a pod, under the lock of the world."""

    world: World
    each: int = EACH
    over: list[str] = field(default_factory=list)
    changes: int = 0

    def __call__(self, change: Change) -> None:
        if change.plural != "pods":
            return
        self.changes += 1
        for (node, device), held in held_on(self.world).items():
            if held > self.each:
                self.over.append(f"{node} {device}: {held}")


def held_on(world: World) -> dict[tuple[str, str], int]:
    """(node, device) -> what bound pods hold that have not ended, by what they ask for and where they are annotated to be."""
    found: dict[tuple[str, str], int] = {}
    for pod in world.objects("pods"):
        if not pod["spec"].get("nodeName") or pod["status"]["phase"] in ("Succeeded", "Failed"):
            continue
        asked = sum(int(c.get("resources", {}).get("limits", {}).get("aliyun.com/gpu-mem", 0)) for c in pod["spec"]["containers"])
        place = (pod["spec"]["nodeName"], pod["metadata"].get("annotations", {}).get("ALIYUN_COM_GPU_MEM_IDX", "?"))
        found[place] = found.get(place, 0) + asked
    return found


@dataclass
class Scene:
    """A cluster with nodes of two devices, its API server, and what watches over it."""

    world: World
    cluster: EmbeddedCluster
    kubeconfig: Path
    auditor: Auditor

    def pod(self, name: str, *asks: int, **more: Any) -> Json:
        return self.world.create("pods", gpu_pod(name, *asks, **more))

    def get(self, name: str) -> Json:
        return self.world.get("pods", name, "default")

    @contextmanager
    def service(self, **options: Any) -> Iterator[GpuShareService]:
        client = KubeClient.connect(kubeconfig=self.kubeconfig, context=None, backoff=Backoff(first_s=0.01, ceiling_s=0.05))
        try:
            with GpuShareService(client, namespace="rebalancer", now=lambda: NOW, timing=QUICK, **options) as service:
                assert service.wait_ready(10)
                yield service
        finally:
            client.close()


@contextmanager
def scene(folder: Path, *, nodes: int = 2) -> Iterator[Scene]:
    world = World(seed=3)
    for index in range(nodes):
        world.create("nodes", gpu_node(f"n{index + 1}"))
    world.create("nodes", gpu_node("cpu", devices=0))
    auditor = Auditor(world)
    world.subscribe(auditor)
    with EmbeddedCluster(world) as cluster:
        yield Scene(world, cluster, cluster.write_kubeconfig(folder / "kubeconfig"), auditor)


class Asking:
    """kube-scheduler, as far as an extender sees of it."""

    def __init__(self, server: ExtenderServer) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=20)

    def __call__(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self._connection.request(method, path, body=body or None, headers={"Content-Type": "application/json"})
        with self._connection.getresponse() as response:
            return response.status, response.read()

    def bind(self, pod: Mapping[str, Any], node: str) -> tuple[int, str]:
        status, body = self("POST", "/gpushare-scheduler/bind", bind_question(pod, node))
        return status, json.loads(body)["Error"]

    def close(self) -> None:
        self._connection.close()


@contextmanager
def asking(service: GpuShareService) -> Iterator[Asking]:
    with ExtenderServer(Listen(host="127.0.0.1", port=0), routes=service.routes()) as server:
        asked = Asking(server)
        try:
            yield asked
        finally:
            asked.close()
