"""How much of the free GPUs the pods of this cluster could not use: the measure of Weng et al., *Beware of Fragmentation: Scheduling
GPU-Sharing Workloads with Fragmentation Gradient Descent*, USENIX ATC 2023.

What is free is no good by itself: a sliver of a device, or a device without CPU beside it, is lost to pods that ask for more. So the free
part of a node is held against *typical pods*: the distinct asks of this cluster's own pods, weighed by how many ask so, the most frequent
until they make up 95 %. Of a node, a typical pod m cannot use

    all that is free      if its devices, or its CPU, do not suffice, or are not of the model that it asks for
    else the free parts of devices that are smaller than its share, or of another kind

and the node's fragmentation is the mean of that over the typical pods, in devices; the cluster's is the sum over nodes. Pods without GPUs
are left out, since they would call the GPUs of every node lost.

A device or node of which it is not known what is free takes no part: its value is NaN, and it is counted as unknown. So is a pod whose ask
is not one share of devices of one kind. What is free on devices that nobody is given for now, or on nodes that take no pods, is no room.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import Devices, Gpus, Health
from rebalancer.state.gpu import ANY_MODEL, Family, GpuAsk, ModelConstraint
from rebalancer.state.ledger import on_a_node
from rebalancer.state.tables import Phase

TYPICAL = 0.95
"""The most frequent asks, until they make up this part of the pods that ask."""
EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A distinct ask: so many devices of a kind, a share of each, with CPU beside them."""

    cpu_cores: float
    devices: float
    compute: float = math.nan
    """Share of each device's compute; NaN: not limited."""
    memory_share: float = math.nan
    memory_bytes: float = math.nan
    """On each device, instead of ``memory_share``."""
    family: Family = Family.NVIDIA
    mig_profile: str = ""
    model: ModelConstraint = ANY_MODEL

    def shares_of(self, device_bytes: FloatArray) -> FloatArray:
        """(devices,): the larger of its parts of compute and memory of each; NaN where neither is known."""
        memory = self.memory_share if self.memory_share == self.memory_share else self.memory_bytes / device_bytes
        shares: FloatArray = np.fmax(np.full(len(device_bytes), self.compute), memory)
        return shares


@dataclass(frozen=True, slots=True)
class TypicalPod:
    want: Want
    popularity: float
    """Part of the typical pods that ask so; together 1."""


@dataclass(frozen=True, slots=True)
class Free:
    """What is free to be asked for. ``share``: (devices,) of each device, 0 to 1, NaN unknown; ``cpu_cores``: (nodes,), NaN unknown."""

    share: FloatArray
    cpu_cores: FloatArray


@dataclass(frozen=True, slots=True)
class Fragmentation:
    typical: tuple[TypicalPod, ...]
    nodes: FloatArray
    """(nodes,) in devices; NaN for nodes without devices, and for those of which nothing is known."""
    free: FloatArray
    """(nodes,) free parts of devices, in devices; NaN alike."""
    unknown_devices: int
    unknown_pods: int
    """Pods that ask for GPUs in a way that is not held against anything."""

    @property
    def total(self) -> float:
        """Of the cluster, in devices; NaN where no pod asks for GPUs or nothing is known."""
        return _total(self.nodes)

    @property
    def total_free(self) -> float:
        return _total(self.free)


def fragmentation(state: ClusterState) -> Fragmentation:
    typical, unread = typical_pods(state)
    return fragmentation_of(state, free_of(state), typical, unknown_pods=unread)


def typical_pods(state: ClusterState, *, threshold: float = TYPICAL) -> tuple[tuple[TypicalPod, ...], int]:
    """Of the pods that are running or waiting, and how many of them were not read. Equally frequent ones in order of size."""
    gpus, cpu = state.gpus, _cpu(state)
    counts: Counter[Want] = Counter()
    unread = 0
    for pod, row in zip(gpus.pod.tolist(), gpus.ask.tolist(), strict=True):
        if state.pods.phase[pod] in (Phase.SUCCEEDED, Phase.FAILED):
            continue
        want = want_of(gpus.asks[row], cpu_cores=float(state.pods.request[pod, cpu]))
        if want is None:
            unread += 1
        else:
            counts[want] += 1
    return _most_frequent(counts, threshold), unread


def want_of(asks: Sequence[GpuAsk], *, cpu_cores: float) -> Want | None:
    """None where it is not known, or is not one share of devices of one kind."""
    first = asks[0]
    alike = all(
        ask.whole and first.whole and (ask.family, ask.mig_profile, ask.model) == (first.family, first.mig_profile, first.model)
        for ask in asks[1:]
    )
    devices = sum(ask.devices for ask in asks)
    sized = any(size == size for size in (first.compute, first.memory_share, first.memory_bytes))
    if not (alike and devices > 0 and sized and cpu_cores == cpu_cores):
        return None
    return Want(
        cpu_cores=cpu_cores,
        devices=devices,
        compute=_one_nan(first.compute),
        memory_share=_one_nan(first.memory_share),
        memory_bytes=_one_nan(first.memory_bytes),
        family=first.family,
        mig_profile=first.mig_profile,
        model=first.model,
    )


def _one_nan(value: float) -> float:
    """Equal wants are to be equal, and NaN equals itself only by identity."""
    return value if value == value else math.nan


def _most_frequent(counts: Counter[Want], threshold: float) -> tuple[TypicalPod, ...]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0].devices, item[0].cpu_cores, repr(item[0])))
    kept: list[tuple[Want, int]] = []
    covered, pods = 0, sum(counts.values())
    for want, count in ordered:
        if covered >= threshold * pods:
            break
        kept.append((want, count))
        covered += count
    return tuple(TypicalPod(want, count / covered) for want, count in kept)


def free_of(state: ClusterState) -> Free:
    """By what pods asked for, as their schedulers count it."""
    gpus, devices = state.gpus, state.gpus.devices
    held, count = gpus.held, len(gpus.devices)
    parts = held.memory_bytes / devices.memory_bytes[held.device]
    compute = np.bincount(held.device, weights=held.compute, minlength=count)  # NaN: not known of all that hold it
    memory = np.bincount(held.device, weights=parts, minlength=count)
    taken = np.fmax(compute, memory)
    taken[held.device[held.exclusive]] = 1.0
    share: FloatArray = np.maximum(0.0, 1.0 - taken)
    share[~devices.trusted] = np.nan
    _take_unplaced(state, share)
    closed = devices.cordoned | (devices.health == Health.UNHEALTHY) | (state.nodes.unschedulable | ~state.nodes.ready)[devices.node]
    share[closed & ~np.isnan(share)] = 0.0
    return Free(share, _cpu_free(state))


def _take_unplaced(state: ClusterState, share: FloatArray) -> None:
    """Pods that are on some devices of their node: whole devices are counted off where all of the node are alike, since it does not
    matter then which; else nothing is known of the node."""
    gpus, devices = state.gpus, state.gpus.devices
    wanted: dict[int, float] = {}
    for pod in gpus.unplaced.tolist():
        asks = gpus.asks_of(pod)
        # what it is known to hold of several devices is in the pairs already, so that it cannot be counted off
        whole = bool(asks) and all(ask.whole for ask in asks) and not (gpus.held.pod == pod).any()
        node = int(state.pods.node[pod])
        wanted[node] = wanted.get(node, 0.0) + (sum(ask.devices for ask in asks) if whole else math.nan)
    for node, number in wanted.items():
        rows = devices.of_node(node)
        own = share[rows]
        empty = np.flatnonzero(own >= 1.0 - EPSILON)
        if number <= len(empty) and _alike(devices, rows):
            share[rows.start + empty[: math.ceil(number)]] = 0.0
        else:
            share[rows] = np.nan


def _alike(devices: Devices, rows: slice) -> bool:
    return len({(devices.models[row], devices.mig_profiles[row], devices.families[row]) for row in range(rows.start, rows.stop)}) == 1


def _cpu(state: ClusterState) -> int:
    return state.resources.index("cpu")


def _cpu_free(state: ClusterState) -> FloatArray:
    cpu, rows = _cpu(state), np.flatnonzero(on_a_node(state))
    requested = np.bincount(state.pods.node[rows], weights=state.pods.request[rows, cpu], minlength=len(state.nodes.names))
    return np.asarray(state.nodes.allocatable[:, cpu] - requested, dtype=np.float64)


def fragmentation_of(state: ClusterState, free: Free, typical: Sequence[TypicalPod], *, unknown_pods: int = 0) -> Fragmentation:
    """The same for what would be free."""
    devices, nodes = state.gpus.devices, len(state.nodes.names)
    node = devices.node
    admitted, decided = _admitted(state.gpus, typical)
    share = np.where(np.isnan(free.cpu_cores[node]) | ~decided, np.nan, free.share)
    known = ~np.isnan(share)
    given = np.where(known, share, 0.0)
    rest = np.bincount(node, weights=given, minlength=nodes)
    lost = np.zeros(nodes)
    for each, admits in zip(typical, admitted, strict=True):
        want = each.want
        asked = want.shares_of(devices.memory_bytes)
        useful = admits & known & (given >= asked - EPSILON) & (given > 0)
        suffices = np.bincount(node[useful], minlength=nodes) >= want.devices
        suffices &= np.nan_to_num(free.cpu_cores, nan=-np.inf) >= want.cpu_cores - EPSILON
        slivers = np.bincount(node, weights=np.where(useful, 0.0, given), minlength=nodes)
        lost += each.popularity * np.where(suffices, slivers, rest)
    seen = np.bincount(node[known], minlength=nodes) > 0
    return Fragmentation(
        typical=tuple(typical),
        nodes=np.where(seen & bool(typical), lost, np.nan),
        free=np.where(seen, rest, np.nan),
        unknown_devices=int((~known).sum()),
        unknown_pods=unknown_pods,
    )


def _admitted(gpus: Gpus, typical: Sequence[TypicalPod]) -> tuple[list[BoolArray], BoolArray]:
    """For each typical pod, (devices,): such a device will do. And (devices,): that can be said of it for all of them."""
    devices = gpus.devices
    decided = np.ones(len(devices), dtype=np.bool_)
    kinds = list(zip(devices.families, devices.mig_profiles, devices.models, strict=True))
    found = []
    for each in typical:
        want = each.want
        if want.model.uuids or want.model.not_uuids:
            verdicts = [_will_do(want, kind, uuid) for kind, uuid in zip(kinds, devices.uuids, strict=True)]
        else:
            of_kind = {kind: _will_do(want, kind, "") for kind in set(kinds)}
            verdicts = [of_kind[kind] for kind in kinds]
        asked = want.shares_of(devices.memory_bytes)
        decided &= np.array([verdict is not None for verdict in verdicts], dtype=np.bool_)
        admits = np.array([verdict is True for verdict in verdicts], dtype=np.bool_)
        decided &= ~(admits & np.isnan(asked))
        found.append(admits)
    return found, decided


def _will_do(want: Want, kind: tuple[Family, str, str], uuid: str) -> bool | None:
    family, profile, model = kind
    return want.model.admits(model=model, uuid=uuid) if (family, profile) == (want.family, want.mig_profile) else False


def _total(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.sum()) if len(known) else math.nan
