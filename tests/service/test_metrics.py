"""What is exported after a cycle: the names, the closed sets of labels, and nothing that is unknown."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rebalancer.act.annotating_nodes import Kind, PatchResult
from rebalancer.act.outcome import Outcome, Result
from rebalancer.act.tainting import TaintResult
from rebalancer.collect.sanity import DropReason
from rebalancer.detect.classify import detect
from rebalancer.guard.breaker import BreakerCause
from rebalancer.guard.catalogue import gate_names
from rebalancer.guard.landings import LandingRate
from rebalancer.plan.grades import SOFT_TAINTS
from rebalancer.plan.model import Plan, RefusedCandidate
from rebalancer.plan.planner import decide
from rebalancer.plan.reasons import PlanGate
from rebalancer.policy.model import Mode, built_in_policy
from rebalancer.policy.reload import Reload
from rebalancer.runtime.memory import Landing, LandingResult, OpenMove
from rebalancer.runtime.metrics import CycleEnd, Metrics
from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import DeviceFault, FaultReason
from rebalancer.state.gpu import Scheme
from rebalancer.state.history import NOTHING_HAPPENED, PastEviction
from rebalancer.state.scheduling import Taint
from tests.support.builder import NOW, cluster, node, pod

POLICY = built_in_policy(mode=Mode.EVICT)

CONTRACT = {
    "build_info",
    "cycles",
    "cycle_duration_seconds",
    "cycles_missed",
    "moves",
    "refusals",
    "node_load_ratio",
    "node_packing_ratio",
    "nodes",
    "pool_load_stddev_ratio",
    "metric_coverage_ratio",
    "metric_oldest_sample_seconds",
    "samples_dropped",
    "move_landing",
    "move_gain_ratio",
    "breaker_open",
    "leader",
    "policy_reload",
    "tenant_requested",
    "tenant_used",
}


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name.removeprefix("rebalancer_"), frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, frozenset(labels.items())))


def hot_cluster() -> ClusterState:
    return cluster(
        nodes=[node("hot", load={"cpu": 0.9, "memory": 0.2}), node("cool", load={"cpu": 0.1, "memory": 0.1})],
        pods=[pod(f"web-{n}", on="hot", workload=f"web-{n}", cpu=1, uses={"cpu": 1.5, "memory": 2**30}, tenant="shop") for n in range(4)],
    )


def plan_of(state: ClusterState) -> Plan:
    findings = detect(state, POLICY.spec)
    return decide(state=state, findings=findings, policy=POLICY, history=NOTHING_HAPPENED, mode=Mode.EVICT, mode_source="a test").plan


def observed(state: ClusterState) -> Metrics:
    metrics = Metrics()
    metrics.observed(state, detect(state, POLICY.spec))
    return metrics


def test_load_annotations_are_counted_by_kind_and_result_and_gone_with_the_leadership() -> None:
    """Counters stand at 0 from the start; an age that is unknown is NaN."""
    metrics = Metrics()
    assert {value(metrics, "node_annotations_total", kind=kind.value, result=result.value) for kind in Kind for result in PatchResult} == {
        0
    }
    metrics.annotated({(Kind.OWN, PatchResult.WRITTEN): 5}, oldest_s={"own": 130.0})
    metrics.annotated({(Kind.OWN, PatchResult.WRITTEN): 2, (Kind.CRANE, PatchResult.FOREIGN): 1}, oldest_s={"own": 90.0})
    assert value(metrics, "node_annotations_total", kind="own", result="written") == 7
    assert value(metrics, "node_annotations_total", kind="crane", result="foreign") == 1
    assert value(metrics, "node_annotation_oldest_seconds", kind="own") == 90
    metrics.stood_down()
    assert math.isnan(value(metrics, "node_annotation_oldest_seconds", kind="own") or 0.0)


def test_all_promised_metrics_are_exported() -> None:
    """Every name of the documentation is there after one cycle, under one prefix."""
    metrics = observed(hot_cluster())
    families = {family.name for family in text_string_to_metric_families(metrics.exposition().decode())}
    assert all(name.startswith("rebalancer_") for name in families)
    assert {f"rebalancer_{name}" for name in CONTRACT} - families == set()


def test_counters_stand_at_zero_before_anything_happens() -> None:
    """An alert on an increase sees the first event too."""
    now = samples(Metrics())
    for gate in (*gate_names(), *(gate.value for gate in PlanGate)):
        assert now["refusals_total", frozenset({("gate", gate)})] == 0
    for reason in DropReason:
        assert now["samples_dropped_total", frozenset({("reason", reason.value)})] == 0
    for end in CycleEnd:
        assert now["cycles_total", frozenset({("result", end.value)})] == 0
    for result in Result:
        assert now["moves_total", frozenset({("reason", "balance"), ("mode", "evict"), ("outcome", result.value)})] == 0


def test_soft_taints_are_counted_by_grade_and_their_patches_by_result() -> None:
    """Nodes as the cycle found them; results from a closed set that stands at zero before anything happens."""
    both = [Taint(taint.key, taint.value, taint.effect) for taint in SOFT_TAINTS]
    hard = Taint("rebalancer.dev/hot", "true", "NoSchedule")
    metrics = observed(cluster(nodes=[node("hot", taints=both), node("warm", taints=both[1:]), node("theirs", taints=[hard])], pods=[]))
    assert (value(metrics, "soft_taints", grade="hot"), value(metrics, "soft_taints", grade="warm")) == (1, 2)
    assert {value(metrics, "soft_taint_patches_total", result=result.value) for result in TaintResult} == {0}
    metrics.soft_taint_patched(TaintResult.CONFLICT)
    assert value(metrics, "soft_taint_patches_total", result="conflict") == 1


def test_two_services_in_one_process_do_not_share_counts() -> None:
    """The registry is no global."""
    one, other = Metrics(), Metrics()
    one.cycle_missed()
    assert (value(one, "cycles_missed_total"), value(other, "cycles_missed_total")) == (1, 0)


def test_no_series_tells_when_a_counter_was_created() -> None:
    """They would double every counter."""
    assert not [name for name, _ in samples(Metrics()) if name.endswith("_created")]


def test_e4_a_node_has_its_load_packing_age_class_and_its_pool_the_marks() -> None:
    """Everything that a decision was made from is a metric."""
    metrics = observed(hot_cluster())
    assert value(metrics, "node_load_ratio", node="hot", signal="cpu") == pytest.approx(0.9)
    assert value(metrics, "node_packing_ratio", node="hot", signal="cpu") == pytest.approx(0.5)
    assert value(metrics, "node_sample_age_seconds", node="hot", signal="cpu") == 30
    assert value(metrics, "node_class", **{"node": "hot", "class": "hot"}) == 1
    assert value(metrics, "nodes", **{"pool": "default", "class": "hot"}) == 1
    assert value(metrics, "nodes", **{"pool": "default", "class": "unknown"}) == 0
    assert value(metrics, "pool_threshold_ratio", pool="default", signal="cpu", mark="high") == pytest.approx(0.7)
    assert value(metrics, "pool_load_stddev_ratio", pool="default", signal="cpu") == pytest.approx(0.4)


def test_what_is_unknown_has_no_sample() -> None:
    """A gap in the graph, never a zero."""
    state = cluster(nodes=[node("blind", unknown={"cpu": "stale"}, load={"memory": 0.5}), node("seen", load={"cpu": 0.5, "memory": 0.5})])
    metrics = observed(state)
    assert value(metrics, "node_load_ratio", node="blind", signal="cpu") is None
    assert value(metrics, "node_load_ratio", node="blind", signal="memory") == pytest.approx(0.5)
    assert value(metrics, "node_class", **{"node": "blind", "class": "unknown"}) == 1


def test_faults_of_gpus_are_counted_by_reason_and_stand_at_zero() -> None:
    """Every reason has its series, in a cluster without GPUs as well."""
    fault = DeviceFault("n", "", Scheme.HAMI, FaultReason.TWO_SCHEMES, "node n: its devices are handed out twice")
    metrics = observed(cluster(nodes=[node("n", load={"cpu": 0.5})], gpu_faults=[fault, fault]))
    assert value(metrics, "gpu_faults", reason="two-schemes") == 2
    assert {value(metrics, "gpu_faults", reason=each.value) for each in FaultReason if each is not FaultReason.TWO_SCHEMES} == {0}


def test_a_node_that_is_gone_leaves_nothing_behind() -> None:
    """Its last load would else be shown for ever."""
    metrics = observed(cluster(nodes=[node("old", load={"cpu": 0.5}), node("kept", load={"cpu": 0.5})]))
    state = cluster(nodes=[node("kept", load={"cpu": 0.6})])
    metrics.observed(state, detect(state, POLICY.spec))
    assert {dict(labels).get("node") for _, labels in samples(metrics)} - {None} == {"kept"}


def test_no_label_holds_the_name_of_a_pod() -> None:
    """Series would come and go with every roll-out."""
    metrics = observed(hot_cluster())
    metrics.planned(plan_of(hot_cluster()))
    assert "web-" not in metrics.exposition().decode()


def test_a_plan_is_counted_by_method_mode_and_gate() -> None:
    """Planned moves, refusals by gate, and the worst of the cluster before and after."""
    plan, metrics = plan_of(hot_cluster()), Metrics()
    assert plan.moves
    metrics.planned(plan)
    assert value(metrics, "moves_total", reason="balance", mode="evict", outcome="planned") == len(plan.moves)
    assert value(metrics, "plan_hot_nodes", when="before") == 1
    assert value(metrics, "mode", mode="evict") == 1
    assert value(metrics, "mode", mode="dry-run") == 0
    refused = sum(count for (name, _), count in samples(metrics).items() if name == "refusals_total")
    assert refused == len(plan.refused)


def test_outcomes_are_counted_by_result_and_repeats_apart() -> None:
    """What became of each move, and how many moved a workload again."""
    plan, metrics = plan_of(hot_cluster()), Metrics()
    metrics.moved(plan, [Outcome(plan.moves[0], Result.EVICTED, ""), Outcome(plan.moves[0], Result.BLOCKED, "")], repeats=1)
    assert value(metrics, "moves_total", reason="balance", mode="evict", outcome="evicted") == 1
    assert value(metrics, "moves_total", reason="balance", mode="evict", outcome="blocked") == 1
    assert value(metrics, "repeat_moves_total") == 1


def test_e2_a_word_outside_of_its_closed_set_counts_as_other() -> None:
    """No gate, method or reason that somebody makes up can make a series of its own."""
    plan = plan_of(hot_cluster())
    odd = replace_plan(plan, gate="made-up", method="made-up")
    metrics = Metrics()
    metrics.planned(odd)
    metrics.observed(with_dropped(hot_cluster(), {"made-up": 3, "nan": 2}), detect(hot_cluster(), POLICY.spec))
    assert "made-up" not in metrics.exposition().decode()
    assert value(metrics, "refusals_total", gate="other") == 1
    assert value(metrics, "samples_dropped_total", reason="other") == 3
    assert value(metrics, "samples_dropped_total", reason="nan") == 2


def replace_plan(plan: Plan, *, gate: str, method: str) -> Plan:
    refused = RefusedCandidate(pod=plan.moves[0].pod, source="hot", gate=gate, reason="", retryable=False)
    return msgspec.structs.replace(plan, refused=(refused,), method=method)


def with_dropped(state: ClusterState, dropped: dict[str, int]) -> ClusterState:
    return replace(state, coverage=replace(state.coverage, dropped=dropped))


def test_stages_are_timed_and_so_is_the_whole() -> None:
    """A stage that was not reached is not counted."""
    metrics = Metrics()
    metrics.cycle_ended(CycleEnd.MOVED, at=NOW, seconds={"kubernetes": 0.2, "plan": 0.3})
    assert value(metrics, "cycle_duration_seconds_count", stage="plan") == 1
    assert value(metrics, "cycle_duration_seconds_count", stage="act") == 0
    assert value(metrics, "cycle_duration_seconds_sum", stage="total") == pytest.approx(0.5)
    assert value(metrics, "last_cycle_timestamp_seconds") == NOW


def test_a_failed_cycle_does_not_look_like_a_fresh_one() -> None:
    """The time of the last good cycle stands still, so that an alert can see it."""
    metrics = Metrics()
    metrics.cycle_ended(CycleEnd.MOVED, at=NOW, seconds={})
    metrics.cycle_ended(CycleEnd.FAILED, at=NOW + 500, seconds={})
    assert value(metrics, "last_cycle_timestamp_seconds") == NOW
    assert value(metrics, "cycles_total", result="failed") == 1


def landing(result: LandingResult, share: float) -> Landing:
    eviction = PastEviction(
        at=NOW, pod_uid="u", namespace="n", pod="p", workload=None, controller_uid="", tenant=None, source="hot", destination="cool"
    )
    move = OpenMove(eviction=eviction, alternatives=(), predicted_gain=0.1, source_before={"cpu": 0.9}, predicted_source_after={"cpu": 0.7})
    return Landing(move=move, result=result, at=NOW, node="cool", seconds=30, realised_share=share)


def test_landings_show_what_was_predicted_and_what_came() -> None:
    """A landing whose effect cannot be known is counted and says nothing about the gain."""
    metrics = Metrics()
    metrics.settled([landing(LandingResult.AS_PLANNED, 0.5), landing(LandingResult.SOURCE, math.nan)])
    assert value(metrics, "move_landing_total", result="as-planned") == 1
    assert value(metrics, "move_landing_total", result="source") == 1
    assert value(metrics, "move_gain_ratio", kind="predicted") == pytest.approx(0.2)
    assert value(metrics, "move_gain_ratio", kind="realised") == pytest.approx(0.1)


def test_the_share_of_hits_is_shown_when_enough_moves_say_something() -> None:
    """NaN before, with too few, and on a replica that stands by: unknown is not zero."""
    metrics = Metrics()
    both = [lambda on=on: value(metrics, "landing_hit_ratio", on=on) for on in ("named", "planned")]
    assert all(math.isnan(one()) for one in both)
    metrics.landed(LandingRate(moves=10, named=8, planned=5), min_moves=10)
    assert [one() for one in both] == [0.8, 0.5]
    metrics.landed(LandingRate(moves=9, named=8, planned=5), min_moves=10)
    assert all(math.isnan(one()) for one in both)
    metrics.landed(LandingRate(moves=10), min_moves=10)
    assert [one() for one in both] == [0, 0]
    metrics.stood_down()
    assert all(math.isnan(one()) for one in both)


def test_the_breaker_opens_and_closes_by_cause() -> None:
    """One series for each cause, 0 while it holds nothing open."""
    metrics = Metrics()
    metrics.breaker([BreakerCause.NODES_NOT_READY])
    opened = value(metrics, "breaker_open", reason=BreakerCause.NODES_NOT_READY.value)
    metrics.breaker([])
    assert (opened, value(metrics, "breaker_open", reason=BreakerCause.NODES_NOT_READY.value)) == (1, 0)


def test_leadership_and_reloads_are_shown() -> None:
    """Who leads, and whether the policy file could be read."""
    metrics = Metrics()
    metrics.leads(True)
    metrics.reloaded(Reload.FAILED)
    assert value(metrics, "leader") == 1
    assert value(metrics, "policy_reload_total", result="failed") == 1


def test_tenants_show_what_they_ask_for_and_what_they_use() -> None:
    """Sums over their pods, with the share of pods that is known."""
    metrics = observed(hot_cluster())
    assert value(metrics, "tenant_requested", tenant="shop", resource="cpu") == 4
    assert value(metrics, "tenant_used", tenant="shop", resource="cpu") == pytest.approx(6)
    assert value(metrics, "tenant_used_coverage_ratio", tenant="shop", resource="cpu") == 1


def test_a_tenant_of_whom_nothing_is_known_has_no_usage() -> None:
    """Nothing measured is not nothing used."""
    state = cluster(nodes=[node("a", load={"cpu": 0.5, "memory": 0.5})], pods=[pod("x", on="a", tenant="shop")])
    metrics = observed(state)
    assert value(metrics, "tenant_used", tenant="shop", resource="cpu") is None
    assert value(metrics, "tenant_used_coverage_ratio", tenant="shop", resource="cpu") == 0


def test_coverage_and_age_are_shown_by_signal() -> None:
    """How much of the cluster a decision could see."""
    state = cluster(nodes=[node("blind", unknown={"cpu": "stale"}), node("seen", load={"cpu": 0.5})])
    state = replace(state, coverage=replace(state.coverage, oldest_sample_s={"cpu": 40.0, "memory": np.nan}))
    metrics = observed(state)
    assert value(metrics, "metric_coverage_ratio", subject="nodes", signal="cpu") == 0.5
    assert value(metrics, "metric_oldest_sample_seconds", signal="cpu") == 40
    assert value(metrics, "metric_oldest_sample_seconds", signal="memory") is None
