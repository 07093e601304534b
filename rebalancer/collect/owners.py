"""From a pod to the workload that people know: its root owner, with what the planner must know of it.

A pod's controller is climbed to the first kind that says how many replicas it wants: ReplicaSet to Deployment, and no further. A Job
stays the workload even when a CronJob made it, because its back-off limit is its own; the CronJob lends it its annotations. An owner of a
kind that is not listed (PyTorchJob, Rollout, CloneSet, ...) is the workload itself: how many replicas it wants stays unknown, how many are
ready is counted from its pods. Owners are found by uid, so that kinds of the same name in other API groups are never mistaken for the
built-in ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from rebalancer.collect import rollouts
from rebalancer.collect.annotations import NO_ANNOTATIONS, annotations_of
from rebalancer.collect.classes import class_of_kinds
from rebalancer.collect.cluster import ClusterObjects
from rebalancer.collect.jobs import job_rules, wanted
from rebalancer.kube.wire import MetaWire, OwnerWire
from rebalancer.kube.wire_workloads import DaemonSetWire, DeploymentWire, JobWire, ReplicaSetWire, StatefulSetWire
from rebalancer.state.tables import JobRules, PodClass, WorkloadRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """One workload. ``ready`` None: to be counted from its pods. ``owner_class``: what its kinds say its pods are for."""

    ref: WorkloadRef
    uid: str
    owner_class: PodClass
    replicas: float = np.nan
    ready: float | None = None
    rollout: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    job: JobRules | None = None
    ordered: bool = False


class Owners:
    """All owners of one cycle by uid; `root` answers from a cache after the first pod of a controller."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._replica_sets = {wire.metadata.uid: wire for wire in objects.replica_sets}
        self._deployments = {wire.metadata.uid: wire for wire in objects.deployments}
        self._stateful_sets = {wire.metadata.uid: wire for wire in objects.stateful_sets}
        self._daemon_sets = {wire.metadata.uid: wire for wire in objects.daemon_sets}
        self._jobs = {wire.metadata.uid: wire for wire in objects.jobs}
        self._cron_jobs = {wire.metadata.uid: wire for wire in objects.cron_jobs}
        self._roots: dict[str, Root] = {}

    def root(self, owner: OwnerWire, *, namespace: str) -> Root:
        """The workload behind a pod's direct controller."""
        found = self._roots.get(owner.uid)
        if found is None:
            found = self._roots[owner.uid] = self._climb(owner, namespace)
        return found

    def _climb(self, owner: OwnerWire, namespace: str) -> Root:
        replica_set = self._replica_sets.get(owner.uid)
        if replica_set is not None:
            above = replica_set.metadata.controller
            if above is None:
                return _replica_set_root(replica_set)
            return self._roots.setdefault(above.uid, self._listed(above, namespace))
        return self._listed(owner, namespace)

    def _listed(self, owner: OwnerWire, namespace: str) -> Root:
        if (deployment := self._deployments.get(owner.uid)) is not None:
            return _deployment_root(deployment)
        if (stateful_set := self._stateful_sets.get(owner.uid)) is not None:
            return _stateful_set_root(stateful_set)
        if (daemon_set := self._daemon_sets.get(owner.uid)) is not None:
            return _daemon_set_root(daemon_set)
        if (job := self._jobs.get(owner.uid)) is not None:
            return self._job_root(job)
        return Root(
            ref=WorkloadRef(owner.kind, namespace, owner.name), uid=owner.uid, owner_class=class_of_kinds((owner.kind,)), ready=None
        )

    def _job_root(self, job: JobWire) -> Root:
        above = job.metadata.controller
        cron_job = self._cron_jobs.get(above.uid) if above is not None else None
        inherited = annotations_of(cron_job.metadata.annotations) if cron_job is not None else NO_ANNOTATIONS
        return _root("Job", job.metadata)(
            replicas=wanted(job),
            ready=np.nan if job.status.ready is None else float(job.status.ready),
            job=job_rules(job),
            annotations={**inherited, **annotations_of(job.metadata.annotations)},
        )


def _root(kind: str, metadata: MetaWire) -> partial[Root]:
    """A Root of a listed kind; the owner of the owner, when there is one, has the first say about the class."""
    above = metadata.controller
    return partial(
        Root,
        ref=WorkloadRef(kind, metadata.namespace, metadata.name),
        uid=metadata.uid,
        owner_class=class_of_kinds((above.kind, kind) if above is not None else (kind,)),
        annotations=annotations_of(metadata.annotations),
    )


def _reported(count: int | None, observed: int | None) -> float:
    """A status counter: what it says, zero when it is left out by a controller that has looked, unknown when none has."""
    if count is not None:
        return float(count)
    return np.nan if observed is None else 0.0


def _wanted(replicas: int | None) -> float:
    return 1.0 if replicas is None else float(replicas)


def _replica_set_root(wire: ReplicaSetWire) -> Root:
    status = wire.status
    return _root("ReplicaSet", wire.metadata)(
        replicas=np.nan if wire.spec is None else _wanted(wire.spec.replicas),
        ready=None if wire.spec is None or status is None else _reported(status.ready_replicas, status.observed_generation),
        rollout=rollouts.replica_set_rollout(wire),
    )


def _deployment_root(wire: DeploymentWire) -> Root:
    return _root("Deployment", wire.metadata)(
        replicas=_wanted(wire.spec.replicas),
        ready=_reported(wire.status.ready_replicas, wire.status.observed_generation),
        rollout=rollouts.deployment_rollout(wire),
    )


def _stateful_set_root(wire: StatefulSetWire) -> Root:
    return _root("StatefulSet", wire.metadata)(
        replicas=_wanted(wire.spec.replicas),
        ready=_reported(wire.status.ready_replicas, wire.status.observed_generation),
        rollout=rollouts.stateful_set_rollout(wire),
        ordered=wire.spec.pod_management_policy in (None, "OrderedReady"),
    )


def _daemon_set_root(wire: DaemonSetWire) -> Root:
    wanted_nodes = wire.status.desired_number_scheduled
    return _root("DaemonSet", wire.metadata)(
        replicas=np.nan if wanted_nodes is None else float(wanted_nodes),
        ready=_reported(wire.status.number_ready, wire.status.observed_generation),
        rollout=rollouts.daemon_set_rollout(wire),
    )
