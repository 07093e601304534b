"""Pods that never move, whatever the load: by what they are, who owns them and where they stand."""

from __future__ import annotations

import pytest

from rebalancer.guard.gate import first_refusal
from rebalancer.policy.model import ClassRules, Mode, Names, Victims
from rebalancer.state.scheduling import Constraints, Taint
from rebalancer.state.tables import Phase, PodClass, WorkloadRef
from tests.guard.scenes import ask, candidate, measured, reason, scene_of, state_with
from tests.support.builder import node, pod


def test_a_healthy_measured_pod_passes_every_gate() -> None:
    """A Ready pod of a Deployment of three, measured and old enough, is refused by nobody."""
    scene = scene_of(state_with(measured("web-0"), measured("web-1"), measured("web-2")))
    assert first_refusal(candidate(scene), scene) is None


@pytest.mark.parametrize(
    ("gate", "fields", "words"),
    [
        ("daemonset", {"workload": WorkloadRef("DaemonSet", "default", "agent")}, "DaemonSet default/agent would put the pod back"),
        ("mirror", {"mirror": True}, "it is a static pod"),
        ("terminating", {"terminating": True}, "it is being deleted already"),
        ("finished", {"phase": Phase.SUCCEEDED}, "it has finished (phase Succeeded)"),
        ("finished", {"phase": Phase.FAILED}, "it has finished (phase Failed)"),
        ("not-running", {"phase": Phase.PENDING}, "it does not run (phase Pending)"),
        ("not-running", {"phase": Phase.UNKNOWN}, "it does not run (phase Unknown)"),
        ("system-critical", {"priority": 2_000_000_000}, "its priority 2000000000 is system-critical"),
        ("bare-pod", {"workload": None}, "it has no controller"),
        ("bare-pod", {"workload": None, "controller": "uid-of-a-lost-owner"}, "its owner is not known"),
    ],
)
def test_a_pod_is_protected_by_what_it_is(gate: str, fields: dict[str, object], words: str) -> None:
    """The gate names what protects the pod, and it is the first to speak."""
    scene = scene_of(state_with(measured("web-0", **fields)))
    assert reason(gate, scene).startswith(words)
    first = first_refusal(candidate(scene), scene)
    assert first is not None
    assert first.gate == gate


@pytest.mark.parametrize("gate", ["daemonset", "mirror", "terminating", "finished", "not-running", "system-critical", "bare-pod"])
def test_an_ordinary_pod_is_none_of_them(gate: str) -> None:
    """A running pod of a Deployment passes each of these gates."""
    assert ask(gate, scene_of(state_with(measured("web-0")))) is None


def test_a_pod_without_a_node_does_not_run() -> None:
    """A pending pod has nothing to be moved from."""
    scene = scene_of(state_with(pod("web-0", workload="web")))
    assert reason("not-running", scene) == "it is not bound to a node yet"


def test_a_pod_right_under_the_system_range_is_not_critical() -> None:
    """The range of the system classes begins at exactly 2,000,000,000."""
    assert ask("system-critical", scene_of(state_with(measured("web-0", priority=1_999_999_999)))) is None


@pytest.mark.parametrize(("below", "refused"), [(1000, True), (1001, False)])
def test_the_priority_ceiling_as_a_value_is_exclusive(below: int, refused: bool) -> None:
    """A pod of exactly the ceiling's priority stays, one below it may move."""
    scene = scene_of(state_with(measured("web-0", priority=1000)), victims=Victims(priority_below=below))
    refusal = ask("priority-ceiling", scene)
    assert (refusal is not None) is refused
    if refusal is not None:
        assert refusal.reason == "its priority 1000 is not below 1000 (policy victims.priorityBelow)"
        assert not refusal.retryable


def test_the_priority_ceiling_as_a_class_is_looked_up() -> None:
    """A name stands for the value of that PriorityClass, and the sentence shows both."""
    scene = scene_of(state_with(measured("web-0", priority=2_000_000_000)))
    assert reason("priority-ceiling", scene) == (
        "its priority 2000000000 is not below system-cluster-critical, 2000000000 (policy victims.priorityBelow)"
    )


def test_an_unknown_priority_class_protects_every_pod() -> None:
    """A ceiling that cannot be found is not no ceiling."""
    scene = scene_of(state_with(measured("web-0", priority=-5)), victims=Victims(priority_below="gold"))
    assert reason("priority-ceiling", scene) == (
        "policy victims.priorityBelow names PriorityClass gold, which the cluster does not have, so no pod is known to be below it"
    )


@pytest.mark.parametrize(
    ("names", "namespace", "words"),
    [
        (Names(), "kube-system", "namespace kube-system is excluded by kube-system"),
        (Names(exclude=("kube-*",)), "kube-public", "namespace kube-public is excluded by kube-*"),
        (Names(include=("team-*",), exclude=("team-b",)), "team-b", "namespace team-b is excluded by team-b"),
        (Names(include=("team-*", "lab")), "shop", "namespace shop is not among team-*, lab"),
    ],
)
def test_a_namespace_is_closed_by_exclusion_or_by_not_being_included(names: Names, namespace: str, words: str) -> None:
    """An exclusion wins over an inclusion, and a trailing star matches any ending."""
    scene = scene_of(state_with(measured("web-0", namespace=namespace)), victims=Victims(namespaces=names))
    assert reason("namespace", scene).startswith(words)


@pytest.mark.parametrize(
    ("names", "namespace"),
    [
        (Names(), "shop"),
        (Names(include=("team-*",)), "team-a"),
        (Names(include=("lab",)), "lab"),
        (Names(exclude=("kube*",)), "my-kube"),
        (Names(exclude=()), "kube-system"),
    ],
)
def test_a_namespace_is_open_otherwise(names: Names, namespace: str) -> None:
    """No inclusion at all includes every namespace; a pattern must match from the start."""
    scene = scene_of(state_with(measured("web-0", namespace=namespace)), victims=Victims(namespaces=names))
    assert ask("namespace", scene) is None


@pytest.mark.parametrize("mode", [Mode.EVICT, Mode.DRY_RUN])
def test_a_class_that_may_only_be_annotated_is_refused_where_pods_are_evicted(mode: Mode) -> None:
    """A dry run answers as evict mode would."""
    scene = scene_of(state_with(measured("train-0", pod_class=PodClass.TRAINING)), mode=mode)
    assert reason("pod-class", scene) == (
        "pods of class training are only annotated, never evicted (policy victims.classes.training), "
        'unless they are annotated rebalancer.dev/checkpointed: "true"'
    )


def test_a_class_that_may_only_be_annotated_passes_in_annotate_mode() -> None:
    """Annotating is what the policy allows there."""
    scene = scene_of(state_with(measured("train-0", pod_class=PodClass.TRAINING)), mode=Mode.ANNOTATE)
    assert ask("pod-class", scene) is None


@pytest.mark.parametrize("mode", list(Mode))
def test_a_refused_class_is_refused_in_every_mode(mode: Mode) -> None:
    """`refuse` does not even allow an annotation."""
    scene = scene_of(state_with(measured("web-0")), mode=mode, victims=Victims(classes=ClassRules(serving="refuse")))
    assert reason("pod-class", scene) == "pods of class serving are not moved (policy victims.classes.serving)"


def test_every_pod_class_has_a_rule() -> None:
    """The gate can answer for each class that a pod may have."""
    for pod_class in PodClass:
        ask("pod-class", scene_of(state_with(measured("x", pod_class=pod_class))))


def test_d8_a_pod_of_another_scheduler_is_refused_by_name() -> None:
    """Where another scheduler decides, the destination cannot be predicted; the sentence names it."""
    other = Constraints(scheduler_name="volcano")
    state = state_with(measured("web-0", constraints=other))
    assert reason("scheduler", scene_of(state)).startswith("its scheduler volcano is not among default-scheduler")
    assert ask("scheduler", scene_of(state, victims=Victims(schedulers=("default-scheduler", "volcano")))) is None


def test_a_node_that_is_not_ready_is_not_drained() -> None:
    """Its kubelet would not end the pod."""
    state = state_with(measured("web-0"), measured("web-1", on="cool"), nodes=(node("hot", ready=False), node("cool")))
    scene = scene_of(state)
    assert reason("source-not-ready", scene) == "node hot is not Ready, so its kubelet would not end the pod"
    assert ask("source-not-ready", scene, 1) is None


@pytest.mark.parametrize(
    ("key", "remover"),
    [
        ("karpenter.sh/disrupted", "karpenter"),
        ("karpenter.sh/disruption", "karpenter"),
        ("ToBeDeletedByClusterAutoscaler", "cluster-autoscaler"),
    ],
)
def test_a_node_that_an_autoscaler_removes_is_left_to_it(key: str, remover: str) -> None:
    """Its pods are moved anyway; the sentence names who does it."""
    state = state_with(measured("web-0"), nodes=(node("hot", taints=[Taint("other"), Taint(key)]), node("cool")))
    assert reason("node-being-removed", scene_of(state)) == f"node hot is being removed by {remover} (taint {key}), which moves its pods"


def test_other_taints_on_the_source_say_nothing_about_its_removal() -> None:
    """A tainted node may be relieved like any other."""
    state = state_with(measured("web-0"), nodes=(node("hot", taints=[Taint("nvidia.com/gpu")]), node("cool")))
    assert ask("node-being-removed", scene_of(state)) is None


def test_policy_keys_in_the_sentences_exist() -> None:
    """The value that the sentence asks the operator to change is a key of the policy."""
    keys = {field.alias for field in Victims.model_fields.values()}
    assert {"priorityBelow", "minAge", "minReplicas", "localStorage", "persistentVolumes", "requireOptIn", "schedulers"} <= keys
