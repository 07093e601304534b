"""What labels say of the NVIDIA devices of a node: those of GPU feature discovery, else those that GKE puts on its nodes.

``nvidia.com/gpu.replicas`` is the number of replicas of *one* device: 1 unshared, 0 where sharing is switched off. Sharing is per node. A
product's name says ``-SHARED`` when its replicas have the plain name, and ``-MIG-<profile>`` under the MIG strategy ``single``. The memory
is that of one device in MiB, taken from the first: a node of unequal devices does not say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.gpu.meaning import WHOLE_DEVICE, PlainUnit
from rebalancer.gpu.unreadable import Unreadable, digits, shown
from rebalancer.state.gpu import MIB, UNKNOWN, Scheme

COUNT, MEMORY, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.product"
REPLICAS, STRATEGY, MIG_STRATEGY = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy", "nvidia.com/mig.strategy"
GKE_MODEL, GKE_COUNT = "cloud.google.com/gke-accelerator", "cloud.google.com/gke-accelerator-count"
GKE_STRATEGY, GKE_REPLICAS = "cloud.google.com/gke-gpu-sharing-strategy", "cloud.google.com/gke-max-shared-clients-per-gpu"
GKE_PROFILE = "cloud.google.com/gke-gpu-partition-size"
_SHARED_SUFFIX = "-SHARED"
_MIG_SUFFIX = re.compile(r"-MIG-([0-9a-z.+]+)$")
_STRATEGIES = {
    "time-slicing": Scheme.TIME_SLICING,
    "time-sharing": Scheme.TIME_SLICING,
    "mps": Scheme.MPS,
    "none": Scheme.PLAIN,
    "": Scheme.SHARED,
}


@dataclass(frozen=True, slots=True)
class NvidiaLabels:
    """``count``: devices (MIG instances under strategy single), None where no label says; ``mixed``: MIG instances have own resources."""

    unit: PlainUnit = WHOLE_DEVICE
    count: int | None = None
    model: str = ""
    memory_bytes: float = UNKNOWN
    mixed: bool = False


NO_LABELS = NvidiaLabels()


def read_labels(labels: Mapping[str, str]) -> NvidiaLabels:
    """`NO_LABELS` where nobody has labelled the node. Raises Unreadable that names the label."""
    if COUNT in labels or PRODUCT in labels or REPLICAS in labels:
        return _of_discovery(labels)
    return _of_gke(labels) if GKE_MODEL in labels else NO_LABELS


def number_of(labels: Mapping[str, str], name: str) -> int | None:
    text = labels.get(name)
    return None if text is None else digits(f"label {name}", text)


def sharing_unit(*, strategy: str, replicas: int | None, profile: str, names: str) -> PlainUnit:
    """``names``: of the label of the strategy, for a sentence. Raises Unreadable for a strategy that nobody knows."""
    scheme = _STRATEGIES.get(strategy)
    if scheme is None:
        raise Unreadable(f"label {names} is {shown(strategy)}, which is no way of sharing")
    unshared = PlainUnit(scheme=Scheme.MIG if profile else Scheme.PLAIN, profile=profile)
    if replicas is not None and replicas <= 1:
        return unshared
    if replicas is None:
        return unshared if scheme in (Scheme.PLAIN, Scheme.SHARED) else PlainUnit(scheme=scheme, replicas=UNKNOWN, profile=profile)
    return PlainUnit(scheme=Scheme.SHARED if scheme is Scheme.PLAIN else scheme, replicas=float(replicas), profile=profile)


def _of_discovery(labels: Mapping[str, str]) -> NvidiaLabels:
    product = labels.get(PRODUCT, "")
    mig = _MIG_SUFFIX.search(product.removesuffix(_SHARED_SUFFIX))
    memory = number_of(labels, MEMORY)
    return NvidiaLabels(
        unit=sharing_unit(
            strategy=labels.get(STRATEGY, ""), replicas=number_of(labels, REPLICAS), profile=mig.group(1) if mig else "", names=STRATEGY
        ),
        count=number_of(labels, COUNT),
        model=plain_model(product),
        memory_bytes=memory * MIB if memory else UNKNOWN,
        mixed=labels.get(MIG_STRATEGY) == "mixed",
    )


def plain_model(product: str) -> str:
    """The product without what sharing and MIG add to it."""
    return _MIG_SUFFIX.sub("", product.removesuffix(_SHARED_SUFFIX))


def _of_gke(labels: Mapping[str, str]) -> NvidiaLabels:
    profile = labels.get(GKE_PROFILE, "")
    return NvidiaLabels(
        unit=sharing_unit(
            strategy=labels.get(GKE_STRATEGY, ""), replicas=number_of(labels, GKE_REPLICAS), profile=profile, names=GKE_STRATEGY
        ),
        count=None if profile else number_of(labels, GKE_COUNT),
        model=labels[GKE_MODEL],
    )
