"""From rows to the document: names for rows, null for NaN, and numbers of the whole cluster that are true."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.plan.document import coverage_report, known, known_column
from rebalancer.plan.model import NodeReport, Plan
from rebalancer.policy.model import DEFAULT_SIGNALS, Mode, Pool, Spec, Steering
from rebalancer.state.cluster import Coverage, Share
from rebalancer.state.scheduling import Taint
from tests.plan.deciding import planned
from tests.support.builder import NodeSpec, PodSpec, cluster, node, pod

GIB = 2.0**30


def one_hot(*more: NodeSpec, taints: tuple[Taint, ...] = (), pods: tuple[PodSpec, ...] = ()) -> Any:
    web = pod("web-1", on="hot", workload="web", cpu=1, uses={"cpu": 2.0, "memory": GIB}, tenant="shop", extended={"nvidia.com/gpu": 0})
    return cluster(
        nodes=[
            node("hot", load={"cpu": 0.8, "memory": 0.3}, taints=taints),
            node("cool-a", load={"cpu": 0.2, "memory": 0.1}),
            node("cool-b", load={"cpu": 0.3, "memory": 0.1}),
            *more,
        ],
        pods=[web, *pods],
    )


def report(plan: Plan, name: str) -> NodeReport:
    return next(node for node in plan.nodes if node.name == name)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value: float) -> None:
    """Never 0, and never NaN, which JSON has not."""
    assert known(value) is None


def test_numbers_are_rounded_to_six_digits() -> None:
    """More than any of them deserves."""
    assert known(1 / 3) == 0.333333
    assert known(0.0) == 0.0


def test_an_unknown_node_is_in_the_plan_with_nulls_and_a_reason() -> None:
    """Its other signal is shown as it is."""
    plan = planned(one_hot(node("blind", load={"memory": 0.4}, unknown={"cpu": "no sample"})))
    blind = report(plan, "blind")
    assert (blind.node_class, blind.signals["cpu"].load, blind.signals["cpu"].load_after) == ("unknown", None, None)
    assert blind.signals["memory"].load == pytest.approx(0.4)
    assert "no sample" in blind.reason
    assert plan.summary.unknown_nodes == 1


def test_nothing_in_a_plan_of_a_cluster_with_unknowns_is_nan() -> None:
    """Checked on the whole document, as it is written."""
    blind = node("blind", unknown={"cpu": "no sample", "memory": "no sample"})
    plan = planned(one_hot(blind, pods=(pod("p", on="blind", uses={"cpu": 1.0}), pod("q", on="hot", workload="q"))))
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
    assert b"NaN" not in msgspec.json.encode(plan)


def test_a_move_names_everything_by_name() -> None:
    """Pod, workload, tenant, both ends, usage, and what the replacement will ask for; zero requests are left out."""
    (move,) = planned(one_hot()).moves
    assert (move.pod.namespace, move.pod.name, move.pod.uid) == ("default", "web-1", "uid-default-web-1")
    assert move.workload is not None
    assert (move.workload.kind, move.workload.name, move.tenant) == ("Deployment", "web", "shop")
    assert (move.source, move.destination in ("cool-a", "cool-b")) == ("hot", True)
    assert move.request == {"cpu": 1.0, "memory": GIB, "pods": 1.0}
    cpu = move.signals["cpu"]
    assert (cpu.source_before, cpu.source_after, cpu.usage) == (pytest.approx(0.8), pytest.approx(0.55), 2.0)
    assert cpu.destination_after == pytest.approx((cpu.destination_before or 0) + 0.25)


def test_a_move_shows_only_the_signals_that_its_source_is_judged_by() -> None:
    """A number that nobody judged is no reason."""
    spec = Spec(pools=(Pool(name="default", signals={"cpu": DEFAULT_SIGNALS["cpu"]}),))
    (move,) = planned(one_hot(), spec).moves
    assert set(move.signals) == {"cpu"}


def test_a_move_without_a_tenant_or_owner_has_null_there() -> None:
    """Absent is not a word."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.8, "memory": 0.2}), node("cool", load={"cpu": 0.1, "memory": 0.1})],
        pods=[pod("web-1", on="hot", workload="web", uses={"cpu": 2.0, "memory": GIB})],
    )
    (move,) = planned(state).moves
    assert move.tenant is None


def test_the_summary_is_over_the_judged_signals_of_all_pools() -> None:
    """Before and after: hot nodes, the worst load, the largest spread."""
    summary = planned(one_hot()).summary
    assert (summary.hot_nodes, summary.hot_nodes_after, summary.moves, summary.refused) == (1, 0, 1, 0)
    assert (summary.max_load, summary.max_load_after) == (pytest.approx(0.8), pytest.approx(0.55))
    loads = (0.8, 0.2, 0.3)
    mean = sum(loads) / 3
    assert summary.stddev == pytest.approx(math.sqrt(sum((load - mean) ** 2 for load in loads) / 3), abs=1e-6)
    assert summary.stddev_after is not None
    assert summary.stddev_after < summary.stddev


def test_a_cluster_of_which_nothing_is_known_has_null_for_its_worst_load() -> None:
    """Not "0 %"."""
    unknown = {"cpu": "no sample", "memory": "no sample"}
    summary = planned(cluster(nodes=[node("a", unknown=unknown), node("b", unknown=unknown)])).summary
    assert (summary.max_load, summary.stddev, summary.max_load_after, summary.stddev_after) == (None, None, None, None)
    assert (summary.unknown_nodes, summary.hot_nodes) == (2, 0)


def test_a_node_that_no_pool_claims_does_not_count_for_the_summary() -> None:
    """It is listed, with null for its pool."""
    spec = Spec(pools=(Pool(name="web", node_selector={"matchLabels": {"pool": "web"}}, signals=DEFAULT_SIGNALS),))
    stray = node("stray", load={"cpu": 0.99, "memory": 0.2})
    plan = planned(cluster(nodes=[node("in", labels={"pool": "web"}, load={"cpu": 0.3, "memory": 0.2}), stray]), spec)
    assert plan.summary.max_load == pytest.approx(0.3)
    assert report(plan, "stray").pool is None


def test_soft_taints_are_listed_only_with_moves_and_steered_nodes_are_marked() -> None:
    """The taint steers replacements; without a move there is nothing to steer."""
    plan = planned(one_hot())
    assert plan.soft_taints == ("hot",)
    assert [node.name for node in plan.nodes if node.steered] == ["hot"]
    assert plan.moves[0].prediction == "soft-taint"
    still = planned(cluster(nodes=[node("hot", load={"cpu": 0.8, "memory": 0.2}), node("cool", load={"cpu": 0.1, "memory": 0.1})]))
    assert (still.moves, still.soft_taints) == ((), ())


def test_without_steering_the_plan_says_so() -> None:
    """So that whoever carries it out takes off what an earlier plan left."""
    plan = planned(one_hot(), Spec(steering=Steering(soft_taint=False)))
    assert (plan.soft_tainting, plan.soft_taints) == (False, ())
    assert all(move.prediction == "stock-scores" for move in plan.moves)
    assert planned(one_hot()).soft_tainting is True


@pytest.mark.parametrize(("effect", "ours"), [("PreferNoSchedule", True), ("NoSchedule", False)])
def test_only_our_soft_taint_is_reported_as_ours(effect: str, ours: bool) -> None:
    """The same key with a hard effect is somebody else's, and is never taken off."""
    plan = planned(one_hot(taints=(Taint(key="rebalancer.dev/hot", value="true", effect=effect),)))
    assert report(plan, "hot").tainted is ours


@pytest.mark.parametrize(("mode", "action"), [(Mode.DRY_RUN, "evict"), (Mode.EVICT, "evict"), (Mode.ANNOTATE, "annotate")])
def test_the_action_follows_the_mode(mode: Mode, action: str) -> None:
    """A dry run shows what evict mode would do."""
    plan = planned(one_hot(), mode=mode)
    assert [move.action for move in plan.moves] == [action]
    assert plan.mode == mode.value


def test_refused_candidates_carry_gate_sentence_and_node() -> None:
    """As the report shows them."""
    bare = pod("bare", on="hot", workload=None, uses={"cpu": 0.1, "memory": GIB})
    (refused,) = planned(one_hot(pods=(bare,))).refused
    assert (refused.pod.name, refused.source, refused.gate, refused.retryable) == ("bare", "hot", "bare-pod", False)
    assert refused.reason


def test_coverage_is_that_of_the_worst_signal_and_drops_are_only_those_that_happened() -> None:
    """Infinite ages are no age."""
    coverage = Coverage(
        nodes={"cpu": Share(9, 10), "memory": Share(5, 10)},
        pods={"cpu": Share(0, 0), "memory": Share(30, 40)},
        oldest_sample_s={"cpu": math.inf, "memory": 45.0},
        dropped={"nan": 3, "stale": 0},
        notes=("named by label node",),
    )
    made = coverage_report(coverage)
    assert (made.nodes.known, made.nodes.of, made.pods.known, made.pods.of) == (5, 10, 30, 40)
    assert (made.oldest_sample_seconds, made.dropped, made.notes) == (45.0, {"nan": 3}, ("named by label node",))


def test_a_cluster_without_signals_has_an_empty_coverage() -> None:
    """Nothing known of nothing."""
    made = coverage_report(Coverage(nodes={}, pods={}, oldest_sample_s={}, dropped={}))
    assert (made.nodes.of, made.pods.of, made.oldest_sample_seconds) == (0, 0, None)


def test_a_warning_of_prometheus_stands_first_among_the_notes() -> None:
    """A partial answer is the first thing to know about a plan made from it."""
    state = one_hot()
    state = replace(state, coverage=replace(state.coverage, notes=("by node_exporter",), warnings=("cpu of nodes: store-1 is away",)))
    assert planned(state).coverage.notes == ("Prometheus warns with the answer to cpu of nodes: store-1 is away", "by node_exporter")


@given(st.lists(st.one_of(st.floats(), st.floats(-2, 2), st.integers(-(10**9), 10**9).map(lambda k: k / 2e6)), max_size=30))
def test_a_column_is_written_as_its_numbers_are_one_by_one(values: list[float]) -> None:
    """Rounding many at once gives the very bytes of rounding each, half-way cases, large ones and unknown ones included."""
    assert [repr(value) for value in known_column(np.array(values, dtype=np.float64))] == [repr(known(value)) for value in values]
