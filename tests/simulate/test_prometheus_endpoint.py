"""The Prometheus endpoint of the embedded cluster: shapes, errors, label variants, spoiled samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import pytest

from rebalancer.simulate.embedded import EmbeddedCluster
from rebalancer.simulate.pods import delete_pod
from rebalancer.simulate.scenario import bare_world
from rebalancer.simulate.series import RawSeries
from rebalancer.simulate.series_labels import SeriesOptions
from tests.simulate.cluster_kit import Http, Reply, deployment, node, serving

Query = Callable[..., Reply]
CPU = 'sum by (node) (rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[5m]))'


@contextmanager
def _cluster(**options: Any) -> Iterator[tuple[EmbeddedCluster, Query]]:
    world = bare_world(seed=21)
    for number in range(3):
        node(world, f"n{number}")
    deployment(world, "web", 6, cpu="500m")
    world.advance(1800)
    with serving(world, **options) as (cluster, _):
        client = Http(cluster.prometheus_url)

        def query(expression: str, *, path: str = "/api/v1/query", method: str = "POST", **form: Any) -> Reply:
            body = {"query": expression, **form}
            if method == "GET":
                return client("GET", path, query=body)
            return client("POST", path, urlencode(body).encode())

        try:
            yield cluster, query
        finally:
            client.close()


def _vector(reply: Reply) -> dict[str, float]:
    """node (or pod) -> value"""
    assert reply.status == 200, reply.body
    return {r["metric"].get("node", r["metric"].get("pod", "")): float(r["value"][1]) for r in reply.json()["data"]["result"]}


def test_the_rate_of_a_node_is_its_true_load() -> None:
    """The five-minute mean is close to the usage of the moment, and pods and system add up to the node."""
    with _cluster() as (cluster, query):
        rates = _vector(query(CPU))
        pods = _vector(query('sum by (node) (rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m]))'))
        truth = cluster.world.node_loads("cpu")
    assert rates.keys() == truth.keys()
    for name, rate in rates.items():
        assert rate / 8 == pytest.approx(truth[name], abs=0.02)
        assert rate - pods.get(name, 0.0) == pytest.approx(0.15, abs=0.05)


def test_get_and_post_give_the_same_answer() -> None:
    """The form in the body is as good as the query in the URL."""
    with _cluster() as (_, query):
        assert query(CPU, method="GET").json() == query(CPU).json()


def test_a_range_has_a_value_at_every_step() -> None:
    """Both ends included."""
    with _cluster() as (cluster, query):
        end = cluster.world.now
        reply = query(CPU, path="/api/v1/query_range", start=end - 540, end=end, step="1m")
    series = reply.json()["data"]["result"]
    assert [len(s["values"]) for s in series] == [10, 10, 10]
    assert series[0]["values"][-1][0] == end


@pytest.mark.parametrize(
    ("expression", "form", "path"),
    [
        ("sum(", {}, "query"),
        ("", {}, "query"),
        ("histogram_quantile(0.9, x)", {}, "query"),
        ("up", {"time": "yesterday"}, "query"),
        ("up", {"start": 0, "end": 10, "step": 0}, "query_range"),
        ("up", {"start": 10, "end": 0, "step": 1}, "query_range"),
        ("up", {"start": 0, "end": 20_000, "step": 1}, "query_range"),
    ],
)
def test_bad_queries_are_400_in_the_shape_of_prometheus(expression: str, form: dict[str, Any], path: str) -> None:
    """status error, errorType bad_data, and a sentence."""
    with _cluster() as (_, query):
        reply = query(expression, path=f"/api/v1/{path}", **form)
    assert reply.status == 400
    assert (reply.json()["status"], reply.json()["errorType"]) == ("error", "bad_data")
    assert reply.json()["error"]


def test_a_match_that_is_not_unique_is_422() -> None:
    """Many-to-many is an execution error."""
    with _cluster() as (_, query):
        reply = query("node_cpu_seconds_total * on (node) node_cpu_seconds_total")
    assert (reply.status, reply.json()["errorType"]) == (422, "execution")


def test_a_pod_that_left_lingers_in_a_window_and_is_gone_as_an_instant() -> None:
    """The counter is still there for a rate over five minutes; the gauge is not."""
    with _cluster() as (cluster, query):
        victim = next(cluster.world.objects("pods"))
        delete_pod(cluster.world, victim)
        cluster.advance(60)
        name = victim["metadata"]["name"]
        assert name in _vector(query('sum by (pod) (rate(container_cpu_usage_seconds_total{container="main"}[5m]))'))
        assert name not in _vector(query('sum by (pod) (container_memory_working_set_bytes{container="main"})'))
        cluster.advance(360)
        assert name not in _vector(query('sum by (pod) (rate(container_cpu_usage_seconds_total{container="main"}[5m]))'))


@pytest.mark.parametrize(
    ("options", "label", "expected"),
    [
        (SeriesOptions(node_label="", exporter_pod=False), "instance", "10.9.0.1:9100"),
        (SeriesOptions(node_label="", instance="ip"), "instance", "10.9.0.1"),
        (SeriesOptions(node_label="", instance="name"), "instance", "n0"),
        (SeriesOptions(node_label="", instance="name-port"), "instance", "n0:9100"),
        (SeriesOptions(node_label="kubernetes_node"), "kubernetes_node", "n0"),
        (SeriesOptions(), "namespace", "monitoring"),
    ],
)
def test_nodes_are_named_as_the_options_say(options: SeriesOptions, label: str, expected: str) -> None:
    """Each way in which clusters label their node series."""
    with _cluster(series=options) as (_, query):
        labels = [r["metric"] for r in query("node_memory_MemTotal_bytes").json()["data"]["result"]]
    assert expected in {one.get(label) for one in labels}
    assert all(("node" in one) == (options.node_label == "node") for one in labels)


def test_only_the_chosen_exporters_are_scraped() -> None:
    """With the kubelet's resource metrics alone, node_exporter's names are empty."""
    with _cluster(series=SeriesOptions(sources=("kubelet",))) as (_, query):
        kubelet = _vector(query("sum by (node) (rate(node_cpu_usage_seconds_total[5m]))"))
        assert len(kubelet) == 3
        assert len(_vector(query("sum by (pod) (rate(pod_cpu_usage_seconds_total[5m]))"))) == 6
        assert _vector(query(CPU)) == {}


def test_m1_a_silent_exporter_keeps_its_last_value_for_a_while() -> None:
    """The age grows, the value stays, and after the lookback it is gone."""
    age = "time() - max by (node) (timestamp(node_memory_MemAvailable_bytes))"
    with _cluster() as (cluster, query):
        cluster.sample_faults.silent_nodes["n1"] = cluster.world.now
        cluster.advance(240)
        ages = _vector(query(age))
        assert ages["n0"] < 30 < 200 < ages["n1"]
        cluster.advance(120)
        assert set(_vector(query(age))) == {"n0", "n2"}


def test_m8_a_nan_sample_is_nan_in_the_answer() -> None:
    """Written as NaN, never left out and never 0."""
    with _cluster() as (cluster, query):
        cluster.sample_faults.nan_nodes.add("n1")
        values = _vector(query("node_memory_MemAvailable_bytes"))
    assert math.isnan(values["n1"])
    assert values["n0"] > 0


def test_missing_nodes_and_pods_have_no_series() -> None:
    """Only they are missing."""
    with _cluster() as (cluster, query):
        cluster.sample_faults.missing_nodes.add("n1")
        lost = next(cluster.world.objects("pods"))["metadata"]["name"]
        cluster.sample_faults.missing_pods.add(("a", lost))
        assert set(_vector(query(CPU))) == {"n0", "n2"}
        pods = _vector(query('sum by (pod) (rate(container_cpu_usage_seconds_total{container="main"}[5m]))'))
    assert len(pods) == 5
    assert lost not in pods


def test_m9_m10_series_by_hand_stand_beside_the_real_ones() -> None:
    """A node of another cluster, and a second series for one of ours."""
    with _cluster() as (cluster, query):
        now = cluster.world.now
        for name, job in (("alien", "node-exporter"), ("n0", "twin")):
            labels = {"__name__": "node_memory_MemAvailable_bytes", "node": name, "job": job}
            cluster.series.extra.append(RawSeries(labels, [now - 10], [1.0]))
        reply = query("node_memory_MemAvailable_bytes")
    names = [r["metric"]["node"] for r in reply.json()["data"]["result"]]
    assert sorted(names) == ["alien", "n0", "n0", "n1", "n2"]


def test_warnings_come_with_the_answer() -> None:
    """As a partial answer of a federated Prometheus has them."""
    with _cluster() as (cluster, query):
        cluster.prometheus.warnings = ("one store did not answer",)
        assert query("up").json()["warnings"] == ["one store did not answer"]


def test_a_timeout_looks_like_that_of_prometheus() -> None:
    """503 with errorType timeout."""
    with _cluster() as (cluster, query):
        cluster.prometheus.faults.status(503, count=1)
        reply = query("up")
        assert (reply.status, reply.json()["errorType"]) == (503, "timeout")
        assert query("up").status == 200


def test_health_and_build_info_are_served() -> None:
    """What a preflight check asks for."""
    with _cluster() as (cluster, _):
        client = Http(cluster.prometheus_url)
        replies = [client("GET", path) for path in ("/-/healthy", "/api/v1/status/buildinfo", "/nothing")]
        client.close()
    assert [reply.status for reply in replies] == [200, 200, 404]


def test_the_future_has_no_samples() -> None:
    """Beyond the lookback after the virtual now, nothing is answered."""
    with _cluster() as (cluster, query):
        assert query("up", time=cluster.world.now + 600).json()["data"]["result"] == []
