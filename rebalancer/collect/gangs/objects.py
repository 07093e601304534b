"""What the objects behind marks say: how many members a gang needs, whether it is elastic, how many failures its job may have.

An object is looked up by the system of the mark, namespace and name; where it was not or could not be listed, nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rebalancer.kube.wire_gangs import NativePodGroupWire, NativeWorkloadWire, PodGroupWire, TrainingJobWire
from rebalancer.kube.wire_workloads import JobWire
from rebalancer.state.gangs import GangSystem

GangKey = tuple[GangSystem, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GangObjects:
    """As they were listed; empty where no pod carries the mark, where the API has none of the kind, or where they may not be listed."""

    groups: Mapping[GangSystem, Sequence[PodGroupWire]] = field(default_factory=dict)
    native_groups: Sequence[NativePodGroupWire] = ()
    native_workloads: Sequence[NativeWorkloadWire] = ()
    training_jobs: Mapping[str, Sequence[TrainingJobWire]] = field(default_factory=dict)
    """By kind."""
    forbidden: tuple[str, ...] = ()
    """What may not be listed, as the API calls it."""


@dataclass(frozen=True, slots=True)
class Said:
    """``minimum``: 0 where all members are needed. ``backoff_limit``: NaN unknown."""

    minimum: int
    elastic: bool = False
    backoff_limit: float = math.nan


def said_by_objects(objects: GangObjects, jobs: Iterable[JobWire]) -> Mapping[GangKey, Said]:
    """``jobs``: those of the batch API, of which the indexed ones count."""
    found: dict[GangKey, Said] = {}
    for system, groups in objects.groups.items():
        for group in groups:
            if group.spec.min_member is not None:
                found[system, group.metadata.namespace, group.metadata.name] = Said(max(1, group.spec.min_member))
    found.update(_native(objects))
    for kind, trained in objects.training_jobs.items():
        found.update(((GangSystem.TRAINING, job.metadata.namespace, f"{kind}/{job.metadata.name}"), _training(job)) for job in trained)
    found.update(((GangSystem.INDEXED_JOB, job.metadata.namespace, job.metadata.name), _indexed(job)) for job in jobs)
    return found


def _native(objects: GangObjects) -> Iterator[tuple[GangKey, Said]]:
    for group in objects.native_groups:
        if group.spec.minimum:
            yield (GangSystem.KUBERNETES, group.metadata.namespace, group.metadata.name), Said(group.spec.minimum)
    for workload in objects.native_workloads:
        for template in workload.spec.pod_groups or ():
            if template.minimum:
                name = f"{workload.metadata.name}/{template.name}"
                yield (GangSystem.KUBERNETES, workload.metadata.namespace, name), Said(template.minimum)


def _training(job: TrainingJobWire) -> Said:
    """Without an elastic policy every worker is needed, whatever the scheduler was told to wait for."""
    run, elastic = job.spec.run_policy, job.spec.elastic_policy
    limit = math.nan if run is None or run.backoff_limit is None else float(run.backoff_limit)
    if elastic is None:
        return Said(0, backoff_limit=limit)
    return Said(max(1, elastic.min_replicas or 1), elastic=True, backoff_limit=limit)


def _indexed(job: JobWire) -> Said:
    """All at once and each with a number: they look for each other by it. Not so where a number may fail by itself."""
    spec = job.spec
    together = spec.completion_mode == "Indexed" and spec.backoff_limit_per_index is None
    at_once = spec.parallelism is not None and spec.parallelism == spec.completions and spec.parallelism > 1
    return Said(0 if together and at_once else 1)
