"""Why a workload is between two versions, in words: moving a pod then would be undone, or would hold the rollout up.

Empty when it is not. Counters that Go leaves out are zero once ``observedGeneration`` shows that the controller has looked.
"""

from __future__ import annotations

from rebalancer.kube.wire_workloads import DaemonSetWire, DeploymentWire, ReplicaSetWire, StatefulSetWire


def unobserved(generation: int | None, observed: int | None) -> str:
    """The sentence for a spec that its controller has not seen yet; also when it has never reported."""
    if generation is None or (observed is not None and observed >= generation):
        return ""
    return f"its controller has seen generation {observed or 0} of {generation}"


def deployment_rollout(deployment: DeploymentWire) -> str:
    status = deployment.status
    unseen = unobserved(deployment.metadata.generation, status.observed_generation)
    if unseen:
        return unseen
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    updated, existing = status.updated_replicas or 0, status.replicas or 0
    if updated < wanted:
        return f"{updated} of {wanted} replicas have the new template"
    if existing > updated:
        return f"{existing - updated} replicas of an older template still run"
    return ""


def replica_set_rollout(replica_set: ReplicaSetWire) -> str:
    observed = None if replica_set.status is None else replica_set.status.observed_generation
    return "" if replica_set.spec is None else unobserved(replica_set.metadata.generation, observed)


def stateful_set_rollout(stateful_set: StatefulSetWire) -> str:
    """A partition that has been reached is no rollout; an update that waits for deletions is one, since an eviction would carry it out."""
    spec, status = stateful_set.spec, stateful_set.status
    unseen = unobserved(stateful_set.metadata.generation, status.observed_generation)
    if unseen:
        return unseen
    if not status.update_revision or status.update_revision == status.current_revision:
        return ""
    strategy = spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return f"revision {status.update_revision} waits for its pods to be deleted, and an eviction would be such a deletion"
    partition = strategy.rolling_update.partition or 0 if strategy is not None and strategy.rolling_update is not None else 0
    wanted = max(0, (1 if spec.replicas is None else spec.replicas) - partition)
    updated = status.updated_replicas or 0
    if partition and updated >= wanted:
        return ""
    return f"{updated} of {wanted} replicas have revision {status.update_revision}"


def daemon_set_rollout(daemon_set: DaemonSetWire) -> str:
    status = daemon_set.status
    unseen = unobserved(daemon_set.metadata.generation, status.observed_generation)
    if unseen:
        return unseen
    wanted, updated = status.desired_number_scheduled or 0, status.updated_number_scheduled or 0
    return f"{updated} of {wanted} nodes run the new template" if updated < wanted else ""
