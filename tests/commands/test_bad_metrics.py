"""A Prometheus that is not there, is something else, hangs, fails or knows too little: one sentence, status 5, nothing evicted."""

from __future__ import annotations

import time

import pytest

from rebalancer.simulate.faults import Act, Fault
from rebalancer.simulate.series import RawSeries
from tests.commands.test_bad_cluster import EVICT, QUICK, free_port, refused
from tests.commands.test_run_once import marked
from tests.support.embedded import Stage

pytestmark = pytest.mark.usefixtures("impatient")
__all__ = ["free_port"]


def test_without_an_address_it_says_how_to_give_one(looked_at: Stage) -> None:
    """Nothing is guessed."""
    ran = looked_at.run(*EVICT, env={"REBALANCER_PROMETHEUS__URL": None})
    refused(looked_at, ran, 3, "no address of Prometheus is set", "--prometheus-url or REBALANCER_PROMETHEUS__URL")


def test_an_address_that_is_none_is_a_mistake_of_settings(looked_at: Stage) -> None:
    """The flag is named, and an example is given."""
    ran = looked_at.run("plan", "--prometheus-url", "prometheus:9090")
    refused(looked_at, ran, 3, "the flag --prometheus-url", "http://prometheus.monitoring:9090")


def test_nothing_listens_there(looked_at: Stage, free_port: int) -> None:
    """The address and the query are named."""
    url = f"http://127.0.0.1:{free_port}"
    refused(looked_at, looked_at.run(*EVICT, "--prometheus-url", url), 5, f"to Prometheus at {url}", "is Prometheus running?")


def test_another_web_server_listens_there(looked_at: Stage) -> None:
    """The API server's own address, for example."""
    ran = looked_at.run("plan", "--prometheus-url", looked_at.cluster.api_url).ended(5)
    assert "found no query API there (status 404)" in ran.error
    assert "Set prometheus.url to the base address under which /api/v1/query answers." in ran.error
    looked_at.forget_writes()


def test_a_login_page(looked_at: Stage) -> None:
    """HTML with status 200 is no empty result."""
    looked_at.cluster.prometheus.faults.login_page()
    refused(looked_at, looked_at.run(*EVICT), 5, "was answered with an HTML page, such as a login page", "or give credentials")


@pytest.mark.parametrize(("status", "words"), [(500, "failed on the server's side"), (503, "aborted"), (401, "for want of rights")])
def test_e6_m3_every_query_answers_an_error(looked_at: Stage, status: int, words: str) -> None:
    """Never status 0, never a load of 0: one sentence with the query, the status and the remedy."""
    looked_at.cluster.prometheus.faults.status(status)
    refused(looked_at, looked_at.run("plan"), 5, "query 'cpu of nodes (node_exporter)'", words, f"status {status}")
    refused(looked_at, looked_at.run(*EVICT), 5, f"status {status}")


def test_m3_a_prometheus_that_hangs_ends_the_command_within_its_time(looked_at: Stage) -> None:
    """The wait is that of the settings."""
    looked_at.cluster.prometheus.faults.hang()
    refused(looked_at, looked_at.run(*EVICT, env=QUICK), 5, "was not answered within", "prometheus.timeout")


def test_m3_empty_answers_are_unknown_and_not_zero(looked_at: Stage) -> None:
    """No node has a series: the sentence says which queries gave nothing."""
    empty = b'{"status":"success","data":{"resultType":"matrix","result":[]}}'
    vector = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
    looked_at.cluster.prometheus.faults.add(Fault(Act.REPLACE, path="query_range", body=empty))
    looked_at.cluster.prometheus.faults.add(Fault(Act.REPLACE, path="query$", body=vector))
    refused(looked_at, looked_at.run(*EVICT), 5, "query 'cpu of nodes (node_exporter)' found no series", "Run `rebalancer check`")


def test_series_of_another_cluster_are_shown_with_their_labels(looked_at: Stage) -> None:
    """Which query gave nothing of ours, and what its labels look like, so that the right label is found."""
    now = looked_at.cluster.world.now
    times = [now - 1200 + 15 * number for number in range(160)]
    looked_at.cluster.sample_faults.missing_nodes.update(node["metadata"]["name"] for node in looked_at.cluster.world.objects("nodes"))
    labels = {
        "__name__": "node_cpu_seconds_total",
        "mode": "user",
        "cpu": "0",
        "instance": "10.9.9.1:9100",
        "node": "east-1",
        "cluster": "east",
    }
    looked_at.cluster.series.extra.append(RawSeries(labels, times, [float(number) for number in range(160)]))
    ran = looked_at.run(*EVICT)
    refused(looked_at, ran, 5, "query 'cpu of nodes (node_exporter)' found 1 series, none of a node of the cluster")
    assert 'labels seen: {cluster="east", instance="10.9.9.1:9100", node="east-1"}' in ran.error


def test_too_few_nodes_are_known(looked_at: Stage) -> None:
    """The share, the limit, and the first that are missing."""
    looked_at.cluster.sample_faults.missing_nodes.update({"node-0000", "node-0006", "node-0007", "node-0008"})
    ran = looked_at.run(*EVICT)
    refused(looked_at, ran, 5, "signal cpu is known for 8 of 12 nodes (67 %), metrics.minCoverage is 90 %")
    assert "without it are node-0000, node-0006, node-0007 and 1 more" in ran.error
    assert "nothing was moved" in ran.error


def test_too_few_pods_are_known(looked_at: Stage) -> None:
    """The same for pods, by namespace and name."""
    pods = [pod["metadata"] for pod in looked_at.cluster.world.objects("pods")]
    looked_at.cluster.sample_faults.missing_pods.update((pod["namespace"], pod["name"]) for pod in pods if pod["namespace"] != "search")
    ran = looked_at.run(*EVICT)
    refused(looked_at, ran, 5, "of 200 pods", "without it are ads/ads-")


def test_looking_works_with_what_there_is(looked_at: Stage) -> None:
    """Explaining and skew are for finding out what is wrong: unknown nodes are shown as unknown."""
    looked_at.cluster.sample_faults.missing_nodes.update({"node-0000", "node-0006", "node-0007", "node-0008"})
    nodes = {node["name"]: node for node in looked_at.run("skew", "-o", "json").ended(0).document["nodes"]}
    assert nodes["node-0006"]["class"] == "unknown"
    assert nodes["node-0006"]["signals"]["cpu"]["load"] is None
    assert "unknown: " in looked_at.run("explain", "node", "node-0006").ended(0).out


def test_m1_stale_samples_are_unknown(looked_at: Stage) -> None:
    """Exporters that fell silent ten minutes ago leave no load behind, whatever their last value was."""
    hot = next(iter(looked_at.cluster.world.hot_nodes("cpu", 0.7)))
    looked_at.cluster.sample_faults.silent_nodes[hot] = time.time() - 600
    plan = looked_at.run("plan", "-o", "json").ended(0).document
    node = next(node for node in plan["nodes"] if node["name"] == hot)
    assert (node["class"], node["signals"]["cpu"]["load"]) == ("unknown", None)
    assert hot not in {end for move in plan["moves"] for end in (move["source"], move["destination"])}


@pytest.mark.parametrize("status", [500, 422])
def test_m3_marks_are_not_renewed_on_a_failure(cluster: Stage, status: int) -> None:
    """The marks of the last good cycle stay as they are, with their end; none is stamped anew, none is taken off."""
    cluster.run("run", "--once", "--mode", "annotate").ended(0)
    before = marked(cluster)
    assert before
    cluster.cluster.advance(120.0)
    cluster.forget_writes()
    cluster.cluster.prometheus.faults.status(status)
    refused(cluster, cluster.run("run", "--once", "--mode", "annotate"), 5, f"status {status}")
    assert marked(cluster) == before
