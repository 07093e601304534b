"""The GPU part of a scenario: which nodes there are, what runs on them, and what is wrong with some of them.

Two models: large devices that are handed out whole, to serving, to training gangs and to notebooks, and small ones that serving pods share
by memory or by replicas. All of it is drawn from the scenario's generator, after the workloads without GPUs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rebalancer.simulate.catalogue import Workload, template
from rebalancer.simulate.gpu.nodes import A100, L4, PRESENT, PRODUCT, SHARED_MEMORY, TOLERATION, WHOLE, GpuNodes, Sharing
from rebalancer.simulate.kinds import Json

GANG = "PyTorchJob"
OVER_USER = "captioner"
"""The workload of which one pod uses many times the memory that it asked for."""
POD_GROUP = "scheduling.x-k8s.io/pod-group"
GANG_SIZE = "pod-group.scheduling.sigs.k8s.io/min-available"
_GROUP_NAME = "pod-group.scheduling.sigs.k8s.io/name"
_SHARERS = (
    ("ranker", 8, 4),
    ("asr", 5, 6),
    (OVER_USER, 8, 2),
    ("ocr", 6, 3),
    ("recommender", 8, 4),
    ("translator", 5, 6),
    ("layout", 6, 3),
)
"""Serving workloads that share devices by memory: replicas, and GiB that each asks for."""


@dataclass(frozen=True, slots=True)
class GpuFleet:
    """``hot_whole`` and ``hot_shared`` nodes are kept busy within ``hot_load``; on ``overfull`` shared devices more memory is wanted than
    there is, on each because of a single pod. Those are on nodes with several devices as long as there are any, where the means of the node
    hide it."""

    groups: tuple[GpuNodes, ...] = (
        GpuNodes("gpu-a100", 6, A100, devices=4, cores=48, gib=384),
        GpuNodes("gpu-l4", 6, L4, sharing=Sharing.MEMORY, cores=16, gib=64),
        GpuNodes("gpu-l4d", 3, L4, devices=2, sharing=Sharing.MEMORY, cores=32, gib=128),
        GpuNodes("gpu-l4t", 4, L4, devices=2, sharing=Sharing.REPLICAS, replicas=4, cores=32, gib=128),
    )
    hot_whole: int = 1
    hot_shared: int = 2
    hot_load: tuple[float, float] = (0.91, 0.97)
    overfull: int = 2
    overuse_gib: float = 11.0


def gpu_workloads(rng: random.Random) -> Iterator[Workload]:
    """What asks for GPUs, in the order in which it was rolled out."""
    yield Workload(
        "DaemonSet",
        "monitoring",
        "dcgm-exporter",
        0,
        template("dcgm-exporter", cpu="100m", memory="256Mi", nodeSelector={PRESENT: "true"}, tolerations=[{"operator": "Exists"}]),
    )
    yield _gang("pretrain", 3)
    yield _serving("chat", 8, WHOLE, 1, on=A100.product, cpu="4", memory="32Gi", busy=0.42, gib=60.0, budget={"maxUnavailable": 1})
    yield _notebook("ines", gib=3.2)
    yield _serving("vision", 5, WHOLE, 1, on=A100.product, cpu="4", memory="24Gi", busy=0.35, gib=38.0)
    yield _gang("finetune", 3)
    yield _notebook("oleg", gib=11.5)
    for name, replicas, ask in _SHARERS:
        busy, budget = rng.uniform(0.09, 0.12), rng.choice(({"maxUnavailable": 1}, {"maxUnavailable": "25%"}, None))
        yield _serving(name, replicas, SHARED_MEMORY, ask, on=L4.product, busy=busy, gib=ask * 0.86, budget=budget)
    for name, replicas in (("embedder", 10), ("reranker", 8)):
        yield _serving(name, replicas, WHOLE, 1, on=f"{L4.product}-SHARED", busy=rng.uniform(0.1, 0.14), gib=3.1)


def _template(name: str, resource: str, amount: int, *, cpu: str, memory: str, labels: Json | None = None, **spec: Any) -> Json:
    made = template(name, cpu=cpu, memory=memory, labels=labels, tolerations=[TOLERATION], **spec)
    resources = made["spec"]["containers"][0]["resources"]
    for part in ("requests", "limits"):
        resources[part] = {**resources[part], resource: str(amount)}
    return made


def _serving(
    name: str,
    replicas: int,
    resource: str,
    amount: int,
    *,
    on: str,
    busy: float,
    gib: float,
    cpu: str = "1",
    memory: str = "4Gi",
    budget: Json | None = None,
) -> Workload:
    shape = _template(name, resource, amount, cpu=cpu, memory=memory, nodeSelector={PRODUCT: on})
    return Workload("Deployment", "serving", name, replicas, shape, budget, gpu_busy=busy, gpu_gib=gib)


def _gang(name: str, members: int) -> Workload:
    """A training job that runs whole or not at all."""
    labels = {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/replica-type": "worker",
        POD_GROUP: name,
        _GROUP_NAME: name,
        GANG_SIZE: str(members),
    }
    shape = _template(
        name, WHOLE, 1, cpu="8", memory="48Gi", labels=labels, nodeSelector={PRODUCT: A100.product}, restartPolicy="OnFailure"
    )
    return Workload(GANG, "training", name, members, shape, gpu_busy=0.8, gpu_gib=68.0)


def _notebook(owner: str, *, gib: float) -> Workload:
    """A device that somebody has left alone, with the memory of the last experiment still on it."""
    name = f"notebook-{owner}"
    shape = _template(name, WHOLE, 1, cpu="2", memory="16Gi", labels={"notebook-name": name}, nodeSelector={PRODUCT: A100.product})
    return Workload("StatefulSet", "research", name, 1, shape, cpu_share=0.01, gpu_gib=gib)
