"""The workload table: the root owners that have pods, in the order in which their first pod appears, and who belongs to whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.owners import Owners, Root
from rebalancer.collect.pod_columns import Number, PodColumns, rows_in_use
from rebalancer.kube.wire import AutoscalerWire
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.tables import WorkloadRef, Workloads


@dataclass(frozen=True, slots=True)
class Ownership:
    """``workload``, ``controller`` (pods,): rows, -1 for a bare pod."""

    workload: IntArray
    controller: IntArray
    roots: tuple[Root, ...]
    controllers: tuple[str, ...]

    def root(self, pod: int) -> Root | None:
        row = int(self.workload[pod])
        return None if row < 0 else self.roots[row]


def ownership(pods: PodColumns, owners: Owners) -> Ownership:
    """Each controller is looked up once, by its first pod."""
    in_use = rows_in_use(pods.numbers[Number.OWNER], 1 + int(pods.numbers[Number.OWNER].max(initial=-1)))
    rows: dict[str, int] = {}
    roots: list[Root] = []
    workload_of: list[int] = []
    controllers: list[str] = []
    for pod in in_use.first.tolist():
        owner = pods.owners[pod]
        if owner is None:
            raise AssertionError("a pod with the number of an owner has that owner")
        root = owners.root(owner, namespace=pods.namespaces[pod])
        row = rows.setdefault(root.uid, len(roots))
        if row == len(roots):
            roots.append(root)
        workload_of.append(row)
        controllers.append(owner.uid)
    return Ownership(
        workload=np.array([*workload_of, -1], dtype=np.int64)[in_use.rows],
        controller=in_use.rows,
        roots=tuple(roots),
        controllers=tuple(controllers),
    )


def build_workloads(owned: Ownership, autoscalers: Iterable[AutoscalerWire], *, pod_ready: BoolArray, pod_counts: BoolArray) -> Workloads:
    """``pod_ready``, ``pod_counts`` (pods,): Ready; running and not on its way out. For kinds whose status is not read."""
    roots = owned.roots
    members = (owned.workload >= 0) & pod_ready & pod_counts
    ready_pods = np.bincount(owned.workload[members], minlength=len(roots))
    ready = [float(ready_pods[row]) if root.ready is None else root.ready for row, root in enumerate(roots)]
    return Workloads(
        refs=tuple(root.ref for root in roots),
        uids=tuple(root.uid for root in roots),
        replicas=np.array([root.replicas for root in roots], dtype=np.float64),
        ready=np.array(ready, dtype=np.float64),
        rollout=tuple(root.rollout for root in roots),
        scaled_at=_scaled_at([root.ref for root in roots], autoscalers),
        annotations=tuple(root.annotations for root in roots),
        jobs=tuple(root.job for root in roots),
        ordered=np.array([root.ordered for root in roots], dtype=np.bool_),
    )


def _scaled_at(refs: Sequence[WorkloadRef], autoscalers: Iterable[AutoscalerWire]) -> FloatArray:
    """(workloads,): the latest lastScaleTime of the autoscalers that name the workload; NaN never or none."""
    latest: dict[WorkloadRef, float] = {}
    for wire in autoscalers:
        if wire.status.last_scale_time is None:
            continue
        target = WorkloadRef(wire.spec.scale_target_ref.kind, wire.metadata.namespace, wire.spec.scale_target_ref.name)
        latest[target] = max(wire.status.last_scale_time.timestamp(), latest.get(target, 0.0))
    return np.array([latest.get(ref, np.nan) for ref in refs], dtype=np.float64)
