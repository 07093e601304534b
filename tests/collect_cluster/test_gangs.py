"""From marks on pods and the objects behind them to the table of gangs, and what class that makes of pods."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.gangs.marks import GangMark
from rebalancer.collect.gangs.objects import GangObjects
from rebalancer.collect.pod_table import PodTable
from rebalancer.kube.wire_gangs import NativePodGroupWire, NativeWorkloadWire, PodGroupWire, TrainingJobWire
from rebalancer.kube.wire_pods import PodWire
from rebalancer.kube.wire_workloads import JobWire
from rebalancer.state.cluster import ClusterState
from rebalancer.state.gangs import GangSystem, MinimumSource
from rebalancer.state.tables import PodClass
from tests.collect_cluster.objects import Json, decoded, meta, node, owner, pod, state_of

NATIVE_GROUP = {"schedulingGroup": {"podGroupName": "g"}}
WORKLOAD_REF = {"workloadRef": {"name": "w", "podGroup": "g"}}


def group_of(minimum: int | None, *, name: str = "g") -> PodGroupWire:
    return decoded(PodGroupWire, {"metadata": meta(name), "spec": {} if minimum is None else {"minMember": minimum}})[0]


def groups(minimum: int | None) -> GangObjects:
    """A PodGroup default/g of every scheduler that has PodGroups."""
    systems = (GangSystem.COSCHEDULING, GangSystem.KOORDINATOR, GangSystem.VOLCANO, GangSystem.KAI)
    return GangObjects(
        groups={system: [group_of(minimum)] for system in systems},
        native_groups=decoded(
            NativePodGroupWire, {"metadata": meta("g"), "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}} if minimum else {}}}
        ),
        native_workloads=decoded(
            NativeWorkloadWire,
            {"metadata": meta("w"), "spec": {"podGroups": [{"name": "g", "policy": {"gang": {"minCount": minimum}}}] if minimum else []}},
        ),
    )


def marked(count: int, *, spec: Json | None = None, of: Json | None = None, phase: str = "Running", **metadata: object) -> list[Json]:
    return [pod(f"w-{i}", on="a", spec=spec or {}, owner=of, phase=phase, **metadata) for i in range(count)]


def told(pods: list[Json], objects: GangObjects | None = None, **lists: object) -> ClusterState:
    return state_of(nodes=[node("a")], pods=pods, gangs=objects or GangObjects(), **lists)


def gangs_of(state: ClusterState) -> list[tuple[str, int, int]]:
    """Title, members, minimum of each."""
    return [(state.gangs.title(g), len(state.gangs.members(g)), int(state.gangs.minimum[g])) for g in range(len(state.gangs))]


SCHEDULER_FORMS = [
    ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, {}),
    ({"annotations": {"scheduling.volcano.sh/group-name": "g"}}, {}),
    ({"labels": {"scheduling.k8s.io/group-name": "g"}}, {}),
    ({"annotations": {"pod-group-name": "g"}}, {}),
    ({"labels": {"pod-group-name": "g"}}, {}),
    ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {}),
    ({"annotations": {"scheduling.x-k8s.io/pod-group": "g"}}, {}),
    ({"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}, {}),
    ({"labels": {"pod-group.scheduling.sigs.k8s.io/name": "g"}}, {}),
    ({"annotations": {"gang.scheduling.koordinator.sh/name": "g"}}, {}),
    ({}, NATIVE_GROUP),
    ({}, WORKLOAD_REF),
]


@pytest.mark.parametrize(("metadata", "spec"), SCHEDULER_FORMS)
def test_n5_every_form_of_mark_makes_the_same_gang(metadata: Json, spec: Json) -> None:
    """Label or annotation, old key or new, object of this scheduler or that: three members, two needed."""
    state = told(marked(3, spec=spec, **metadata), groups(2))
    assert [(members, minimum) for _, members, minimum in gangs_of(state)] == [(3, 2)]
    assert state.gangs.sources == (MinimumSource.OBJECT,)
    assert set(state.pods.classes) == {PodClass.TRAINING}


@pytest.mark.parametrize(("metadata", "spec"), SCHEDULER_FORMS[:-2])
def test_n5_a_pod_group_with_min_member_1_is_no_gang(metadata: Json, spec: Json) -> None:
    """Volcano and KAI give every pod a PodGroup; five pods of which one is needed do not wait for each other."""
    state = told(marked(5, spec=spec, **metadata), groups(1))
    assert gangs_of(state) == []
    assert state.gangs.told
    assert set(state.pods.classes) == {PodClass.UNKNOWN}


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        (
            {"annotations": {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"}},
            "koordinator default/g",
        ),
        (
            {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}},
            "coscheduling default/g",
        ),
        (
            {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}, "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}},
            "kueue default/g",
        ),
        (
            {
                "labels": {"leaderworkerset.sigs.k8s.io/name": "g", "leaderworkerset.sigs.k8s.io/group-index": "4"},
                "annotations": {"leaderworkerset.sigs.k8s.io/size": "2"},
            },
            "leader-worker-set default/g-4",
        ),
    ],
)
def test_marks_that_carry_their_number_need_no_object(metadata: Json, title: str) -> None:
    """The pods say it themselves."""
    state = told(marked(3, **metadata))
    assert gangs_of(state) == [(title, 3, 2)]
    assert state.gangs.sources == (MinimumSource.MARK,)


def test_a_group_of_which_nothing_is_known_needs_all_that_are_there() -> None:
    """Without the object, or the right to read it, no member counts as surplus; and the notes say whose right is missing."""
    state = told(marked(4, annotations={"scheduling.k8s.io/group-name": "g"}), GangObjects(forbidden=("podgroups.scheduling.volcano.sh",)))
    assert gangs_of(state) == [("volcano default/g", 4, 4)]
    assert [note for note in state.coverage.notes if note.startswith("gangs: ")] == [
        "gangs: podgroups.scheduling.volcano.sh may not be listed, so 1 gangs count as needing all of their members; "
        "grant the right to list"
    ]


@pytest.mark.parametrize("text", ["two", "-1", "0", "2.5", "", "99999999", "１２"])
def test_a_number_that_is_none_needs_all_members_and_is_named(text: str) -> None:
    """Bad input makes the gang stricter, never looser."""
    keys = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": text}
    state = told(marked(3, annotations=keys))
    assert gangs_of(state) == [("koordinator default/g", 3, 3)]
    assert any("min-available" in note for note in state.coverage.notes)


def training(*, elastic: Mapping[str, int] | None = None, backoff: int | None = None) -> GangObjects:
    spec: Json = {"runPolicy": {} if backoff is None else {"backoffLimit": backoff, "schedulingPolicy": {"minAvailable": 1}}}
    if elastic is not None:
        spec["elasticPolicy"] = dict(elastic)
    return GangObjects(training_jobs={"PyTorchJob": decoded(TrainingJobWire, {"metadata": meta("llm"), "spec": spec})})


WORKERS: Json = {"training.kubeflow.org/job-name": "llm"}
PYTORCH = owner("PyTorchJob", "llm", api_version="kubeflow.org/v1")


def test_n4_a_job_without_elastic_policy_needs_every_worker() -> None:
    """Whatever its scheduler was told to wait for; its back-off limit is kept for the refusal."""
    state = told(marked(4, of=PYTORCH, labels=WORKERS), training(backoff=3))
    assert gangs_of(state) == [("training default/llm", 4, 4)]
    assert state.gangs.backoff_limit.tolist() == [3.0]
    assert state.gangs.elastic == (False,)


def test_n4_an_elastic_job_needs_its_least_number_of_workers() -> None:
    """The others are surplus."""
    state = told(marked(4, of=PYTORCH, labels=WORKERS), training(elastic={"minReplicas": 2, "maxReplicas": 8}))
    assert gangs_of(state) == [("training default/llm", 4, 2)]
    assert state.gangs.elastic == (True,)


def test_a_training_job_is_a_gang_by_its_owner_alone() -> None:
    """No label, no object, one worker: its kind is enough."""
    state = told(marked(1, of=owner("TFJob", "mnist", api_version="kubeflow.org/v1")))
    assert gangs_of(state) == [("training default/mnist", 1, 1)]
    assert math.isnan(state.gangs.backoff_limit[0])


def test_the_group_that_needs_the_most_says_how_many_it_takes() -> None:
    """Volcano would start the job with one pod; the job hangs without any of them."""
    pods = marked(3, of=PYTORCH, labels=WORKERS, annotations={"scheduling.k8s.io/group-name": "g"})
    assert gangs_of(told(pods, GangObjects(groups={GangSystem.VOLCANO: [group_of(1)]}))) == [("training default/llm", 3, 3)]
    assert gangs_of(told(pods, GangObjects(groups={GangSystem.VOLCANO: [group_of(2)]}))) == [("volcano default/g", 3, 3)]


def test_the_pods_of_a_job_set_are_one_gang_across_its_jobs() -> None:
    """A failed child Job may have all of them made anew."""
    pods = [
        pod(f"{role}-{i}", on="a", owner=owner("Job", role, api_version="batch/v1"), labels={"jobset.sigs.k8s.io/jobset-name": "s"})
        for role in ("driver", "workers")
        for i in range(2)
    ]
    assert gangs_of(told(pods)) == [("job-set default/s", 4, 4)]


def indexed(**spec: object) -> list[JobWire]:
    return decoded(JobWire, {"metadata": meta("sweep"), "spec": {"completionMode": "Indexed", "parallelism": 3, "completions": 3, **spec}})


INDEXED_PODS = marked(
    3,
    of=owner("Job", "sweep", api_version="batch/v1"),
    labels={"batch.kubernetes.io/job-name": "sweep", "batch.kubernetes.io/job-completion-index": "0"},
)


def test_an_indexed_job_that_runs_all_at_once_is_a_gang_and_stays_batch() -> None:
    """Its pods know each other by their numbers."""
    state = told(INDEXED_PODS, jobs=indexed())
    assert gangs_of(state) == [("indexed-job default/sweep", 3, 3)]
    assert set(state.pods.classes) == {PodClass.BATCH}


@pytest.mark.parametrize("spec", [{"backoffLimitPerIndex": 1}, {"parallelism": 2}, {"completionMode": "NonIndexed"}])
def test_an_indexed_job_whose_pods_stand_alone_is_no_gang(spec: Json) -> None:
    """Each number fails by itself, or they do not run together anyhow."""
    assert gangs_of(told(INDEXED_PODS, jobs=indexed(**spec))) == []
    assert gangs_of(told(INDEXED_PODS)) == [], "a Job that is not known"


def test_only_pods_that_are_not_finished_are_members() -> None:
    """A worker that has succeeded is not waited for, and gangs of two namespaces are two."""
    group = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    pods = [*marked(2, **group), pod("done", on="a", phase="Succeeded", **group), pod("x", on="a", namespace="far", **group)]
    assert gangs_of(told(pods)) == [("volcano default/g", 2, 2)], "one pod of a group of which nothing is known is no gang"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"serving.kserve.io/inferenceservice": "m"}}, PodClass.SERVING),
        ({"labels": {"serving.knative.dev/revision": "m"}}, PodClass.SERVING),
        ({"labels": {"llm-d.ai/role": "prefill"}}, PodClass.SERVING),
        ({"labels": {"kserve.io/component": "workload"}}, PodClass.SERVING),
        ({"labels": {"kserve.io/component": "other"}}, PodClass.UNKNOWN),
        ({"labels": {"ray.io/originated-from-crd": "RayService"}}, PodClass.SERVING),
        ({"labels": {"ray.io/originated-from-crd": "RayJob"}}, PodClass.TRAINING),
        ({"annotations": {"kueue.x-k8s.io/pod-group-serving": "true"}}, PodClass.SERVING),
        ({"labels": {"notebook-name": "n"}}, PodClass.EXPERIMENT),
        ({"labels": {"component": "singleuser-server"}}, PodClass.EXPERIMENT),
        ({"labels": {"component": "database"}}, PodClass.UNKNOWN),
        ({"labels": {"controller.devfile.io/devworkspace_id": "w"}}, PodClass.EXPERIMENT),
        ({"labels": {"notebook-name": "n"}, "annotations": {"rebalancer.dev/class": "batch"}}, PodClass.BATCH),
    ],
)
def test_marks_of_other_projects_say_what_a_pod_is_for(metadata: Json, expected: PodClass) -> None:
    """Own word first, then serving, then what people work on."""
    assert told([pod("x", on="a", **metadata)]).pods.classes == (expected,)


def test_serving_marks_come_before_gangs_and_gangs_before_owners() -> None:
    """A multi-node server is no training run; a Deployment in a gang is."""
    gang = {"scheduling.x-k8s.io/pod-group": "g"}
    deployment = owner("StatefulSet", "s")
    assert set(told(marked(2, labels={**gang, "llm-d.ai/role": "decode"})).pods.classes) == {PodClass.SERVING}
    assert set(told(marked(2, of=deployment, labels=gang)).pods.classes) == {PodClass.TRAINING}
    assert set(told(marked(2, of=deployment)).pods.classes) == {PodClass.SERVING}
    assert set(told(marked(2, of=owner("DaemonSet", "d"), labels=gang)).pods.classes) == {PodClass.SYSTEM}


@given(st.permutations(range(5)))
def test_v7_the_table_does_not_depend_on_the_order_of_the_lists(order: list[int]) -> None:
    """Names decide, never positions."""
    names = ["a", "b", "a", "b", "a"]
    pods = [pod(f"w-{i}", on="a", annotations={"scheduling.k8s.io/group-name": names[i]}) for i in range(5)]
    objects = GangObjects(groups={GangSystem.VOLCANO: [group_of(3, name="a"), group_of(2, name="b")]})
    assert gangs_of(told([pods[i] for i in order], objects)) == [("volcano default/a", 3, 3), ("volcano default/b", 2, 2)]


def test_a_table_of_pods_that_is_kept_reads_a_changed_mark_anew() -> None:
    """A pod that changes its group leaves the old one."""
    table = PodTable()
    before = decoded(PodWire, pod("x", on="a", resourceVersion="1", labels={"scheduling.x-k8s.io/pod-group": "one"}))
    after = decoded(PodWire, pod("x", on="a", resourceVersion="2", labels={"scheduling.x-k8s.io/pod-group": "two"}))
    table.read(before)
    columns = table.read(after)
    marked_pods = columns.marked()
    assert [marked_pods.marks[n] for n in marked_pods.numbers.tolist()] == [(GangMark(GangSystem.COSCHEDULING, "default", "two"),)]
