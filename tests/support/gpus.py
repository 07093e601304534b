"""GPUs for the clusters of `builder`: devices of nodes, asks of pods by every scheme, and who holds what.

    node("n1", gpus=[gpu("80Gi", model="H100"), gpu("80Gi", model="H100")])
    pod("train", on="n1", gpu=whole(2), holds={0: 1.0, 1: 1.0})
    pod("serve", on="n1", gpu=memory_of("10Gi"), holds={0: part(memory="10Gi")})
    pod("somewhere", on="n1", gpu=whole())          # on a device of its node, nobody knows which

``holds`` names devices by their place on the node. A number is the share of the device, of compute and memory alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.state.devices import Confidence, DeviceFault, DevicePods, Devices, DeviceSource, Gpus, Health
from rebalancer.state.gpu import ANY_MODEL, UNKNOWN, Family, GpuAsk, ModelConstraint, Scheme
from rebalancer.units import parse_quantity


def _bytes(value: float | str) -> float:
    return parse_quantity(value) if isinstance(value, str) else float(value)


@dataclass(frozen=True)
class DeviceSpec:
    memory: float | str = "40Gi"
    model: str = "A100"
    uuid: str | None = None
    index: int | None = None
    family: Family = Family.NVIDIA
    scheme: Scheme = Scheme.PLAIN
    replicas: float = 1.0
    mig_profile: str = ""
    parent: str = ""
    instance: int = -1
    handed_out: float | str = UNKNOWN
    health: Health = Health.HEALTHY
    cordoned: bool = False
    trusted: bool = True
    exact: bool = True


gpu = DeviceSpec


def mig(profile: str = "1g.5gb", *, memory: float | str = "5Gi", parent: str = "", instance: int = -1, model: str = "A100") -> DeviceSpec:
    return DeviceSpec(
        memory=memory, model=model, uuid="", index=-1, scheme=Scheme.MIG, mig_profile=profile, parent=parent, instance=instance
    )


@dataclass(frozen=True)
class Part:
    compute: float = UNKNOWN
    memory: float | str = UNKNOWN
    confidence: Confidence = Confidence.ALLOCATED


part = Part
Holds = Mapping[int, float | Part]


def whole(count: float = 1, *, scheme: Scheme = Scheme.PLAIN, family: Family = Family.NVIDIA, models: Sequence[str] = ()) -> GpuAsk:
    """Whole devices of a device plugin; of ``models`` only, if any."""
    model = ModelConstraint(models=tuple(models)) if models else ANY_MODEL
    return GpuAsk(family=family, scheme=scheme, devices=count, compute=1.0, memory_share=1.0, gpus=count, slots=count, model=model)


def slice_of(profile: str, count: float = 1) -> GpuAsk:
    """MIG instances."""
    return GpuAsk(
        family=Family.NVIDIA, scheme=Scheme.MIG, devices=count, compute=1.0, memory_share=1.0, gpus=count, slots=count, mig_profile=profile
    )


def replica(of: float, *, count: float = 1, scheme: Scheme = Scheme.TIME_SLICING) -> GpuAsk:
    """``count`` of ``of`` replicas of a device."""
    known = count == 1
    return GpuAsk(
        family=Family.NVIDIA,
        scheme=scheme,
        devices=1.0 if known else UNKNOWN,
        compute=1 / of if known else UNKNOWN,
        memory_share=1 / of if known and scheme is Scheme.MPS else UNKNOWN,
        gpus=count / of,
        slots=count,
    )


def memory_of(memory: float | str, *, scheme: Scheme = Scheme.GPUSHARE) -> GpuAsk:
    """A part of the memory of one device, as gpushare has it."""
    return GpuAsk(family=Family.NVIDIA, scheme=scheme, devices=1.0, memory_bytes=_bytes(memory))


def virtual(count: float = 1, *, memory: float | str = UNKNOWN, cores: float = UNKNOWN, scheme: Scheme = Scheme.HAMI) -> GpuAsk:
    """HAMi's and Volcano's virtual GPUs; ``cores`` is a share."""
    size = _bytes(memory)
    return GpuAsk(
        family=Family.NVIDIA,
        scheme=scheme,
        devices=count,
        compute=cores,
        memory_bytes=size,
        memory_share=1.0 if size != size else UNKNOWN,
        gpus=count * cores,
        slots=count,
        cap=cores,
    )


def fraction(share: float, *, devices: float = 1, scheme: Scheme = Scheme.KAI) -> GpuAsk:
    """KAI's fraction, or koordinator's core and ratio."""
    return GpuAsk(family=Family.NVIDIA, scheme=scheme, devices=devices, compute=share, memory_share=share, gpus=devices * share)


def unknown_ask(scheme: Scheme = Scheme.PLAIN) -> GpuAsk:
    """Of a pod whose ask cannot be read."""
    return GpuAsk(family=Family.NVIDIA, scheme=scheme, devices=UNKNOWN)


@dataclass(frozen=True)
class PodGpus:
    """Of one pod. ``node``: row, -1 none."""

    node: int
    asks: tuple[GpuAsk, ...]
    holds: Holds
    active: bool


def gpu_tables(nodes: Sequence[Sequence[DeviceSpec]], pods: Sequence[PodGpus], faults: Sequence[DeviceFault] = ()) -> Gpus:
    """``nodes``: devices by row of a node; ``pods``: by row of a pod."""
    specs = [(row, place, spec) for row, of_node in enumerate(nodes) for place, spec in enumerate(of_node)]
    first = {row: number for number, (row, place, _) in reversed(list(enumerate(specs))) if place == 0}
    asks: dict[tuple[GpuAsk, ...], int] = {}
    asking = [(row, asks.setdefault(pod.asks, len(asks))) for row, pod in enumerate(pods) if pod.asks]
    held = sorted((first[pod.node] + place, row, share) for row, pod in enumerate(pods) for place, share in pod.holds.items())
    memory = np.array([_bytes(spec.memory) for _, _, spec in specs], dtype=np.float64)
    parts = [_part(share, memory[device]) for device, _, share in held]
    return Gpus(
        asks=tuple(asks),
        pod=np.array([row for row, _ in asking], dtype=np.int64),
        ask=np.array([number for _, number in asking], dtype=np.int64),
        devices=_devices(specs, memory),
        held=DevicePods(
            device=np.array([device for device, _, _ in held], dtype=np.int64),
            pod=np.array([row for _, row, _ in held], dtype=np.int64),
            compute=np.array([each.compute for each in parts], dtype=np.float64),
            memory_bytes=np.array([_bytes(each.memory) for each in parts], dtype=np.float64),
            exclusive=np.array([each.compute == 1.0 for each in parts], dtype=np.bool_),
            confidence=np.array([each.confidence for each in parts], dtype=np.int64),
        ),
        unplaced=np.array([row for row, pod in enumerate(pods) if pod.asks and pod.active and not pod.holds], dtype=np.int64),
        faults=tuple(faults),
    )


def _part(share: float | Part, device_bytes: float) -> Part:
    return share if isinstance(share, Part) else Part(compute=float(share), memory=float(share) * device_bytes)


def _devices(specs: Sequence[tuple[int, int, DeviceSpec]], memory: np.ndarray) -> Devices:
    return Devices(
        node=np.array([row for row, _, _ in specs], dtype=np.int64),
        index=np.array([place if spec.index is None else spec.index for _, place, spec in specs], dtype=np.int64),
        uuids=tuple(f"GPU-{row}-{place}" if spec.uuid is None else spec.uuid for row, place, spec in specs),
        parents=tuple(spec.parent for _, _, spec in specs),
        instances=np.array([spec.instance for _, _, spec in specs], dtype=np.int64),
        models=tuple(spec.model for _, _, spec in specs),
        families=tuple(spec.family for _, _, spec in specs),
        mig_profiles=tuple(spec.mig_profile for _, _, spec in specs),
        memory_bytes=memory,
        memory_exact=np.array([spec.exact for _, _, spec in specs], dtype=np.bool_),
        handed_out_bytes=np.array([_bytes(spec.handed_out) for _, _, spec in specs], dtype=np.float64),
        health=np.array([spec.health for _, _, spec in specs], dtype=np.int64),
        cordoned=np.array([spec.cordoned for _, _, spec in specs], dtype=np.bool_),
        replicas=np.array([spec.replicas for _, _, spec in specs], dtype=np.float64),
        schemes=tuple(spec.scheme for _, _, spec in specs),
        sources=tuple(DeviceSource.LABELS for _ in specs),
        trusted=np.array([spec.trusted for _, _, spec in specs], dtype=np.bool_),
    )
