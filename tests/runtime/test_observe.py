"""Too little coverage is no basis for a decision: which signal, whose, how much, and who is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from rebalancer.errors import KubernetesError, MetricsMissing
from rebalancer.policy.model import DEFAULT_SIGNALS, Metrics, Pool, Spec
from rebalancer.runtime.observe import MOST_SKEW_S, require_coverage, require_right_clock
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Phase
from tests.support.builder import NOW, NodeSpec, PodSpec, cluster, node, pod

USES = {"cpu": 1.0, "memory": 2.0**30}
SPEC = Spec()


def known_nodes(count: int) -> list[NodeSpec]:
    return [node(f"n{i}", load={"cpu": 0.3, "memory": 0.3}) for i in range(count)]


def blind(name: str, **fields: object) -> NodeSpec:
    return node(name, load={"memory": 0.3}, unknown={"cpu": "no sample"}, **fields)  # type: ignore[arg-type]


def measured(count: int) -> list[PodSpec]:
    return [pod(f"p{i}", on="n0", uses=USES) for i in range(count)]


def sentence(state: ClusterState, spec: Spec = SPEC) -> str:
    with pytest.raises(MetricsMissing) as caught:
        require_coverage(state, spec)
    assert "rebalancer check" in caught.value.remedy
    return caught.value.message


def test_exactly_the_share_that_the_policy_asks_for_is_enough() -> None:
    """Nine of ten, at 90 %."""
    require_coverage(cluster(nodes=[*known_nodes(9), blind("b")], pods=measured(9)), SPEC)


def test_nodes_that_are_missing_are_counted_and_named() -> None:
    """The first few of them, so that one can look."""
    said = sentence(cluster(nodes=[*known_nodes(5), *(blind(f"b{i}") for i in range(5))]))
    assert said.startswith("signal cpu is known for 5 of 10 nodes (50 %), metrics.minCoverage is 90 %")
    assert "b0, b1, b2 and 2 more" in said


def test_pods_that_are_missing_are_counted_and_named() -> None:
    """Known nodes are not enough: victims are pods."""
    said = sentence(cluster(nodes=known_nodes(3), pods=[*measured(3), pod("dark", on="n1", uses={"cpu": 1.0})]))
    assert said.startswith("signal memory is known for 3 of 4 pods (75 %)")
    assert "dark" in said


def test_a_query_that_failed_is_the_reason() -> None:
    """The cause, instead of a list of everybody."""
    state = cluster(nodes=[blind("a"), blind("b")])
    state = replace(state, coverage=replace(state.coverage, failed={"cpu": "Prometheus answered 422 to query node cpu"}))
    assert "Prometheus answered 422 to query node cpu" in sentence(state)


@pytest.mark.parametrize(
    "unmeasured",
    [
        {"age_s": 60.0},
        {"terminating": True},
        {"on": None},
        {"phase": Phase.SUCCEEDED},
    ],
)
def test_a_pod_that_cannot_have_a_sample_yet_or_any_more_is_not_missing(unmeasured: dict[str, object]) -> None:
    """A rollout of half the cluster must not look like a broken Prometheus."""
    young = [pod(f"y{i}", **{"on": "n1", **unmeasured}) for i in range(5)]  # type: ignore[arg-type]
    require_coverage(cluster(nodes=known_nodes(3), pods=[*measured(2), *young]), SPEC)


def test_a_node_that_is_not_ready_is_not_missing() -> None:
    """Its exporter is as dead as it is; gates and the breaker see to it."""
    require_coverage(cluster(nodes=[*known_nodes(2), blind("dead", ready=False)]), SPEC)


def test_only_the_pools_that_are_judged_by_a_signal_must_know_it() -> None:
    """An exporter that only some nodes have covers their pool whole."""
    pools = (
        Pool(name="a", node_selector={"matchLabels": {"pool": "a"}}, signals=DEFAULT_SIGNALS),
        Pool(name="b", node_selector={"matchLabels": {"pool": "b"}}, signals={"memory": DEFAULT_SIGNALS["memory"]}),
    )
    nodes = [node("seen", load={"cpu": 0.3, "memory": 0.3}, labels={"pool": "a"}), blind("unjudged", labels={"pool": "b"})]
    require_coverage(cluster(nodes=nodes), Spec(pools=pools))
    nodes = [blind("judged", labels={"pool": "a"}), nodes[1]]
    assert sentence(cluster(nodes=nodes), Spec(pools=pools)).startswith("signal cpu is known for 0 of 1 nodes (0 %)")


def test_a_share_that_was_lowered_is_respected() -> None:
    """The operator knows that half the nodes have no exporter."""
    require_coverage(cluster(nodes=[*known_nodes(1), blind("b")]), Spec(metrics=Metrics(min_coverage=50)))


def test_nothing_to_know_is_covered() -> None:
    """An empty cluster is no failure of Prometheus."""
    require_coverage(cluster(nodes=[]), SPEC)


@dataclass(frozen=True)
class Server:
    """A client, as far as its server's clock is asked for."""

    server_now: float | None
    server: str = "https://api"


@pytest.mark.parametrize("skew_s", [-MOST_SKEW_S, -5.0, 0.0, MOST_SKEW_S])
def test_a_clock_that_is_about_right_is_right(skew_s: float) -> None:
    """A minute is no other time."""
    require_right_clock(Server(NOW - skew_s), now=NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(("skew_s", "words"), [(-3600.0, "1h behind"), (3600.0, "1h ahead of"), (-61.0, "1m1s behind")])
def test_a_clock_that_is_off_ends_the_cycle_and_says_by_how_much(skew_s: float, words: str) -> None:
    """Prometheus would be asked for another hour, and its answer would look fresh."""
    with pytest.raises(KubernetesError, match=f"this machine's clock is {words} that of https://api") as caught:
        require_right_clock(Server(NOW - skew_s), now=NOW)  # type: ignore[arg-type]
    assert caught.value.remedy == "synchronise the clocks; nothing was moved"


def test_a_server_that_tells_no_time_is_believed() -> None:
    """Nothing is known about its clock, so nothing is held against ours."""
    require_right_clock(Server(None), now=NOW)  # type: ignore[arg-type]
