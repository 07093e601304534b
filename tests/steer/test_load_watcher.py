"""What load-watcher's clients are told, to the byte, and what they are not told."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.state.cluster import ClusterState
from rebalancer.state.ledger import node_load
from rebalancer.steer.load_watcher import FRESH_FOR_S, WatchedLoads, health, watched_loads, watcher
from tests.support.builder import NOW, cluster, node, pod

NAN = math.nan
WHY = "this process has not read the cluster yet"


def loads(*, mean: object, deviation: object = None, latest: object = None, at: float = 1_700_000_000.0) -> WatchedLoads:
    """Of nodes a, b, ...: (CPU, Memory) each."""
    means = np.array(mean, dtype=np.float64).reshape(-1, 2)
    unknown = np.full(means.shape, NAN)
    rest = [unknown if each is None else np.array(each, dtype=np.float64).reshape(-1, 2) for each in (deviation, latest)]
    return WatchedLoads(tuple("abcdefgh"[: len(means)]), means, rest[0], rest[1], window_s=900.0, at=at)


def told(given: WatchedLoads, *, host: str = "", now: float | None = None) -> dict[str, dict[tuple[str, str], float]]:
    """node -> (type, operator) -> value."""
    answer = watcher(given, host=host, now=given.at if now is None else now, why_none=WHY)
    assert answer.status == 200
    nodes = json.loads(answer.body)["data"]["NodeMetricsMap"]
    return {name: {(each["type"], each["operator"]): each["value"] for each in one["metrics"]} for name, one in nodes.items()}


def of(state: ClusterState) -> dict[str, dict[tuple[str, str], float]]:
    return told(watched_loads(state, node_load(state)))


def test_the_answer_is_that_of_load_watcher_to_the_byte() -> None:
    """Keys in its order, numbers as Go writes them."""
    answer = watcher(loads(mean=[0.125, 0.5], deviation=[0.01234567, NAN]), now=1_700_000_000.0, why_none=WHY)
    assert answer.body == (
        b'{"timestamp":1700000000,"window":{"duration":"15m","start":1699999100,"end":1700000000},"source":"rebalancer",'
        b'"data":{"NodeMetricsMap":{"a":{"metrics":['
        b'{"name":"cpu","type":"CPU","operator":"AVG","rollup":"15m","value":12.5},'
        b'{"name":"cpu","type":"CPU","operator":"STD","rollup":"15m","value":1.2346},'
        b'{"name":"memory","type":"Memory","operator":"AVG","rollup":"15m","value":50}'
        b'],"tags":{},"metadata":{}}}}}'
    )


def test_the_mean_stands_behind_the_latest() -> None:
    """TargetLoadPacking takes whichever comes last."""
    answer = watcher(loads(mean=[0.2, 0.3], latest=[0.9, NAN]), now=1_700_000_000.0, why_none=WHY)
    metrics = json.loads(answer.body)["data"]["NodeMetricsMap"]["a"]["metrics"]
    assert [(each["type"], each["operator"]) for each in metrics] == [("CPU", "Latest"), ("CPU", "AVG"), ("Memory", "AVG")]


def test_what_is_unknown_is_left_out_and_so_is_a_node_without_anything() -> None:
    """A deviation alone is nothing to place pods by."""
    given = loads(mean=[[0.5, NAN], [NAN, NAN], [NAN, 0.25]], deviation=[[NAN, NAN], [0.1, 0.1], [0.1, NAN]])
    assert told(given) == {"a": {("CPU", "AVG"): 50.0}, "c": {("CPU", "STD"): 10.0, ("Memory", "AVG"): 25.0}}


def test_one_host_is_told_alone() -> None:
    """By its name."""
    assert told(loads(mean=[[0.5, 0.5], [0.1, 0.2]]), host="b") == {"b": {("CPU", "AVG"): 10.0, ("Memory", "AVG"): 20.0}}


@pytest.mark.parametrize("host", ["stranger", "b", "A", " "])
def test_a_host_of_which_nothing_is_known_is_not_found(host: str) -> None:
    """404, whether the node is not there or its load is unknown."""
    answer = watcher(loads(mean=[[0.5, 0.5], [NAN, NAN]]), host=host, now=1_700_000_000.0, why_none=WHY)
    assert (answer.status, answer.body) == (404, b'{"error":"nothing is known of a node of that name"}')


@pytest.mark.parametrize(
    ("given", "late_s", "words"),
    [
        (None, 0.0, WHY),
        (loads(mean=[0.5, 0.5]), FRESH_FOR_S + 1, "the last reading of the cluster is 301 s old, at most 300 s are told"),
        (loads(mean=[NAN, NAN]), 0.0, "the load of no node is known"),
        (loads(mean=[]), 0.0, "the load of no node is known"),
    ],
    ids=["never read", "stale", "all unknown", "no nodes"],
)
@pytest.mark.parametrize("host", ["", "a"])
def test_without_data_the_status_says_so_and_the_body_why(given: WatchedLoads | None, late_s: float, words: str, host: str) -> None:
    """500, upon which a client keeps what it has; and 503 of its health."""
    now = 1_700_000_000.0 + late_s
    answer = watcher(given, host=host, now=now, why_none=WHY)
    assert (answer.status, json.loads(answer.body)) == (500, {"error": words})
    assert health(given, now=now, why_none=WHY).status == 503


def test_health_is_good_while_there_is_data() -> None:
    """Without a body, as load-watcher's."""
    good = health(loads(mean=[0.5, 0.5]), now=1_700_000_000.0 + FRESH_FOR_S, why_none=WHY)
    assert (good.status, good.body) == (200, b"")


def test_the_mean_is_the_load_of_now() -> None:
    """What a pod that left took with it is not told any more, what came is."""
    state = cluster(
        nodes=[node("a", cpu=10, usage={"cpu": 6.0}, departed={"cpu": 2.0})],
        pods=[pod("new", on="a", uses={"cpu": 1.0}, estimated=["cpu"])],
    )
    assert of(state)["a"]["CPU", "AVG"] == pytest.approx(50.0)


def test_the_window_is_the_policys_own_and_ends_with_the_reading() -> None:
    """Clients add the pods that were bound after its end."""
    state = replace(cluster(nodes=[node("a", load={"cpu": 0.5})], pods=[]), window_s=300.0)
    given = watched_loads(state, node_load(state))
    window = json.loads(watcher(given, now=NOW, why_none=WHY).body)["window"]
    assert window == {"duration": "5m", "start": int(NOW) - 300, "end": int(NOW)}


def test_the_deviation_is_that_of_the_nodes_last_windows() -> None:
    """Of those that are known, if they are three at least."""
    rising = [NAN] * 6 + [0.2, 0.4, 0.6, NAN]
    state = cluster(nodes=[node("a", load={"cpu": 0.6}, history={"cpu": rising}), node("flat", load={"cpu": 0.5})], pods=[])
    assert of(state)["a"]["CPU", "STD"] == pytest.approx(100 * np.std([0.2, 0.4, 0.6]), abs=1e-4)
    assert of(state)["flat"]["CPU", "STD"] == 0


def test_where_windows_are_too_few_the_deviation_is_that_of_the_pods() -> None:
    """And where no pod has one, it is unknown, not 0."""
    few = {"cpu": [NAN] * 8 + [0.5, 0.6]}
    state = cluster(
        nodes=[node("a", cpu=10, load={"cpu": 0.6}, history=few), node("b", cpu=10, load={"cpu": 0.6}, history=few)],
        pods=[
            pod("p", on="a", uses={"cpu": 3.0}, deviation={"cpu": 0.3}),
            pod("q", on="a", uses={"cpu": 3.0}, deviation={"cpu": 0.4}),
            pod("r", on="a", uses={"cpu": 1.0}),
            pod("s", on="b", uses={"cpu": 1.0}),
        ],
    )
    assert of(state)["a"]["CPU", "STD"] == pytest.approx(5.0)
    assert ("CPU", "STD") not in of(state)["b"]


@given(st.lists(st.tuples(st.floats(), st.floats()), max_size=8), st.lists(st.tuples(st.floats(), st.floats()), min_size=8, max_size=8))
def test_whatever_is_measured_a_client_can_read_it(means: list[tuple[float, float]], deviations: list[tuple[float, float]]) -> None:
    """Numbers without exponents, none that is not finite, each known mean once."""
    given = loads(mean=means, deviation=deviations[: len(means)] if means else [])
    answer = watcher(given, now=given.at, why_none=WHY)
    known = (given.mean >= 0) & (given.mean <= 1000)
    if answer.status == 200:
        found = json.loads(answer.body, parse_constant=pytest.fail)["data"]["NodeMetricsMap"]
        means_told = [each for one in found.values() for each in one["metrics"] if each["operator"] == "AVG"]
        assert len(means_told) == known.sum()
        assert re.search(rb"[0-9]e", answer.body) is None
    else:
        assert not known.any()
