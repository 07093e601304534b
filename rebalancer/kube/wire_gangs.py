"""Objects that say how many pods belong together: groups of schedulers, jobs of distributed training. See `wire` for what is named here.

PodGroups of every scheduler have ``spec.minMember``; those of Kubernetes itself keep the number in a policy, whose place has changed.
"""

from __future__ import annotations

import msgspec

from rebalancer.kube.wire import MetaWire


class PodGroupSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    min_member: int | None = None


class PodGroupWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: PodGroupSpecWire = PodGroupSpecWire()


class GangPolicyWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    min_count: int | None = None


class GroupPolicyWire(msgspec.Struct, frozen=True, gc=False):
    """Without ``gang`` the pods of the group are scheduled one by one."""

    gang: GangPolicyWire | None = None


class GroupTemplateWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    policy: GroupPolicyWire | None = None
    scheduling_policy: GroupPolicyWire | None = None

    @property
    def minimum(self) -> int:
        """1 for a group that is no gang, 0 where it does not say."""
        policy = self.policy or self.scheduling_policy
        if policy is None:
            return 0
        return 1 if policy.gang is None else policy.gang.min_count or 0


class NativePodGroupWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: GroupTemplateWire = GroupTemplateWire()


class NativeWorkloadSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pod_groups: tuple[GroupTemplateWire, ...] | None = None


class NativeWorkloadWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: NativeWorkloadSpecWire = NativeWorkloadSpecWire()


class RunPolicyWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    backoff_limit: int | None = None


class ElasticPolicyWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    min_replicas: int | None = None


class TrainingSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    run_policy: RunPolicyWire | None = None
    elastic_policy: ElasticPolicyWire | None = None


class TrainingJobWire(msgspec.Struct, frozen=True, gc=False):
    """A PyTorchJob, TFJob, MPIJob or another of their kin."""

    metadata: MetaWire
    spec: TrainingSpecWire = TrainingSpecWire()
