"""The requests of pods as matrices, each distinct combination of spec and resize status computed once.

Turns wire structs into the plain values that `state.requests` computes with; no rule of Kubernetes lives here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from rebalancer.collect.gpu.pod_clues import extended_containers
from rebalancer.gpu.clues import ContainerClues
from rebalancer.kube.wire_pods import ContainerStatusWire, ContainerWire, PodWire, ResourcesWire
from rebalancer.state.arrays import FloatArray, IntArray
from rebalancer.state.requests import (
    CPU,
    MEMORY,
    Amounts,
    ContainerRequest,
    PodRequest,
    amounts,
    in_units,
    incoming_request,
    request,
    scored_incoming,
    scored_request,
)

SCORED = (CPU, MEMORY)
_PODS = "pods"


@dataclass(frozen=True, slots=True)
class _Figures:
    request: Amounts
    incoming: Amounts
    scored: Amounts
    scored_incoming: Amounts


@dataclass(frozen=True, slots=True)
class RequestMatrices:
    """``request`` and ``incoming`` (pods, resources), the column ``pods`` is 1; ``scored`` and ``scored_incoming`` (pods, 2)."""

    request: FloatArray
    incoming: FloatArray
    scored: FloatArray
    scored_incoming: FloatArray


class RequestTable:
    """Collects distinct requests; `row` gives each pod the number of its own, the matrices spread them over pods."""

    def __init__(self) -> None:
        self._figures: list[_Figures] = []
        self.extended: list[tuple[ContainerClues, ...]] = []
        """By row: the containers of a pod of which one asks for an extended resource; empty for the others."""
        self._rows: dict[bytes, int] = {}
        self._encode = msgspec.json.Encoder().encode

    def __len__(self) -> int:
        return len(self._figures)

    def names(self, rows: IntArray) -> frozenset[str]:
        """Every resource that some pod requests; ``rows`` (pods,)."""
        figures = [self._figures[row] for row in np.unique(rows).tolist()]
        return frozenset(name for each in figures for amounts_of in (each.request, each.incoming) for name in amounts_of)

    def row(self, pod: PodWire) -> int:
        """Raises ValueError when a quantity cannot be read."""
        spec, status = pod.spec, pod.status
        infeasible = resize_is_infeasible(pod)
        key = self._encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                _resized(status.container_statuses),
                _resized(status.init_container_statuses),
                status.resources,
                status.allocated_resources,
                infeasible,
            )
        )
        found = self._rows.get(key)
        if found is None:
            value = pod_request(pod, infeasible=infeasible)
            figures = _Figures(request(value), incoming_request(value), scored_request(value), scored_incoming(value))
            found = self._rows[key] = len(self._figures)
            self._figures.append(figures)
            self.extended.append(extended_containers(spec))
        return found

    def matrices(self, rows: IntArray, resources: Sequence[str]) -> RequestMatrices:
        used, row_of = np.unique(rows, return_inverse=True)
        figures, count = [self._figures[row] for row in used.tolist()], len(used)
        bound = _matrix((each.request for each in figures), count, resources)
        incoming = _matrix((each.incoming for each in figures), count, resources)
        scored = _matrix((each.scored for each in figures), count, SCORED)
        coming = _matrix((each.scored_incoming for each in figures), count, SCORED)
        bound[:, list(resources).index(_PODS)] = incoming[:, list(resources).index(_PODS)] = 1.0
        return RequestMatrices(bound[row_of], incoming[row_of], scored[row_of], coming[row_of])


def _matrix(distinct: Iterable[Amounts], count: int, names: Sequence[str]) -> FloatArray:
    column = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((count, len(names)))
    for row, each in enumerate(distinct):
        for name, value in each.items():
            matrix[row, column[name]] = in_units(name, value)
    return matrix


def _resized(statuses: Iterable[ContainerStatusWire] | None) -> object:
    """What of them may follow from a resize; which devices a container was given is its own, and would make every pod a distinct one."""
    return tuple((each.name, each.allocated_resources, each.resources) for each in statuses or () if each.resources is not None)


def resize_is_infeasible(pod: PodWire) -> bool:
    """Condition PodResizePending says that the kubelet can never grant the spec."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def pod_request(pod: PodWire, *, infeasible: bool) -> PodRequest:
    """The plain value behind a pod. Raises ValueError when a quantity cannot be read."""
    spec, status = pod.spec, pod.status
    level = _requests(spec.resources)
    return PodRequest(
        containers=_containers(spec.containers, status.container_statuses),
        init_containers=_containers(spec.init_containers, status.init_container_statuses),
        overhead=amounts(spec.overhead),
        level=level,
        level_allocated=None if status.allocated_resources is None else amounts(status.allocated_resources),
        level_actual=_requests(status.resources) if level is not None else None,
        infeasible=infeasible,
    )


def _requests(resources: ResourcesWire | None) -> Amounts | None:
    return None if resources is None or resources.requests is None else amounts(resources.requests)


def _containers(wires: Iterable[ContainerWire] | None, statuses: Iterable[ContainerStatusWire] | None) -> tuple[ContainerRequest, ...]:
    status_of: Mapping[str, ContainerStatusWire] = {status.name: status for status in statuses or ()}
    return tuple(_container(wire, status_of.get(wire.name)) for wire in wires or ())


def _container(wire: ContainerWire, status: ContainerStatusWire | None) -> ContainerRequest:
    asked = amounts(wire.resources.requests) if wire.resources is not None else {}
    sidecar = wire.restart_policy == "Always"
    if status is None or status.resources is None:
        return ContainerRequest(request=asked, sidecar=sidecar)
    return ContainerRequest(
        request=asked,
        sidecar=sidecar,
        allocated=None if status.allocated_resources is None else amounts(status.allocated_resources),
        actual=amounts(status.resources.requests),
    )
