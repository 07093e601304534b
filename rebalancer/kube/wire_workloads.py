"""What the owners of pods look like on the wire: how many replicas they want, have and have renewed. Pod templates are skipped.

Status counters that are zero are absent (``omitempty``), except those of DaemonSets; ``observedGeneration`` tells a controller that has
not looked yet from one that counted zero.
"""

from __future__ import annotations

import msgspec

from rebalancer.kube.wire import MetaWire


class ReplicasSpecWire(msgspec.Struct, frozen=True, gc=False):
    replicas: int | None = None


class ReplicaSetStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    ready_replicas: int | None = None
    observed_generation: int | None = None


class ReplicaSetWire(msgspec.Struct, frozen=True, gc=False):
    """``spec`` is None when only the metadata was asked for."""

    metadata: MetaWire
    spec: ReplicasSpecWire | None = None
    status: ReplicaSetStatusWire | None = None


class DeploymentStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    replicas: int | None = None
    updated_replicas: int | None = None
    ready_replicas: int | None = None
    observed_generation: int | None = None


class DeploymentWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: ReplicasSpecWire = ReplicasSpecWire()
    status: DeploymentStatusWire = DeploymentStatusWire()


class RollingUpdateWire(msgspec.Struct, frozen=True, gc=False):
    partition: int | None = None


class UpdateStrategyWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str | None = None
    rolling_update: RollingUpdateWire | None = None


class StatefulSetSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    replicas: int | None = None
    pod_management_policy: str | None = None
    update_strategy: UpdateStrategyWire | None = None


class StatefulSetStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    ready_replicas: int | None = None
    updated_replicas: int | None = None
    current_revision: str | None = None
    update_revision: str | None = None
    observed_generation: int | None = None


class StatefulSetWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: StatefulSetSpecWire = StatefulSetSpecWire()
    status: StatefulSetStatusWire = StatefulSetStatusWire()


class DaemonSetStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    desired_number_scheduled: int | None = None
    number_ready: int | None = None
    updated_number_scheduled: int | None = None
    observed_generation: int | None = None


class DaemonSetWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    status: DaemonSetStatusWire = DaemonSetStatusWire()


class ExitCodesWire(msgspec.Struct, frozen=True, gc=False):
    operator: str = ""
    values: tuple[int, ...] | None = None


class FailureConditionWire(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str | None = None


class FailureRuleWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    action: str = ""
    on_exit_codes: ExitCodesWire | None = None
    on_pod_conditions: tuple[FailureConditionWire, ...] | None = None


class FailurePolicyWire(msgspec.Struct, frozen=True, gc=False):
    rules: tuple[FailureRuleWire, ...] | None = None


class JobSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str | None = None
    pod_failure_policy: FailurePolicyWire | None = None


class JobStatusWire(msgspec.Struct, frozen=True, gc=False):
    ready: int | None = None
    failed: int | None = None
    succeeded: int | None = None


class JobWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: JobSpecWire = JobSpecWire()
    status: JobStatusWire = JobStatusWire()
