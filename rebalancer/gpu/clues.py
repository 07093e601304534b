"""Everything that GPU rules read of a pod, as plain values that compare and hash: equal clues mean equal asks, so each is read once.

Only extended resources (names with a slash) are in here; cpu and memory are somebody else's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rebalancer.state.gpu import UNKNOWN

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""A mapping as sorted pairs, which hash."""

ASK_ANNOTATIONS = frozenset(
    (
        "gpu-fraction",
        "gpu-memory",
        "gpu-fraction-num-devices",
        "gpu-fraction-container-name",
        "run.ai/reserve_for_gpu_index",
        "nvidia.com/use-gputype",
        "nvidia.com/nouse-gputype",
        "nvidia.com/use-gpuuuid",
        "nvidia.com/nouse-gpuuuid",
        "tencent.com/vcuda-core-limit",
    )
)
"""Annotations of pods that change what is asked for."""
MODEL_LABELS = frozenset(
    (
        "nvidia.com/gpu.product",
        "amd.com/gpu.product-name",
        "node.koordinator.sh/gpu-model",
        "gaia.tencent.com/gpu-model",
        "cloud.google.com/gke-accelerator",
    )
)
"""Labels of nodes that name a model; a node selector on one names the model that a pod wants."""


@dataclass(frozen=True, slots=True)
class ContainerClues:
    """``limits`` and ``requests``: extended resources and quantities. ``init``: an init container that ends before the others begin;
    sidecars are none."""

    name: str
    limits: Pairs = ()
    requests: Pairs = ()
    init: bool = False

    def asked(self, name: str) -> str | None:
        """The limit, else the request."""
        return _find(self.limits, name) or _find(self.requests, name)

    def limit(self, name: str) -> str | None:
        return _find(self.limits, name)

    @property
    def names(self) -> tuple[str, ...]:
        """Every resource, in order, each once."""
        return tuple(dict.fromkeys(name for name, _ in (*self.limits, *self.requests)))


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """One device request of a resource claim of a pod. ``container``: the only one that uses the claim, else empty.

    ``device_class`` empty: the claim is not there, so it may be for anything. ``count``: devices; NaN when all of a node are wanted, or
    the first of several alternatives that fits. ``memory_bytes``: the least capacity that is asked for, NaN none.
    """

    claim: str
    request: str
    device_class: str
    count: float = 1.0
    memory_bytes: float = UNKNOWN
    container: str = ""


@dataclass(frozen=True, slots=True)
class PodClues:
    """``annotations``: of `ASK_ANNOTATIONS`; ``selector``: of `MODEL_LABELS`; ``claims``: the device requests of its resource claims."""

    namespace: str = ""
    containers: tuple[ContainerClues, ...] = ()
    annotations: Pairs = ()
    selector: Pairs = ()
    claims: tuple[ClaimRequest, ...] = field(default=())

    def annotation(self, name: str) -> str | None:
        return _find(self.annotations, name)

    def asking(self) -> tuple[ContainerClues, ...]:
        """The containers whose asks count: those that run, and init containers only where no other asks for any extended resource.

        The device manager lets a container have the devices that an init container has given back, so the two never add up.
        """
        running = tuple(each for each in self.containers if not each.init)
        return running if any(each.names for each in running) else self.containers


def pairs(mapping: Mapping[str, str] | None, keys: Iterable[str] | None = None) -> Pairs:
    """The mapping, or those of its keys, as sorted pairs."""
    if not mapping:
        return ()
    wanted = mapping.keys() if keys is None else mapping.keys() & set(keys)
    return tuple((key, mapping[key]) for key in sorted(wanted))


def _find(of: Pairs, name: str) -> str | None:
    for key, value in of:
        if key == name:
            return value
    return None
