"""What a pod asks for, as kube-scheduler computes it from a spec (and, for a pod that is being resized, from its status).

Amounts are whole numbers, as in the scheduler: CPU in millicores, everything else in its own unit, both rounded up, so that sums are exact.
Four figures, because the scheduler itself uses four:

- `request`: what a bound pod takes from its node. While an in-place resize is under way that is the largest of what the spec wants,
  what the kubelet has allocated and what runs; when the resize is infeasible, the spec does not count.
- `incoming_request`: the spec alone, which is what a replacement will ask for.
- `scored_request`: `request` with 100 millicores and 200 MiB for each container that names no CPU or no memory, as the scoring sees it.
- `scored_incoming`: what LeastAllocated adds for the pod that comes: containers with those defaults. It leaves pod-level requests out.

Source: ``k8s.io/component-helpers/resource`` and kube-scheduler's NodeResourcesFit, 1.36.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from rebalancer.units import parse_quantity

Amounts: TypeAlias = Mapping[str, int]
"""resource name -> millicores of cpu, whole units of everything else."""

NOTHING: Amounts = MappingProxyType({})
CPU = "cpu"
MEMORY = "memory"
DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
_DEFAULTS: Amounts = MappingProxyType({CPU: DEFAULT_CPU_MILLI, MEMORY: DEFAULT_MEMORY_BYTES})
_NATIVE = frozenset((CPU, MEMORY, "ephemeral-storage"))


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """One container. ``sidecar``: an init container with restartPolicy Always. ``allocated`` and ``actual`` come from its status and are
    None when the status does not speak of resources."""

    request: Amounts = field(default_factory=lambda: NOTHING)
    sidecar: bool = False
    allocated: Amounts | None = None
    actual: Amounts | None = None


@dataclass(frozen=True, slots=True)
class PodRequest:
    """Everything in a pod that its request follows from. ``level`` is ``spec.resources.requests`` (None: not set), ``level_allocated``
    and ``level_actual`` its status. ``infeasible``: condition PodResizePending with reason Infeasible."""

    containers: tuple[ContainerRequest, ...]
    init_containers: tuple[ContainerRequest, ...] = ()
    overhead: Amounts = field(default_factory=lambda: NOTHING)
    level: Amounts | None = None
    level_allocated: Amounts | None = None
    level_actual: Amounts | None = None
    infeasible: bool = False


def counted(name: str) -> bool:
    """Whether the scheduler counts a resource of this name: native ones, extended ones, huge pages, attachable volumes."""
    return name in _NATIVE or "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


@lru_cache(maxsize=65536)
def amount(name: str, quantity: str) -> int:
    """A quantity as a whole amount, rounded up. Raises ValueError that names the text when it is not a quantity."""
    value = parse_quantity(quantity) * (1000 if name == CPU else 1)
    nearest = round(value)
    # Binary fractions make 16.1 cores 16100.000000000002 millicores, which must not be rounded up to 16101.
    return nearest if abs(value - nearest) <= 1e-9 * max(1.0, abs(value)) else math.ceil(value)


def amounts(quantities: Mapping[str, str] | None) -> Amounts:
    """The counted names of a ``requests`` or ``allocatable`` mapping. Raises ValueError as `amount`."""
    if not quantities:
        return NOTHING
    return {name: amount(name, quantity) for name, quantity in quantities.items() if counted(name)}


def in_units(name: str, value: int) -> float:
    """An amount in the state's units: cores for cpu, unchanged for the rest."""
    return value / 1000 if name == CPU else float(value)


def request(pod: PodRequest) -> Amounts:
    """What a bound pod takes from its node."""
    return _effective(pod, resize=True, defaults=False)


def incoming_request(pod: PodRequest) -> Amounts:
    """What a new pod of this spec will ask for."""
    return _effective(pod, resize=False, defaults=False)


def scored_request(pod: PodRequest) -> Amounts:
    """cpu and memory of a bound pod with the scheduler's defaults for containers that request nothing.

    With pod-level requests a default is used only for what is missing from the request of the whole pod.
    """
    with_defaults = _effective(pod, resize=True, defaults=True)
    final = request(pod) if pod.level is not None else NOTHING
    return {name: final.get(name, with_defaults.get(name, 0)) for name in _DEFAULTS}


def scored_incoming(pod: PodRequest) -> Amounts:
    """cpu and memory by which LeastAllocated scores a new pod of this spec.

    Its scorer is made without the switch for pod-level requests (noderesources/fit.go), so it alone sees the containers only.
    """
    found = _effective(replace(pod, level=None), resize=False, defaults=True)
    return {name: found.get(name, 0) for name in _DEFAULTS}


def _effective(pod: PodRequest, *, resize: bool, defaults: bool) -> Amounts:
    """Sum of the containers and sidecars, or the peak while starting if that is larger; pod-level values instead; overhead on top."""

    def own(container: ContainerRequest, *, follows_status: bool) -> Amounts:
        value = container.request
        if resize and follows_status:
            value = _resized(container.request, container.allocated, container.actual, infeasible=pod.infeasible)
        return {**_DEFAULTS, **value} if defaults else value

    total: dict[str, int] = {}
    _add(total, (own(container, follows_status=True) for container in pod.containers))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.init_containers:
        value = own(container, follows_status=container.sidecar)
        if container.sidecar:
            _add(total, (value,))
            _add(sidecars, (value,))
            _raise(peak, sidecars)
        else:
            candidate = dict(sidecars)
            _add(candidate, (value,))
            _raise(peak, candidate)
    _raise(total, peak)
    if pod.level is not None:
        level = pod.level
        if resize:
            level = _resized(level, pod.level_allocated, pod.level_actual, infeasible=pod.infeasible)
        total.update((name, value) for name, value in level.items() if name in (CPU, MEMORY) or name.startswith("hugepages-"))
    _add(total, (pod.overhead,))
    return total


def _resized(spec: Amounts, allocated: Amounts | None, actual: Amounts | None, *, infeasible: bool) -> Amounts:
    """The rule for a resize that may be under way; the spec where the status does not speak of resources (``actual`` None)."""
    if actual is None:
        return spec
    result = dict(actual)
    _raise(result, allocated or NOTHING)
    if not infeasible:
        _raise(result, spec)
    return result


def _add(total: dict[str, int], parts: Iterable[Amounts]) -> None:
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value


def _raise(total: dict[str, int], floor: Amounts) -> None:
    for name, value in floor.items():
        total[name] = max(value, total.get(name, value))
