"""The two servers of `benchmarks.gpushare`, each a process of its own: an embedded cluster with shared GPUs, and the service that watches
it.

Each says its address in one line when it can be used, and serves until its standard input is closed.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rebalancer.kube.client import KubeClient
from rebalancer.runtime.extender_server import ExtenderServer
from rebalancer.runtime.gpushare.service import GpuShareService
from rebalancer.runtime.serving.messages import Answer, Request
from rebalancer.settings import Listen
from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.world import World
from rebalancer.steer.gpushare.allocations import bind_annotations

EACH = 16276
"""MiB of a device."""
ASK = 1000
WAIT_S = 120.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """``kubeconfig``: of the cluster that the service watches; empty for the cluster itself. ``waiting``: pods that are not bound."""

    nodes: int
    devices: int = 8
    pods_per_node: int = 6
    waiting: int = 200
    kubeconfig: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """What the cluster says: where its kubeconfig is, and (name, uid) of the pods that wait."""

    kubeconfig: str
    pods: tuple[tuple[str, str], ...]


def main(arguments: Sequence[str]) -> int:
    part = msgspec.json.decode(arguments[0].encode(), type=Part)
    return _serve(part) if part.kubeconfig else _be_cluster(part)


def node_name(index: int) -> str:
    return f"gpu-{index:04d}"


def _be_cluster(part: Part) -> int:
    world, chance = World(seed=1), random.Random(1)
    for index in range(part.nodes):
        resources = {"cpu": "96", "aliyun.com/gpu-mem": str(part.devices * EACH), "aliyun.com/gpu-count": str(part.devices)}
        status = {"capacity": resources, "allocatable": resources}
        world.create("nodes", {"metadata": {"name": node_name(index)}, "spec": {}, "status": status})
        for number in range(part.pods_per_node):
            # Up to half of a device each, so that some nodes have a whole one free and others none.
            _pod(world, f"p-{index}-{number}", ask=chance.randint(1000, EACH // 2), on=node_name(index), device=number % part.devices)
    waiting = [_pod(world, f"waiting-{number}", ask=ASK) for number in range(part.waiting)]
    with tempfile.TemporaryDirectory() as folder, EmbeddedCluster(world) as cluster:
        kubeconfig = cluster.write_kubeconfig(Path(folder) / "kubeconfig")
        _say(Waiting(str(kubeconfig), tuple(waiting)))
        sys.stdin.read()
    return 0


def _pod(world: World, name: str, *, ask: int, on: str = "", device: int = 0) -> tuple[str, str]:
    annotations = bind_annotations(device=device, of_pod=ask, of_device=EACH, at=time.time()) if on else {}
    container = {"name": "c", "image": "x", "resources": {"limits": {"aliyun.com/gpu-mem": str(ask)}}}
    spec = {"containers": [container], "schedulerName": "another", **({"nodeName": on} if on else {})}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    stored = world.create("pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Running" if on else "Pending"}})
    return name, str(stored["metadata"]["uid"])


def _serve(part: Part) -> int:
    client = KubeClient.connect(kubeconfig=Path(part.kubeconfig), context=None)
    with GpuShareService(client, namespace="rebalancer", now=time.time) as service:
        if not service.wait_ready(WAIT_S):
            return 1
        routes = {**service.routes(), ("GET", "/cpu"): _cpu}
        with ExtenderServer(Listen("127.0.0.1", 0), routes=routes) as server:
            _say(server.address.port)
            sys.stdin.read()
    client.close()
    return 0


def _cpu(request: Request) -> Answer:
    """Seconds that this process has used."""
    return Answer(body=msgspec.json.encode(time.process_time()))


def _say(value: object) -> None:
    print(msgspec.json.encode(value).decode(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
