"""GPU nodes and pods for the embedded cluster, in one line each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rebalancer.simulate.gpu.nodes import L4, SHARED_MEMORY, WHOLE, GpuModel, GpuNodes, Sharing, with_gpus
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.world import World
from tests.simulate.cluster_kit import node, pod_value

Json = dict[str, Any]
GIB = 2.0**30
CARD = GpuModel("NVIDIA-T4", 16384)
SHARED = GpuNodes("shared", 1, CARD, devices=4, sharing=Sharing.MEMORY)
CUT = GpuNodes("cut", 1, L4, devices=2, sharing=Sharing.REPLICAS, replicas=4)
PLAIN = GpuNodes("plain", 1, L4, devices=2)


def gpu_world(*groups: GpuNodes, seed: int = 5) -> World:
    """One node of each group, named as the group."""
    world = bare_world(seed=seed)
    for group in groups:
        template = node(World(), group.name)
        plain = {key: template[key] for key in ("metadata", "spec", "status")}
        world.create("nodes", with_gpus({**plain, "metadata": {"name": group.name, "labels": plain["metadata"]["labels"]}}, group))
    return world


def asking(world: World, name: str, *, gib: int = 0, gpus: int = 0, busy: float = 0.0, held_gib: float = 0.0, on: str = "") -> Json:
    """A pod that asks for GiB of one device, or for devices or replicas, and uses what is said of each; the scheduler places it."""
    value = pod_value(name, cpu="100m")
    resource, amount = (SHARED_MEMORY, gib) if gib else (WHOLE, gpus)
    resources = value["spec"]["containers"][0]["resources"]
    resources["limits"] = {resource: str(amount)}
    resources["requests"][resource] = str(amount)
    value["spec"]["tolerations"] = [{"operator": "Exists"}]
    if on:
        value["spec"]["nodeSelector"] = {"kubernetes.io/hostname": on}
    made = world.create("pods", value)
    world.advance(30)
    if world.load is not None and (busy or held_gib):
        profile = replace(world.load.profile("a", name), gpu_busy=busy, gpu_memory_bytes=held_gib * GIB, swing=0.0, noise=0.0)
        world.load.set_profile("a", name, profile)
    return world.get("pods", name, "a") if made else made


def index_of(world: World, name: str) -> str:
    """The device that gpushare has written down."""
    annotations: dict[str, str] = world.get("pods", name, "a")["metadata"].get("annotations") or {}
    return annotations.get("ALIYUN_COM_GPU_MEM_IDX", "")


def ids_of(world: World, name: str) -> list[str]:
    """What the kubelet says it has given."""
    status = world.get("pods", name, "a")["status"]["containerStatuses"][0]
    return [each["resourceID"] for given in status.get("allocatedResourcesStatus") or () for each in given["resources"]]
