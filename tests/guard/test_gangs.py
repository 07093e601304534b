"""Whole or not at all: what may move of a gang, whose word it takes, and which pods are never touched."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.guard.gate import Candidate, Scene, book, first_refusal
from rebalancer.policy.model import ClassRules, Mode, Victims
from rebalancer.state.gangs import GangSystem
from rebalancer.state.gpu import Scheme
from rebalancer.state.tables import PodClass, WorkloadRef
from rebalancer.units import format_time
from tests.guard.scenes import ask, measured, reason, scene_of, state_with
from tests.support.builder import NOW, PodSpec
from tests.support.gangs import GangSpec, gang
from tests.support.gpus import fraction, whole

SAFE = {"rebalancer.dev/checkpointed": "true"}
LLM = WorkloadRef("PyTorchJob", "default", "llm")


def member(number: int, **fields: Any) -> PodSpec:
    """A worker of PyTorchJob llm that accepts to begin anew."""
    given = {"gang": "llm", "workload": LLM, "pod_class": PodClass.TRAINING, "annotations": SAFE, "restart_policy": "Never", **fields}
    return measured(f"w-{number}", **given)


def gang_scene(*pods: PodSpec, of: GangSpec | None = None, mode: Mode = Mode.EVICT, **victims: Any) -> Scene:
    state = state_with(*pods, gangs=[of or gang("llm", system=GangSystem.TRAINING)])
    return scene_of(state, mode=mode, victims=Victims(**victims))


def test_n1_a_member_alone_is_refused_where_all_are_needed() -> None:
    """Its owner accepts a restart of all; nobody accepts that one is lost."""
    scene = gang_scene(*(member(i) for i in range(8)))
    assert ask("gang", scene) is None
    assert reason("gang-minimum", scene) == (
        "alone it would leave too few of gang training default/llm of 8 pods, which needs all 8 of them (restartPolicy Never): 8 are Ready"
    )


def test_n1_surplus_goes_one_by_one_until_the_minimum_is_reached() -> None:
    """Ten workers of which eight are needed: two may go in a plan, the third may not."""
    scene = gang_scene(*(member(i) for i in range(10)), of=gang("llm", minimum=8))
    for taken in range(2):
        assert ask("gang-minimum", scene, taken) is None
        book(Candidate(taken, 0), scene)
    assert "10 are Ready, of which this plan takes 2" in reason("gang-minimum", scene, 2)


@pytest.mark.parametrize("missing", [{"ready": False}, {"terminating": True}, {"on": None}])
def test_n2_members_that_are_missing_already_use_up_the_surplus(missing: dict[str, Any]) -> None:
    """A gang that waits for a member gives no other away."""
    scene = gang_scene(*(member(i) for i in range(8)), member(8, **missing), of=gang("llm", minimum=8))
    assert "9 pods, which needs 8" in reason("gang-minimum", scene)


def test_n4_the_refusal_names_restart_policy_and_backoff_limit() -> None:
    """What becomes of the job is read first, and said."""
    scene = gang_scene(*(member(i, annotations={}) for i in range(4)), of=gang("llm", system=GangSystem.TRAINING, backoff_limit=3))
    words = "member of gang training default/llm of 4 pods, which needs all 4 of them (restartPolicy Never, backoffLimit 3)"
    assert reason("gang", scene) == (
        f"it is a {words} and moves whole or not at all; default/w-0 is not annotated rebalancer.dev/checkpointed "
        "(policy victims.gangs is checkpointed)"
    )
    assert words in reason("pod-class", scene)


def test_n4_one_member_that_is_not_checkpointed_holds_all() -> None:
    """The others begin anew only with it."""
    scene = gang_scene(member(0), member(1, annotations={}))
    assert "default/w-1 is not annotated" in reason("gang", scene)


def test_n4_a_job_that_may_not_fail_once_never_moves() -> None:
    """Checkpointed or not."""
    scene = gang_scene(member(0), member(1), of=gang("llm", backoff_limit=0))
    assert "its job has backoffLimit 0, so the first failure ends it" in reason("gang", scene)


def test_training_is_only_annotated_unless_it_is_checkpointed() -> None:
    """In annotate mode nothing is lost, so nobody is asked."""
    plain = [member(i, annotations={}) for i in range(2)]
    assert ask("pod-class", gang_scene(*plain)) is not None
    assert ask("pod-class", gang_scene(member(0), member(1))) is None
    assert ask("gang", gang_scene(*plain, mode=Mode.ANNOTATE)) is None
    assert ask("gang", gang_scene(*plain, mode=Mode.DRY_RUN)) is not None
    alone = scene_of(state_with(measured("t-0", pod_class=PodClass.TRAINING, annotations=SAFE)))
    assert ask("pod-class", alone) is None


def test_the_policy_may_refuse_all_gangs() -> None:
    """Neither whole nor their surplus."""
    scene = gang_scene(*(member(i) for i in range(4)), of=gang("llm", minimum=2), gangs="refuse")
    assert "policy victims.gangs is refuse" in reason("gang", scene)


def test_the_policy_may_let_gangs_move_without_a_word_of_their_owner() -> None:
    """Those whose class may move; training is only annotated still, until the policy allows that class too."""
    serving = [member(i, annotations={}, pod_class=PodClass.SERVING) for i in range(2)]
    training = [member(i, annotations={}) for i in range(2)]
    assert ask("gang", gang_scene(*serving, gangs="whole")) is None
    assert "victims.classes.training is annotate" in reason("gang", gang_scene(*training, gangs="whole"))
    allowed = gang_scene(*training, gangs="whole", classes=ClassRules(training="allow"))
    assert (ask("gang", allowed), ask("pod-class", allowed)) == (None, None)


def test_surplus_of_an_elastic_job_moves_though_training_is_only_annotated() -> None:
    """The job itself says that it goes on; of one that does not, surplus waits for the policy."""
    pods = [member(i, annotations={}) for i in range(4)]
    assert ask("pod-class", gang_scene(*pods, of=gang("llm", minimum=2, elastic=True))) is None
    assert ask("pod-class", gang_scene(*pods, of=gang("llm", minimum=2))) is not None
    assert ask("gang", gang_scene(*pods, of=gang("llm", minimum=2))) is None


@pytest.mark.parametrize(
    ("word", "clause"),
    [
        ("true", ""),
        ('{"onSigterm": true}', ""),
        (f'{{"last": "{format_time(NOW - 600)}", "interval": "15m"}}', ""),
        (f'{{"last": "{format_time(NOW - 1200)}", "interval": "15m"}}', "wrote its last checkpoint 20m ago, more than 15m"),
        (f'{{"last": "{format_time(NOW + 7200)}", "interval": "15m"}}', "2h in the future"),
        (f'{{"last": "{format_time(NOW)}"}}', "does not say in rebalancer.dev/checkpointed when"),
        ('{"last": "yesterday", "interval": "15m"}', "which is neither"),
        ('{"onSigterm": true, "sure": true}', "which is neither"),
        ("false", 'is annotated rebalancer.dev/checkpointed: "false"'),
        ("yes", "which is neither"),
        ("", "which is neither"),
        ("[]", "which is neither"),
    ],
)
def test_what_checkpointed_may_say(word: str, clause: str) -> None:
    """True, or when and how; a word that cannot be read, is too old or lies in the future permits nothing."""
    scene = gang_scene(member(0), member(1, annotations={"rebalancer.dev/checkpointed": word}))
    refusal = ask("gang", scene)
    assert (refusal is None) == (clause == "")
    assert refusal is None or clause in refusal.reason


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"kueue.x-k8s.io/queue-name": "ml"}, "Kueue's queue ml admitted it as a part of a Workload"),
        ({"kueue.x-k8s.io/managed": "true"}, "Kueue admitted it as a part of a Workload"),
        ({"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/pod-group-name": "g"}, "in the plain group g, whose pods nobody makes anew"),
    ],
)
def test_what_kueue_admitted_is_moved_by_its_workload_alone(labels: dict[str, str], words: str) -> None:
    """An eviction frees no quota, and says so."""
    refusal = ask("queued-workload", scene_of(state_with(measured("w-0", labels=labels))))
    assert refusal is not None
    assert words in refusal.reason
    assert not refusal.retryable


def test_a_plain_group_of_kueue_has_no_surplus_and_no_way_out() -> None:
    """Whatever its owner says and the policy allows."""
    scene = gang_scene(*(member(i) for i in range(4)), of=gang("llm", minimum=2, system=GangSystem.KUEUE), gangs="whole")
    assert "nobody makes the pods of a plain group anew" in reason("gang", scene)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("volcano.sh/preemptable", "false"),
        ("kai.scheduler/preemptibility", "non-preemptible"),
        ("quota.scheduling.koordinator.sh/preemptible", "false"),
        ("koordinator.sh/eviction-enabled", "false"),
    ],
)
def test_markers_of_schedulers_protect_as_label_and_as_annotation(key: str, value: str) -> None:
    """One vocabulary, two places; what is neither word protects too."""
    labelled = scene_of(state_with(measured("w-0", labels={key: value})))
    annotated = scene_of(state_with(measured("w-0", annotations={key: value})))
    assert reason("opt-out", labelled) == f'the pod\'s label {key} is "{value}"'
    assert reason("opt-out", annotated) == f'the pod\'s annotation {key} is "{value}"'
    assert "so it protects" in reason("opt-out", scene_of(state_with(measured("w-0", labels={key: "perhaps"}))))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("volcano.sh/preemptable", "true"),
        ("kai.scheduler/preemptibility", "preemptible"),
        ("quota.scheduling.koordinator.sh/preemptible", "true"),
    ],
)
def test_n3_where_the_policy_asks_for_the_marker_only_marked_pods_go(key: str, value: str) -> None:
    """An online pod without the marker is protected."""
    state = state_with(measured("offline", labels={key: value}), measured("online"))
    scene = scene_of(state, victims=Victims(require_preemptible=True))
    assert ask("preemptible-required", scene, 0) is None
    assert "policy victims.requirePreemptible" in reason("preemptible-required", scene, 1)
    assert ask("opt-out", scene, 0) is None


def test_volcanos_least_run_time_counts_where_it_is_longer() -> None:
    """A word that cannot be read asks for nothing more than the policy does."""
    words = ("3600s", "60s", "soon")
    state = state_with(*(measured(f"w-{i}", age_s=1200, annotations={"volcano.sh/cooldown-time": word}) for i, word in enumerate(words)))
    scene = scene_of(state)
    assert reason("minimum-age", scene) == "it started 20m ago, less than 1h (its annotation volcano.sh/cooldown-time)"
    assert (ask("minimum-age", scene, 1), ask("minimum-age", scene, 2)) == (None, None)


def test_g19_reservation_pods_and_agents_of_devices_are_untouchable() -> None:
    """Whoever owns them."""
    state = state_with(
        measured("reserve", gpu=fraction(0.0, scheme=Scheme.KAI_RESERVATION)),
        measured("exporter", labels={"app.kubernetes.io/name": "dcgm-exporter"}),
        measured("train", gpu=whole()),
    )
    scene = scene_of(state)
    assert "reserves a GPU" in reason("device-keeper", scene, 0)
    assert "app.kubernetes.io/name: dcgm-exporter" in reason("device-keeper", scene, 1)
    assert ask("device-keeper", scene, 2) is None


def test_a_ray_head_without_fault_tolerance_stays() -> None:
    """Its workers, and a head whose state is kept elsewhere, are like other pods."""
    head = {"ray.io/node-type": "head", "ray.io/cluster": "c"}
    state = state_with(
        measured("head", labels=head),
        measured("safe", labels=head, annotations={"ray.io/ft-enabled": "true"}),
        measured("worker", labels={**head, "ray.io/node-type": "worker"}),
    )
    scene = scene_of(state)
    assert "head of Ray cluster c" in reason("ray-head", scene, 0)
    assert (ask("ray-head", scene, 1), ask("ray-head", scene, 2)) == (None, None)


def test_gpus_of_nobody_knows_what_are_not_moved() -> None:
    """A pod of an unknown owner moves; with a GPU it is only annotated, until the policy says otherwise."""
    state = state_with(measured("a", pod_class=PodClass.UNKNOWN), measured("b", pod_class=PodClass.UNKNOWN, gpu=whole()))
    scene = scene_of(state)
    assert ask("pod-class", scene, 0) is None
    assert "victims.classes.unknownGpu" in reason("pod-class", scene, 1)
    assert ask("pod-class", scene_of(state, victims=Victims(classes=ClassRules(unknown_gpu="allow"))), 1) is None


def test_members_of_a_gang_that_moves_whole_do_not_hold_each_other() -> None:
    """The budget of the workload counts the gang once, every other budget each pod; a second gang of the workload waits."""
    pods = [member(i) for i in range(3)] + [member(i, gang="other") for i in range(3, 5)]
    scene = gang_scene(*pods)
    scene.booked.whole_gangs.add(scene.gang_rules.of_pod(0))
    for row in range(2):
        assert first_refusal(Candidate(row, 0), scene) is None
        book(Candidate(row, 0), scene)
    assert ask("budget-node", scene, 2) is not None
    assert (ask("in-flight", scene, 2), ask("budget-workload", scene, 2)) == (None, None)
    assert (ask("in-flight", scene, 3) is None, ask("budget-workload", scene, 3) is None) == (False, False)
