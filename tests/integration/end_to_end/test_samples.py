"""Samples that are old, absent, no numbers, double, or another cluster's: what is unknown moves nobody, the rest is judged as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from rebalancer.plan.model import NodeReport, Plan
from tests.integration.end_to_end.conftest import Town
from tests.integration.end_to_end.town import (
    CORES,
    HOT,
    MEMORY,
    NODES,
    VICTIM,
    Labels,
    Running,
    Weather,
    address,
    instants,
    node_series,
    pod_series,
    series,
)
from tests.support.prometheus_server import PrometheusServer, Samples, StartPrometheus, openmetrics

pytestmark = pytest.mark.prometheus

LATER_S = 1800.0
SILENCE_S = -220.0
Serve = Callable[..., str]


@pytest.fixture
def serve(start_prometheus: StartPrometheus, now: float) -> Iterator[Serve]:
    """Start a real Prometheus that holds the town's series in some weather, for the next half hour too; gives its address."""
    started: list[PrometheusServer] = []

    def serving(weather: Weather | None = None, *, also: Sequence[Samples] = (), without_pod: str = "") -> str:
        samples = [*series(now, weather=weather or Weather(), until=LATER_S), *also]
        samples = [one for one in samples if not without_pod or one.labels.get("pod") != without_pod]
        started.append(start_prometheus(blocks=openmetrics(samples)))
        return started[-1].url

    yield serving
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def fair(start_prometheus: StartPrometheus, shared_town: Town, now: float) -> Plan:
    """The plan when nothing is wrong."""
    server = start_prometheus(blocks=openmetrics(series(now)))
    plan = shared_town.look(server.url).decision.plan
    server.stop()
    return plan


def of(plan: Plan, name: str) -> NodeReport:
    return next(node for node in plan.nodes if node.name == name)


def classes(plan: Plan, *, but: str) -> Mapping[str, tuple[str, str]]:
    return {node.name: (node.node_class, node.reason) for node in plan.nodes if node.name != but}


def assert_nothing_moves_since_the_hot_node_is_unknown(plan: Plan, fair: Plan) -> None:
    """Neither source nor idle: no move, no load of 0, the others exactly as without it."""
    assert plan.moves == ()
    assert plan.outcome == "nothing to do: none of 11 nodes with a known load is hot; 1 more have an unknown load"
    assert of(plan, HOT).node_class == "unknown"
    assert plan.summary.unknown_nodes == 1
    assert classes(plan, but=HOT) == classes(fair, but=HOT)


def test_m1_a_hot_node_whose_exporter_fell_silent_is_named_and_no_source(serve: Serve, shared_town: Town, fair: Plan) -> None:
    """Its last value was high, and is more than three minutes old."""
    plan = shared_town.look(serve(Weather(silent={HOT: SILENCE_S}))).decision.plan
    assert_nothing_moves_since_the_hot_node_is_unknown(plan, fair)
    assert of(plan, HOT).reason.startswith("cpu load unknown: last sample is 3m45s old, limit 3m; memory load unknown: ")
    assert of(plan, HOT).signals["cpu"].load is None


def test_m1_a_silent_node_is_no_destination(serve: Serve, shared_town: Town, fair: Plan) -> None:
    """The scheduler would choose it all the same, so the move is refused rather than made blindly, and the sentence says why."""
    chosen = fair.moves[0].destination
    plan = shared_town.look(serve(Weather(silent={chosen: SILENCE_S}))).decision.plan
    assert plan.moves == ()
    assert of(plan, HOT).node_class == "hot"
    assert of(plan, chosen).node_class == "unknown"
    refused = next(refused for refused in plan.refused if refused.pod.name == VICTIM)
    assert refused.gate == "no-better-place"
    assert refused.reason.startswith(f"kube-scheduler's scores would put it on {chosen}, whose load is unknown (cpu load unknown: last")


def test_m1_the_command_names_the_stale_node_and_ends_well(serve: Serve, shared_town: Town) -> None:
    """`rebalancer plan -o json`: nothing to do is status 0 with an empty list, the reason at the node."""
    ran = shared_town.command(serve(Weather(silent={HOT: SILENCE_S})), "plan", "-o", "json", "--exit-code").ended(0)
    assert ran.document["moves"] == []
    node = next(node for node in ran.document["nodes"] if node["name"] == HOT)
    assert node["class"] == "unknown"
    assert node["signals"]["cpu"]["load"] is None
    assert "old, limit 3m" in node["reason"]


def test_a_node_without_series_is_unknown_and_says_which_query_was_asked(serve: Serve, shared_town: Town, fair: Plan) -> None:
    """The exporter was never installed on the hot node."""
    plan = shared_town.look(serve(Weather(missing=frozenset({HOT})))).decision.plan
    assert_nothing_moves_since_the_hot_node_is_unknown(plan, fair)
    assert of(plan, HOT).reason.startswith("cpu load unknown: no series of cpu of nodes (node_exporter) speaks of it")
    assert (plan.coverage.nodes.known, plan.coverage.nodes.of) == (11, 12)


def test_m8_a_nan_on_the_hot_node_changes_nothing_for_the_others(serve: Serve, shared_town: Town, fair: Plan) -> None:
    """Its CPU is known and high, but the pool is judged by memory too, and that is NaN."""
    plan = shared_town.look(serve(Weather(nan_memory=frozenset({HOT})))).decision.plan
    assert_nothing_moves_since_the_hot_node_is_unknown(plan, fair)
    assert of(plan, HOT).reason == "memory load unknown: its newest sample is no possible amount (nan)"
    assert of(plan, HOT).signals["cpu"].load == pytest.approx(0.88, abs=1e-3)
    assert of(plan, HOT).signals["memory"].load is None
    assert plan.coverage.dropped["nan"] == 10


def test_m8_a_nan_on_a_cool_node_stops_nobody(serve: Serve, shared_town: Town, fair: Plan) -> None:
    """A peer took such a node for idle and stopped all evictions: here the hot node is relieved as if it were not there."""
    elsewhere = next(name for name in NODES[1:] if name not in (fair.moves[0].destination, *fair.moves[0].alternatives))
    plan = shared_town.look(serve(Weather(nan_memory=frozenset({elsewhere})))).decision.plan
    assert plan.moves == fair.moves
    assert of(plan, elsewhere).node_class == "unknown"
    assert classes(plan, but=elsewhere) == classes(fair, but=elsewhere)


def test_m9_series_of_another_cluster_change_nothing_and_are_counted(serve: Serve, shared_town: Town, fair: Plan, now: float) -> None:
    """Its nodes are at 101 %, its addresses are ours, its pods have our pods' names: the plan is the same, byte by byte of each move."""
    strangers: list[Samples] = []
    for name in NODES[:2]:
        other = {"job": "node", "node": f"other-{name}", "instance": f"{address(name)}:9100", "cluster": "b"}
        labels = Labels(node=other, pod=other)
        strangers += node_series(labels, name, cores=CORES * 1.01, memory=MEMORY, times=instants(now, until=LATER_S))
    stranger = Running(VICTIM, "web", HOT, 7.0)
    strangers += pod_series(labels, stranger, times=instants(now, until=LATER_S))
    plan = shared_town.look(serve(also=strangers)).decision.plan
    assert plan.moves == fair.moves
    assert plan.nodes == fair.nodes
    assert plan.coverage.dropped["foreign"] >= 2 * 2 * 10
    assert any('2 series match no node of the cluster: {cluster="b"' in note for note in plan.coverage.notes)


def test_m10_two_living_series_for_the_hot_node_are_ambiguous(serve: Serve, shared_town: Town, fair: Plan) -> None:
    """Neither is believed, and both label sets are shown."""
    plan = shared_town.look(serve(Weather(twice=frozenset({HOT})))).decision.plan
    assert_nothing_moves_since_the_hot_node_is_unknown(plan, fair)
    reason = of(plan, HOT).reason
    assert reason.startswith("cpu load unknown: ambiguous: 2 series: {instance=")
    assert 'replica="b"' in reason


def test_v4_a_pod_that_nobody_measures_is_never_the_victim(serve: Serve, shared_town: Town) -> None:
    """The best victim has no series: it is refused by name, and the next best pods go instead."""
    plan = shared_town.look(serve(without_pod=VICTIM)).decision.plan
    assert [(move.pod.name, move.source) for move in plan.moves] == [("api-hot", HOT), ("cache-hot", HOT)]
    refused = next(refused for refused in plan.refused if refused.pod.name == VICTIM)
    assert (refused.gate, refused.retryable) == ("unknown-usage", True)
    assert "cpu" in refused.reason


def test_too_little_coverage_is_status_5_with_the_numbers(serve: Serve, shared_town: Town) -> None:
    """Half of the exporters are silent: what is left is not the cluster, and nothing is decided by it."""
    ran = shared_town.command(serve(Weather(silent=dict.fromkeys(NODES[6:], SILENCE_S))), "plan").ended(5)
    assert ran.out == ""
    assert ran.error.startswith("Error: signal cpu is known for 6 of 12 nodes (50 %), metrics.minCoverage is 90 %")
    assert "nothing was moved" in ran.error
