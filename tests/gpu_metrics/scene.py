"""Nodes of every exporter shape, scraped by one real Prometheus, and the state that the collectors make of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

from rebalancer.collect.asking import Asking
from rebalancer.collect.assemble import assemble
from rebalancer.collect.cluster import node_directory
from rebalancer.collect.gpu.assembling import GpuWords
from rebalancer.collect.gpu.exporters import GpuSamples, read_gpu_samples
from rebalancer.collect.gpu.signals import beliefs_of, with_gpu_signals
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.samples import Samples
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Confirm, Metrics, Pool, Spec, Threshold
from rebalancer.state.cluster import ClusterState
from tests.collect_cluster.objects import Json, node
from tests.gpu.test_assembly import gpu_pod, objects_of
from tests.support.prometheus_server import PrometheusServer, TestExporter

EXPOSITIONS = Path(__file__).with_name("expositions")
MARKS = {"gpu": Threshold(low=30, target=60, high=80), "gpu_memory": Threshold(low=30, target=70, high=90)}
SPEC = Spec(
    pools=(Pool(name="default", signals=MARKS),), metrics=Metrics(window=30, max_age=15), confirm=Confirm(windows=1, at_least=1, step=10)
)
SCRAPES_S = 3.0
POLLS = 100


@dataclass(frozen=True)
class Scene:
    state: ClusterState
    samples: GpuSamples

    def device(self, uuid: str, instance: int = -1) -> int:
        devices = self.state.gpus.devices
        names = devices.uuids if instance < 0 else devices.parents
        return next(row for row, name in enumerate(names) if name == uuid and int(devices.instances[row]) == instance)

    def busy(self, uuid: str, instance: int = -1) -> float:
        return float(self.state.gpus.use.busy[self.device(uuid, instance)])

    def pod(self, name: str) -> int:
        return self.state.pods.names.index(name)

    def pair(self, name: str) -> int:
        """Row of the one device that the pod is on."""
        (row,) = self.state.gpus.held.of_pod(self.pod(name)).tolist()
        return row

    def usage(self, name: str, signal: str = "gpu") -> float:
        return float(self.state.pods.usage[self.pod(name), self.state.signal_index[signal]])

    def node_usage(self, name: str, signal: str = "gpu") -> float:
        return float(self.state.nodes.usage[self.state.node_index[name], self.state.signal_index[signal]])


def _gpu_node(name: str, resource: str, count: int, **labels: str) -> Json:
    made = node(
        name, extended={resource: str(count)}, labels={f"nvidia.com/{key}".replace("_", "."): value for key, value in labels.items()}
    )
    made["status"]["capacity"][resource] = str(count)  # type: ignore[index]
    return made


def nodes() -> list[Json]:
    hami = json.dumps([{"id": "GPU-h0", "index": 0, "count": 10, "devmem": 16384, "type": "Tesla V100", "health": True}])
    older = json.dumps(
        [{"id": f"GPU-o{row}", "index": row, "count": 10, "devmem": 16384, "type": "Tesla V100", "health": True} for row in range(4)]
    )
    return [
        _gpu_node("old", "nvidia.com/gpu", 2, gpu_product="NVIDIA-A100-SXM4-40GB", gpu_count="2", gpu_memory="40960"),
        _gpu_node(
            "new",
            "nvidia.com/gpu",
            14,
            gpu_product="Tesla-T4",
            gpu_count="7",
            gpu_memory="15360",
            gpu_replicas="2",
            gpu_sharing_strategy="time-slicing",
        ),
        _gpu_node("mig", "nvidia.com/mig-3g.20gb", 2, gpu_product="NVIDIA-A100-SXM4-40GB", mig_strategy="mixed"),
        node("hami", extended={"nvidia.com/gpu": "10"}, annotations={"hami.io/node-nvidia-register": hami}),
        _gpu_node("silent", "nvidia.com/gpu", 1, gpu_product="Tesla-T4", gpu_count="1", gpu_memory="15360"),
        _gpu_node("amd", "amd.com/gpu", 2),
        _gpu_node("parts", "amd.com/cpx_nps4", 4),
        node("older", extended={"nvidia.com/gpu": "40"}, annotations={"hami.io/node-nvidia-register": older}),
        _gpu_node("local", "nvidia.com/gpu", 1, gpu_product="Tesla-T4", gpu_count="1", gpu_memory="15360"),
        _gpu_node("spiked", "nvidia.com/gpu", 1, gpu_product="Tesla-T4", gpu_count="1", gpu_memory="15360"),
        node("plain"),
    ]


ON_OLDER = {"zero-1": (0,), "zero-2": (0,), "above": (1,), "below": (1,), "both": (2, 3)}
"""Cards of each pod on the node ``older``."""


def _on_older(name: str, *cards: int) -> Json:
    given = "".join(f"GPU-o{card},NVIDIA,4000,30:" for card in cards)
    annotations = {"hami.io/vgpu-node": "older", "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": f"{given};"}
    asks = {"nvidia.com/gpu": str(len(cards)), "nvidia.com/gpumem": "4000"}
    return gpu_pod(name, asks, on="older", namespace="ml", annotations=annotations)


def pods() -> list[Json]:
    one = {"nvidia.com/gpu": "1"}
    on_new = ("alone", "copy-1", "copy-2", "own-1", "own-2", "blind-1", "blind-2")
    virtual = {"hami.io/vgpu-node": "hami", "hami.io/bind-phase": "success"}
    given = {name: f"GPU-h0,NVIDIA,{mib},30:;" for name, mib in (("v-1", 6000), ("v-2", 4000))}
    return [
        gpu_pod("train", one, on="old", namespace="ml"),
        *(gpu_pod(name, one, on="new", namespace="ml") for name in on_new),
        gpu_pod("slice", {"nvidia.com/mig-3g.20gb": "1"}, on="mig", namespace="ml"),
        *(
            gpu_pod(
                name,
                {**one, "nvidia.com/gpumem": "6000"},
                on="hami",
                namespace="ml",
                annotations={**virtual, "hami.io/vgpu-devices-allocated": text},
            )
            for name, text in given.items()
        ),
        gpu_pod("unheard", one, on="silent", namespace="ml"),
        *(_on_older(name, *cards) for name, cards in ON_OLDER.items()),
        gpu_pod("instinct", {"amd.com/gpu": "1"}, on="amd", namespace="ml"),
        gpu_pod("dcgm-exporter-y", {}, on="local", namespace="gpu-operator"),
        gpu_pod("dcgm-exporter-x", {}, on="new", namespace="gpu-operator"),
    ]


def _steady(file: Path) -> Callable[[], str]:
    return lambda: file.read_text(encoding="utf-8")


def _spiking(file: Path) -> Callable[[], str]:
    """Absurd in its first scrape, and never again."""
    texts = chain([file.read_text(encoding="utf-8").replace("} 42", "} 4294967295")], repeat(file.read_text(encoding="utf-8")))
    return lambda: next(texts)


@contextmanager
def scraping(folder: Path) -> Iterator[PrometheusServer]:
    """Some are scraped as the chart does by default: the target's namespace and pod win."""
    with ExitStack() as stack:
        targets = {}
        for file in sorted(EXPOSITIONS.glob("*.prom")):
            exporter = stack.enter_context(TestExporter(_spiking(file) if file.stem == "dcgm-spike" else _steady(file)))
            targets[file.stem] = [exporter.address]
        exporters = {"dcgm-4-shared": "dcgm-exporter-x", "dcgm-localhost": "dcgm-exporter-y"}
        dishonoured = {name: {"namespace": "gpu-operator", "pod": pod, "container": "exporter"} for name, pod in exporters.items()}
        yield stack.enter_context(PrometheusServer(folder, targets=targets, dishonoured=dishonoured))


def _calm(samples: GpuSamples) -> bool:
    """The device with the absurd sample has enough others."""
    readings = samples.readings.get("DCGM_FI_DEV_GPU_UTIL", ())
    return any(reading.device.uuid == "GPU-s0" and reading.value == 0.42 for reading in readings)


def looked(server: PrometheusServer) -> Scene:
    """Once every exporter was scraped for some seconds."""
    objects = objects_of(nodes(), pods())
    connected = Prometheus(PrometheusAccess(url=server.url))
    try:
        for _ in range(POLLS):
            asking = Asking(connected, directory=node_directory(objects), at=time.time(), deadline=Deadline.after(60))
            asks = frozenset((each.metadata.namespace, each.metadata.name) for each in objects.pods if each.metadata.namespace == "ml")
            samples = read_gpu_samples(asking, spec=SPEC, asking_pods=asks)
            if len(samples.sightings.devices) >= 13 and len(samples.shapes) >= 3 and _calm(samples):
                break
            time.sleep(0.1)
    finally:
        connected.close()
    words = GpuWords(sightings=samples.sightings, samples=samples, beliefs=beliefs_of(SPEC))
    empty = Samples(signals=(), window_s=30.0, step_s=10.0, windows=1)
    state = assemble(objects, with_gpu_signals(empty, words, SPEC), at=asking.at, gpus=words)
    return Scene(state, samples)
