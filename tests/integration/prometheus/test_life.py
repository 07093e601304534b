"""A real Prometheus in trouble: restarted between cycles, down, slow, refusing; and an exporter that stops."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from rebalancer.collect.metrics import read_samples
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.samples import NodeDirectory, Samples
from rebalancer.deadline import Deadline
from rebalancer.errors import MetricsMissing, PrometheusRefused, PrometheusUnreachable
from rebalancer.policy.model import Confirm, Metrics, Pool, Spec, Threshold
from tests.integration.prometheus.test_queries import GIB, node_exporter
from tests.support.prometheus_server import PrometheusServer, StartPrometheus, TestExporter, openmetrics

pytestmark = pytest.mark.prometheus

NOW = 1_750_000_000.7
DIRECTORY = NodeDirectory(names=frozenset({"n1"}), addresses={}, pod_nodes={})
POLLS = 300


@pytest.fixture(scope="module")
def server(start_prometheus: StartPrometheus) -> PrometheusServer:
    return start_prometheus(blocks=openmetrics(node_exporter({"instance": "n1:9100"}, cores=1.5, memory=GIB)))


@pytest.fixture
def prometheus(server: PrometheusServer) -> Iterator[Prometheus]:
    client = Prometheus(PrometheusAccess(url=server.url, timeout_s=5), pause_s=0.01)
    yield client
    client.close()


def read(prometheus: Prometheus, *, at: float = NOW, spec: Spec | None = None) -> Samples:
    return read_samples(prometheus, spec=spec or Spec(), directory=DIRECTORY, at=at, deadline=Deadline.after(60))


def test_m7_m17_a_restart_between_cycles_loses_no_window_and_downtime_no_truth(server: PrometheusServer, prometheus: Prometheus) -> None:
    """The same windows before and after; in between there is an error and no remembered value. The kept connection is no obstacle."""
    before = read(prometheus).signals[0].node_usage["n1"]
    server.stop()
    with pytest.raises(PrometheusUnreachable, match="could not be delivered"):
        read(prometheus)
    server.start()
    np.testing.assert_array_equal(read(prometheus).signals[0].node_usage["n1"], before)
    np.testing.assert_allclose(before, [1.5] * 10, rtol=1e-6)


def test_a_query_that_is_wrong_comes_back_with_the_servers_words(prometheus: Prometheus) -> None:
    """400 with the parser's sentence."""
    with pytest.raises(PrometheusRefused, match="parse error") as caught:
        prometheus.instant("sum by (", at=NOW, deadline=Deadline.after(20))
    assert caught.value.status == 400


def test_a_query_that_cannot_run_comes_back_with_the_servers_words(prometheus: Prometheus) -> None:
    """422 for a join that matches many to many."""
    query = "node_cpu_seconds_total * on (instance) group_left () node_cpu_seconds_total"
    with pytest.raises(PrometheusRefused, match="many-to-many") as caught:
        prometheus.instant(query, at=NOW - 60, deadline=Deadline.after(20))
    assert caught.value.status == 422


def test_a_slow_query_is_aborted_by_the_server_in_our_time(server: PrometheusServer) -> None:
    """The time-out that is sent along makes the server give up, and what it says is understood."""
    client = Prometheus(PrometheusAccess(url=server.url, timeout_s=0.3))
    heavy = "count(" + "sum_over_time(" * 3 + "(vector(1))[1d:1s]" + ")[1h:1s])[1h:1s])"
    with pytest.raises((PrometheusRefused, PrometheusUnreachable), match="'heavy'"):
        client.instant(heavy + ")", at=NOW, deadline=Deadline.after(20), name="heavy")
    client.close()


def test_a_scalar_is_refused(prometheus: Prometheus) -> None:
    """A policy query that yields no series a node is an error with a remedy."""
    with pytest.raises(PrometheusRefused, match="gave a scalar where a vector is due"):
        prometheus.instant("1 + 1", at=NOW, deadline=Deadline.after(20))


def test_the_limit_of_points_is_the_servers_own(prometheus: Prometheus) -> None:
    """11,000 points are given, and one more is refused by us before it is refused by the server."""
    answer = prometheus.range("vector(1)", start=NOW - 10_999, end=NOW, step_s=1, deadline=Deadline.after(20))
    assert answer.values.shape == (1, 11_000)
    assert answer.present.all()
    with pytest.raises(PrometheusRefused, match="11001 points"):
        prometheus.range("vector(1)", start=NOW - 11_000, end=NOW, step_s=1, deadline=Deadline.after(20))


def test_m3_a_moment_without_data_is_an_error_and_not_zero(prometheus: Prometheus) -> None:
    """A day later there is nothing in any window."""
    with pytest.raises(MetricsMissing, match="found no series"):
        read(prometheus, at=NOW + 86_400)


def test_m1_an_exporter_that_stops_is_trusted_until_the_limit_and_no_longer(start_prometheus: StartPrometheus) -> None:
    """Prometheus marks the series as gone at the first failed scrape; its age is found nevertheless, and decides."""
    text = f'node_memory_MemTotal_bytes{{node="n1"}} {16 * GIB}\nnode_memory_MemAvailable_bytes{{node="n1"}} {15 * GIB}\n'
    memory_only = (Pool(name="default", signals={"memory": Threshold(low=50, target=70, high=85)}),)
    spec = Spec(pools=memory_only, metrics=Metrics(window=30, max_age=180), confirm=Confirm(windows=2, at_least=1, step=10))
    with TestExporter(lambda: text) as exporter:
        server = start_prometheus(targets={"node": [exporter.address]})
        client = Prometheus(PrometheusAccess(url=server.url))
        assert _until(lambda: _usage_of(client, spec))["n1"] == GIB
        _until(lambda: exporter.scrapes > 7)  # longer than the search for last samples has steps
        exporter.failing = True
        _until(lambda: not len(client.instant("node_memory_MemTotal_bytes", at=time.time(), deadline=Deadline.after(20))))
        gone = read(client, at=time.time(), spec=spec).signals[0]
        assert gone.node_unknown == {}
        assert gone.node_age_s["n1"] < 180
        impatient = spec.model_copy(update={"metrics": Metrics(window=30, max_age=0.5)})
        limited = read(client, at=time.time(), spec=impatient).signals[0]
        assert np.isnan(limited.node_usage["n1"][-1])
        assert limited.node_unknown["n1"].startswith("last sample is ")
        client.close()


def _usage_of(client: Prometheus, spec: Spec) -> dict[str, float]:
    try:
        usage = read(client, at=time.time(), spec=spec).signals[0].node_usage
    except MetricsMissing:
        return {}
    return {name: float(line[-1]) for name, line in usage.items() if np.isfinite(line[-1])}


def _until(found):
    for _ in range(POLLS):
        if result := found():
            return result
        time.sleep(0.1)
    raise AssertionError("it did not happen within the polls")
