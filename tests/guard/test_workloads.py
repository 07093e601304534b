"""What the workload is going through: too few replicas, a rollout, an autoscaler, a Job's patience, a gang, an ordered set."""

from __future__ import annotations

import numpy as np
import pytest

from rebalancer.policy.model import Cooldown, Victims
from rebalancer.state.tables import JobRules, Phase, WorkloadRef
from tests.guard.scenes import ask, measured, reason, scene_of, state_with, take
from tests.support.builder import NOW, workload

OPT_IN = {"rebalancer.dev/evict": "true"}
JOB = WorkloadRef("Job", "default", "report")
SET = WorkloadRef("StatefulSet", "default", "db")


@pytest.mark.parametrize(
    ("replicas", "ready", "retryable", "words"),
    [
        (1, 1, False, "Deployment default/web wants 1 replica, policy victims.minReplicas is 2; annotate it rebalancer.dev/evict"),
        (3, 1, True, "Deployment default/web has 1 of 3 replicas Ready, policy victims.minReplicas is 2"),
        (3, 0, True, "Deployment default/web has 0 of 3 replicas Ready, policy victims.minReplicas is 2"),
        (np.nan, 3, False, "Deployment default/web does not say how many replicas it wants; annotate it"),
        (3, np.nan, True, "Deployment default/web does not say how many of its 3 replicas are Ready; annotate it"),
    ],
)
def test_v9_a_workload_of_too_few_replicas_is_refused(replicas: float, ready: float, retryable: bool, words: str) -> None:
    """One replica, or one that is Ready, would be an outage; the sentence names the count and what lifts it."""
    state = state_with(measured("web-0"), workloads=[workload("web", replicas=replicas, ready=ready)])
    refusal = ask("replicas", scene_of(state))
    assert refusal is not None
    assert refusal.reason.startswith(words)
    assert refusal.retryable is retryable


@pytest.mark.parametrize("on_workload", [False, True])
@pytest.mark.parametrize("replicas", [1, np.nan])
def test_v9_our_opt_in_accepts_the_outage(replicas: float, on_workload: bool) -> None:
    """Whoever owns the workload may say that one replica is enough."""
    state = state_with(
        measured("web-0", annotations={} if on_workload else OPT_IN),
        workloads=[workload("web", replicas=replicas, annotations=OPT_IN if on_workload else {})],
    )
    assert ask("replicas", scene_of(state)) is None


def test_v9_the_deschedulers_opt_in_does_not() -> None:
    """Opting in to being descheduled is not a word about outages."""
    annotations = {"descheduler.alpha.kubernetes.io/evict": "true"}
    state = state_with(measured("web-0", annotations=annotations), workloads=[workload("web", replicas=1)])
    assert ask("replicas", scene_of(state)) is not None


def test_enough_replicas_pass_and_the_policy_says_what_is_enough() -> None:
    """Two of two pass by default; one passes where the policy says so."""
    assert ask("replicas", scene_of(state_with(measured("web-0"), workloads=[workload("web", replicas=2)]))) is None
    one = state_with(measured("web-0"), workloads=[workload("web", replicas=1)])
    assert ask("replicas", scene_of(one, victims=Victims(min_replicas=1))) is None


def test_a_rollout_is_not_disturbed() -> None:
    """The sentence says what the rollout waits for."""
    rolling = state_with(measured("web-0"), workloads=[workload("web", rollout="2 of 3 replicas are updated")])
    assert reason("rollout", scene_of(rolling)) == "Deployment default/web is being rolled out: 2 of 3 replicas are updated"
    assert ask("rollout", scene_of(state_with(measured("web-0")))) is None


@pytest.mark.parametrize(("ago", "refused"), [(-5.0, True), (300.0, True), (899.0, True), (900.0, False), (np.nan, False)])
def test_a_workload_that_was_just_scaled_rests(ago: float, refused: bool) -> None:
    """The load of each replica is about to change; no autoscaler at all is no objection."""
    state = state_with(measured("web-0"), workloads=[workload("web", scaled_at=NOW - ago)])
    refusal = ask("recently-scaled", scene_of(state))
    assert (refusal is not None) is refused
    if ago == 300.0 and refusal is not None:
        assert refusal.reason == "an autoscaler scaled Deployment default/web 5m ago, less than 15m (policy cooldown.workload)"


@pytest.mark.parametrize(("limit", "shown"), [(6.0, "6"), (np.inf, "unlimited")])
def test_n4_a_job_that_counts_evictions_as_failures_is_left_alone(limit: float, shown: str) -> None:
    """The sentence shows how many failures there are and how many may be."""
    job = workload("report", kind="Job", job=JobRules(backoff_limit=limit, failed=2, ignores_disruption=False))
    state = state_with(measured("report-1", workload=JOB), workloads=[job])
    assert reason("job-backoff", scene_of(state)) == (
        f"an eviction counts as a failure of Job default/report (2 failed, backoffLimit {shown}): "
        "no podFailurePolicy rule ignores DisruptionTarget"
    )


def test_a_job_that_ignores_disruptions_may_lose_a_pod() -> None:
    """With the rule an eviction is not a failure."""
    job = workload("report", kind="Job", job=JobRules(backoff_limit=0, failed=0, ignores_disruption=True))
    assert ask("job-backoff", scene_of(state_with(measured("r", workload=JOB), workloads=[job]))) is None


def test_a_job_whose_rules_are_unknown_is_left_alone() -> None:
    """Unknown rules are not generous rules; a Deployment has none to know."""
    assert (
        reason("job-backoff", scene_of(state_with(measured("r", workload=JOB)))) == "what an eviction costs Job default/report is not known"
    )
    assert ask("job-backoff", scene_of(state_with(measured("web-0")))) is None


def test_n1_a_member_of_a_gang_is_not_moved_alone() -> None:
    """The sentence names the gang and what its owner does with a lost member."""
    state = state_with(*(measured(f"w-{i}", scheduling_group="llm-42", restart_policy="Never") for i in range(8)))
    refusal = ask("gang", scene_of(state))
    assert refusal is not None
    assert refusal.reason == "it is a member of gang llm-42 of 8 pods, which moves whole or not at all (restartPolicy Never)"
    assert not refusal.retryable


def test_n4_a_distributed_training_job_is_a_gang_without_any_gang_scheduler() -> None:
    """Workers of a PyTorchJob wait for each other; restartPolicy and backoffLimit are named."""
    ref = WorkloadRef("PyTorchJob", "default", "llm")
    rules = JobRules(backoff_limit=3, failed=0, ignores_disruption=True)
    state = state_with(
        measured("llm-worker-0", workload=ref, restart_policy="OnFailure"), workloads=[workload("llm", kind="PyTorchJob", job=rules)]
    )
    assert reason("gang", scene_of(state)) == (
        "it is a member of PyTorchJob default/llm, which moves whole or not at all (restartPolicy OnFailure, backoffLimit 3)"
    )


def test_n5_a_group_of_one_is_not_a_gang() -> None:
    """Schedulers that give every pod a group do not make it one; a group is told by namespace and name, and the finished are gone."""
    state = state_with(
        measured("web-0", scheduling_group="podgroup-1"),
        measured("web-1"),
        measured("web-2", scheduling_group="podgroup-1", namespace="other"),
        measured("web-3", scheduling_group="podgroup-1", phase=Phase.SUCCEEDED),
    )
    scene = scene_of(state)
    assert [ask("gang", scene, row) for row in range(3)] == [None, None, None]


def test_a_pending_member_makes_a_gang_too() -> None:
    """A gang that waits for its last member is a gang."""
    state = state_with(measured("w-0", scheduling_group="g"), measured("w-1", scheduling_group="g", on=None))
    assert reason("gang", scene_of(state)).startswith("it is a member of gang g of 2 pods")


def ordered(**fields: object) -> object:
    return workload("db", kind="StatefulSet", ordered=True, **fields)


def test_an_ordered_set_gives_a_pod_only_in_full_health() -> None:
    """One pod that is not Ready or terminating stops the set, and with it every repair of higher ordinals."""
    sick = state_with(measured("db-0", workload=SET), measured("db-1", workload=SET, ready=False), workloads=[ordered()])
    leaving = state_with(measured("db-0", workload=SET), measured("db-1", workload=SET, terminating=True), workloads=[ordered()])
    short = state_with(measured("db-0", workload=SET), workloads=[ordered(replicas=3, ready=2)])
    blind = state_with(measured("db-0", workload=SET), workloads=[ordered(replicas=3, ready=np.nan)])
    start = "StatefulSet default/db takes its pods in order and has "
    assert reason("ordered-set", scene_of(sick)) == f"{start}1 not Ready and 0 terminating"
    assert reason("ordered-set", scene_of(leaving)) == f"{start}0 not Ready and 1 terminating"
    assert reason("ordered-set", scene_of(short)) == f"{start}2 of 3 Ready"
    assert reason("ordered-set", scene_of(blind)) == f"{start}an unknown number of 3 Ready"


def test_an_ordered_set_gives_one_pod_a_plan() -> None:
    """The second pod waits, even when a policy would let a workload lose more."""
    state = state_with(measured("db-0", workload=SET), measured("db-1", workload=SET), workloads=[ordered()])
    scene = scene_of(state)
    assert ask("ordered-set", scene, 1) is None
    take(scene, 0)
    assert reason("ordered-set", scene, 1).startswith("this plan already moves a pod of StatefulSet default/db")


def test_a_parallel_set_and_a_deployment_have_no_order() -> None:
    """Only OrderedReady makes one pod wait for another."""
    state = state_with(
        measured("db-0", workload=SET), measured("db-1", workload=SET, ready=False), workloads=[workload("db", kind="StatefulSet")]
    )
    assert ask("ordered-set", scene_of(state)) is None


def test_no_rest_after_scaling_where_the_policy_wants_none() -> None:
    """A cooldown of zero switches the rest off."""
    state = state_with(measured("web-0"), workloads=[workload("web", scaled_at=NOW)])
    assert ask("recently-scaled", scene_of(state, cooldown=Cooldown(workload=0))) is None
