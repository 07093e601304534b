"""From a pod to the workload that people know, with replicas, rollouts, autoscaling and jobs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rebalancer.kube.wire import AutoscalerWire, MetadataWire
from rebalancer.kube.wire_workloads import DaemonSetWire, DeploymentWire, JobWire, ReplicaSetWire, StatefulSetWire
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import JobRules, PodClass, WorkloadRef
from rebalancer.units import format_time
from tests.collect_cluster.objects import NOW, Json, decoded, meta, node, owner, pod, row_of, state_of


def _deployment(name: str = "web", *, replicas: int = 3, status: Json | None = None, **metadata: object) -> DeploymentWire:
    steady: Json = {"observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas}
    wire: Json = {
        "metadata": meta(name, generation=2, **metadata),
        "spec": {"replicas": replicas, "template": {}},
        "status": steady if status is None else status,
    }
    return decoded(DeploymentWire, wire)[0]


def _replica_set(name: str = "web-1", *, of: Json | None = None, full: bool = False) -> ReplicaSetWire:
    wire: Json = {"metadata": meta(name, generation=1, owner=of)}
    if full:
        wire |= {"spec": {"replicas": 4}, "status": {"readyReplicas": 3, "replicas": 4, "observedGeneration": 1}}
    return decoded(ReplicaSetWire, wire)[0]


def _web(deployment: DeploymentWire, **more: object) -> ClusterState:
    """One pod of a ReplicaSet of the Deployment."""
    return state_of(
        nodes=[node("a")],
        pods=[pod("web-1-x", on="a", owner=owner("ReplicaSet", "web-1"))],
        replica_sets=[_replica_set(of=owner("Deployment", "web"))],
        deployments=[deployment],
        **more,
    )


def test_a_pod_of_a_replicaset_belongs_to_its_deployment() -> None:
    """The workload is the Deployment, the direct controller stays the ReplicaSet."""
    state = _web(_deployment())
    assert state.workload_of(0) == WorkloadRef("Deployment", "default", "web")
    assert state.workloads.replicas.tolist() == [3.0]
    assert state.workloads.ready.tolist() == [3.0]
    assert state.controllers == ("uid-web-1",)
    assert state.workloads.rollout == ("",)
    assert state.pods.classes == (PodClass.SERVING,)


def test_two_replicasets_of_one_deployment_are_one_workload_with_two_controllers() -> None:
    """As it is in the middle of a rollout."""
    state = state_of(
        nodes=[node("a")],
        pods=[pod("web-1-x", on="a", owner=owner("ReplicaSet", "web-1")), pod("web-2-x", on="a", owner=owner("ReplicaSet", "web-2"))],
        replica_sets=[_replica_set(name, of=owner("Deployment", "web")) for name in ("web-1", "web-2")],
        deployments=[_deployment()],
    )
    assert state.pods.workload.tolist() == [0, 0]
    assert state.pods.controller.tolist() == [0, 1]


def test_ready_replicas_left_out_mean_none_once_the_controller_has_looked() -> None:
    """Go leaves zero out; before the first look the number is unknown."""
    looked = _web(_deployment(status={"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3}))
    assert looked.workloads.ready.tolist() == [0.0]
    assert np.isnan(_web(_deployment(status={})).workloads.ready[0])


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ({"observedGeneration": 1}, "its controller has seen generation 1 of 2"),
        ({}, "its controller has seen generation 0 of 2"),
        ({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 2}, "2 of 3 replicas have the new template"),
        ({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3}, "1 replicas of an older template still run"),
    ],
)
def test_a_deployment_between_two_templates_says_how_far_it_is(status: Json, sentence: str) -> None:
    """Unobserved, not yet updated, or with old pods left."""
    assert _web(_deployment(status=status)).workloads.rollout == (sentence,)


def test_a_bare_replicaset_is_its_own_workload() -> None:
    """With its own replicas, when they were read."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", owner=owner("ReplicaSet", "web-1"))], replica_sets=[_replica_set(full=True)])
    assert state.workload_of(0) == WorkloadRef("ReplicaSet", "default", "web-1")
    assert (state.workloads.replicas[0], state.workloads.ready[0]) == (4.0, 3.0)


def test_a_replicaset_of_an_unlisted_kind_leads_to_that_kind() -> None:
    """A Rollout: its replicas are unknown, its ready pods are counted."""
    rollout = owner("Rollout", "web", api_version="argoproj.io/v1alpha1")
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod("x", on="a", owner=owner("ReplicaSet", "web-1")),
            pod("y", on="a", owner=owner("ReplicaSet", "web-1"), ready=False),
        ],
        replica_sets=[_replica_set(of=rollout)],
    )
    assert state.workload_of(0) == WorkloadRef("Rollout", "default", "web")
    assert np.isnan(state.workloads.replicas[0])
    assert state.workloads.ready.tolist() == [1.0]


def test_a_kind_of_the_same_name_in_another_group_is_not_the_built_in_one() -> None:
    """Owners are found by uid: another StatefulSet does not get the replicas of the built-in one."""
    state = state_of(
        nodes=[node("a")],
        pods=[pod("db-0", on="a", owner={**owner("StatefulSet", "db", api_version="apps.kruise.io/v1beta1"), "uid": "other"})],
        stateful_sets=decoded(StatefulSetWire, {"metadata": meta("db"), "spec": {"replicas": 5}}),
    )
    assert np.isnan(state.workloads.replicas[0])


@pytest.mark.parametrize(
    ("spec", "status", "sentence"),
    [
        ({}, {"currentRevision": "db-1", "updateRevision": "db-1"}, ""),
        ({}, {"currentRevision": "db-1", "updateRevision": "db-2", "updatedReplicas": 1}, "1 of 3 replicas have revision db-2"),
        (
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}},
            {"currentRevision": "db-1", "updateRevision": "db-2", "updatedReplicas": 1},
            "",
        ),
        (
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
            {"currentRevision": "db-1", "updateRevision": "db-2", "updatedReplicas": 1},
            "1 of 2 replicas have revision db-2",
        ),
        (
            {"updateStrategy": {"type": "OnDelete"}},
            {"currentRevision": "db-1", "updateRevision": "db-2", "updatedReplicas": 3},
            "revision db-2 waits for its pods to be deleted, and an eviction would be such a deletion",
        ),
    ],
)
def test_a_statefulset_between_two_revisions_says_so(spec: Json, status: Json, sentence: str) -> None:
    """A reached partition is no rollout, an update on deletion is."""
    wire: Json = {
        "metadata": meta("db", generation=1),
        "spec": {"replicas": 3, **spec},
        "status": {"observedGeneration": 1, "readyReplicas": 3, **status},
    }
    state = state_of(
        nodes=[node("a")], pods=[pod("db-0", on="a", owner=owner("StatefulSet", "db"))], stateful_sets=decoded(StatefulSetWire, wire)
    )
    assert state.workloads.rollout == (sentence,)
    assert state.workloads.ordered.tolist() == [True]


def test_a_parallel_statefulset_is_not_ordered() -> None:
    """podManagementPolicy Parallel."""
    wire: Json = {"metadata": meta("db"), "spec": {"replicas": 3, "podManagementPolicy": "Parallel"}}
    state = state_of(
        nodes=[node("a")], pods=[pod("db-0", on="a", owner=owner("StatefulSet", "db"))], stateful_sets=decoded(StatefulSetWire, wire)
    )
    assert state.workloads.ordered.tolist() == [False]


def test_a_daemonset_is_system_and_wants_what_it_schedules() -> None:
    """Desired, ready and updated nodes."""
    wire: Json = {
        "metadata": meta("agent", generation=1),
        "spec": {},
        "status": {"desiredNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 2, "observedGeneration": 1},
    }
    state = state_of(
        nodes=[node("a")], pods=[pod("agent-x", on="a", owner=owner("DaemonSet", "agent"))], daemon_sets=decoded(DaemonSetWire, wire)
    )
    assert state.pods.classes == (PodClass.SYSTEM,)
    assert (state.workloads.replicas[0], state.workloads.ready[0]) == (4.0, 3.0)
    assert state.workloads.rollout == ("2 of 4 nodes run the new template",)


def test_an_autoscaler_dates_the_last_scaling_of_its_target() -> None:
    """lastScaleTime by scaleTargetRef; the latest of several; another target's is not taken."""
    autoscalers = decoded(
        AutoscalerWire,
        *(
            {
                "metadata": meta(f"hpa-{target}-{ago}"),
                "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
                "status": {"lastScaleTime": format_time(NOW - ago), "currentMetrics": None, "conditions": None},
            }
            for target, ago in (("web", 600), ("web", 120), ("other", 1))
        ),
        {"metadata": meta("never"), "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}, "status": {}},
    )
    assert _web(_deployment(), autoscalers=autoscalers).workloads.scaled_at.tolist() == [NOW - 120]
    assert np.isnan(_web(_deployment()).workloads.scaled_at[0])


def _job(spec: Json, *, status: Json | None = None, of: Json | None = None, **more: object) -> ClusterState:
    wire: Json = {"metadata": meta("job-1", owner=of), "spec": spec, "status": status or {}}
    return state_of(
        nodes=[node("a")],
        pods=[pod("job-1-x", on="a", owner=owner("Job", "job-1", api_version="batch/v1"))],
        jobs=decoded(JobWire, wire),
        **more,
    )


IGNORE: Json = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
DEFAULTED_STATUS: Json = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
SIGTERM_FAILS: Json = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [143]}}
OTHER_CODE_FAILS: Json = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
ALL_BUT_ONE_FAIL: Json = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}
COUNTED: Json = {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "ignored"),
    [
        ([IGNORE], True),
        ([DEFAULTED_STATUS], True),
        ([OTHER_CODE_FAILS, IGNORE], True),
        ([SIGTERM_FAILS, IGNORE], False),
        ([ALL_BUT_ONE_FAIL, IGNORE], False),
        ([COUNTED, IGNORE], False),
        ([], False),
        (None, False),
    ],
)
def test_a_job_ignores_disruption_when_its_first_matching_rule_says_so(rules: list[Json] | None, ignored: bool) -> None:
    """An earlier rule for the exit code of SIGTERM decides instead."""
    state = _job({"backoffLimit": 2, "podFailurePolicy": {"rules": rules}}, status={"failed": 1})
    assert state.workloads.jobs == (JobRules(backoff_limit=2.0, failed=1, ignores_disruption=ignored),)


def test_the_backoff_limit_defaults_to_six_or_to_none_by_index() -> None:
    """6; unlimited when the limit is per index."""
    plain, by_index = _job({}).workloads.jobs[0], _job({"backoffLimitPerIndex": 1}).workloads.jobs[0]
    assert plain is not None
    assert plain.backoff_limit == 6.0
    assert by_index is not None
    assert by_index.backoff_limit == math.inf


def test_a_job_wants_no_more_than_is_left_to_complete() -> None:
    """Parallelism 4, of 5 completions 3 are done: 2."""
    state = _job({"parallelism": 4, "completions": 5}, status={"succeeded": 3, "ready": 1})
    assert (state.workloads.replicas[0], state.workloads.ready[0]) == (2.0, 1.0)


def test_a_job_of_a_cronjob_stays_the_workload_and_inherits_its_annotations() -> None:
    """Back-off is the Job's own; an opt-out on the CronJob holds for its Jobs."""
    cron_jobs = decoded(MetadataWire, {"metadata": meta("nightly", annotations={"rebalancer.dev/evict": "false", "noise": "x"})})
    state = _job({}, of=owner("CronJob", "nightly", api_version="batch/v1"), cron_jobs=cron_jobs)
    assert state.workload_of(0) == WorkloadRef("Job", "default", "job-1")
    assert state.workloads.annotations == ({"rebalancer.dev/evict": "false"},)
    assert state.pods.classes == (PodClass.BATCH,)


def test_the_launcher_job_of_a_training_operator_is_training() -> None:
    """The owner of the owner has the first say about the class."""
    assert _job({}, of=owner("MPIJob", "bert", api_version="kubeflow.org/v2beta1")).pods.classes == (PodClass.TRAINING,)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("PyTorchJob", PodClass.TRAINING),
        ("RayJob", PodClass.TRAINING),
        ("Notebook", PodClass.EXPERIMENT),
        ("LeaderWorkerSet", PodClass.SERVING),
        ("RayService", PodClass.SERVING),
        ("RayCluster", PodClass.EXPERIMENT),
        ("Rollout", PodClass.UNKNOWN),
        ("StatefulSet", PodClass.SERVING),
    ],
)
def test_the_kind_of_the_owner_gives_the_class(kind: str, expected: PodClass) -> None:
    """Unlisted kinds are unknown."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", owner=owner(kind, "it", api_version="example.com/v1"))])
    assert state.pods.classes == (expected,)


def test_the_class_annotation_wins_on_the_pod_before_the_workload() -> None:
    """And a word that names no class is reported and ignored."""
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod("own", on="a", owner=owner("ReplicaSet", "web-1"), annotations={"rebalancer.dev/class": "training"}),
            pod("bad", on="a", owner=owner("ReplicaSet", "web-1"), annotations={"rebalancer.dev/class": "precious"}),
            pod("none", on="a", owner=owner("ReplicaSet", "web-1")),
        ],
        replica_sets=[_replica_set(of=owner("Deployment", "web"))],
        deployments=[_deployment(annotations={"rebalancer.dev/class": "batch"})],
    )
    classes = {name: state.pods.classes[row_of(state, name)] for name in ("own", "bad", "none")}
    assert classes == {"own": PodClass.TRAINING, "bad": PodClass.BATCH, "none": PodClass.BATCH}
    assert any("names no class" in note for note in state.coverage.notes)


def test_a_system_priority_makes_a_pod_system() -> None:
    """From the value of system-cluster-critical on."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", spec={"priority": 2_000_000_000})])
    assert state.pods.classes == (PodClass.SYSTEM,)


def test_a_mirror_pod_has_no_workload() -> None:
    """Marked by annotation or owned by its node."""
    state = state_of(
        nodes=[node("a")],
        pods=[
            pod("etcd-a", on="a", owner=owner("Node", "a", api_version="v1")),
            pod("proxy-a", on="a", annotations={"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.source": "file"}),
            pod("plain", on="a", annotations={"kubernetes.io/config.source": "api"}),
        ],
    )
    assert state.pods.mirror.tolist() == [True, False, True]
    assert state.pods.names == ("etcd-a", "plain", "proxy-a")
    assert state.pods.workload.tolist() == [-1, -1, -1]


def test_an_owner_that_is_not_the_controller_is_not_climbed() -> None:
    """A garbage-collection reference makes no workload."""
    state = state_of(nodes=[node("a")], pods=[pod("x", on="a", owner=owner("ConfigMap", "c", controller=False))])
    assert state.pods.workload.tolist() == [-1]
