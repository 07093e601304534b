"""What a cycle learns from Prometheus about nodes: trusted samples, and a reason for everything that is unknown."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.sanity import DropReason
from rebalancer.errors import MetricsMissing, PrometheusUnreachable
from rebalancer.policy.model import Confirm, Spec
from tests.collect_metrics.conftest import Connect
from tests.collect_metrics.scene import (
    AT,
    CPU_AGE,
    CPU_LAST,
    GIB,
    LABELS,
    MEMORY_AGE,
    NODE_CPU,
    NODE_MEMORY,
    POD_CPU,
    healthy,
    node_cpu,
    read,
    signal,
)
from tests.support.scripted_prometheus import HTML_LOGIN, Reply, ScriptedPrometheus, failure, fresh, matrix, success, vector


@pytest.fixture
def prometheus(server: ScriptedPrometheus, connect: Connect) -> Prometheus:
    healthy(server)
    return connect(server)


def test_a_healthy_cluster_is_read_whole(prometheus: Prometheus, directory: NodeDirectory) -> None:
    """Usage of each node in each window, ages, pods with their nodes; nothing dropped, nothing unknown."""
    samples = read(prometheus, directory)
    cpu, memory = samples.signals
    assert {name: line.tolist() for name, line in cpu.node_usage.items()} == {"n1": [1.0] * 10, "n2": [2.0] * 10, "n3": [3.0] * 10}
    assert memory.node_usage["n2"][-1] == 2 * GIB
    assert cpu.node_age_s == {"n1": 15.0, "n2": 15.0, "n3": 15.0}
    assert cpu.node_unknown == {}
    assert cpu.pod_usage == {("default", "web-n1", "n1"): 0.5, ("default", "web-n2", "n2"): 1.0, ("default", "web-n3", "n3"): 1.5}
    assert (cpu.capacity, cpu.capacity_resource, cpu.failed, cpu.source) == (None, "cpu", "", "node_exporter")
    assert samples.dropped == {}
    assert not samples.partial
    assert "signal cpu: 3 of 3 nodes by node_exporter, names from label instance (3)" in samples.notes


def test_m1_a_node_whose_samples_stopped_is_unknown_and_says_since_when(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """The mean still looks high; the raw sample is 4m10s old: the newest window is unknown, the windows before it are not touched."""
    server.on(CPU_AGE, fresh(*LABELS[1:]))
    server.on(CPU_LAST, fresh(LABELS[0], age_s=250))
    cpu = signal(read(prometheus, directory))
    assert np.isnan(cpu.node_usage["n1"][-1])
    assert cpu.node_usage["n1"][:-1].tolist() == [1.0] * 9
    assert cpu.node_unknown == {"n1": "last sample is 4m10s old, limit 3m"}
    assert cpu.node_age_s["n1"] == 250


def test_m1_a_silent_node_keeps_its_last_whole_window(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """A rate over a window whose end is silent is too low: within the limit the node does not look cooler for having gone quiet."""
    node_cpu(server, (LABELS[0], [8.0] * 8 + [6.0, 5.0]), *((labels, [2.0] * 10) for labels in LABELS[1:]))
    server.on(CPU_AGE, fresh(*LABELS[1:]))
    server.on(CPU_LAST, fresh(LABELS[0], age_s=130))
    cpu = signal(read(prometheus, directory))
    assert cpu.node_usage["n1"].tolist() == [8.0] * 10
    assert cpu.node_unknown == {}


def test_a_node_younger_than_the_window_is_unknown(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """The rate of a series that began two minutes ago is two fifths of the truth; four minutes later it is known."""
    node_cpu(server, (LABELS[0], [None] * 7 + [1.0, 2.0, 3.0]), *((labels, [2.0] * 10) for labels in LABELS[1:]))
    young = signal(read(prometheus, directory))
    assert young.node_unknown == {"n1": "its series is younger than the window of 5m"}
    node_cpu(server, (LABELS[0], [None] * 3 + [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]), *((labels, [2.0] * 10) for labels in LABELS[1:]))
    grown = signal(read(prometheus, directory))
    assert grown.node_unknown == {}
    np.testing.assert_array_equal(grown.node_usage["n1"], [np.nan] * 7 + [5.0] * 3)


def test_m1_one_missed_scrape_does_not_make_a_node_unknown(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Prometheus forgets a failed target at once; its last raw sample is young enough and is found by looking back."""
    server.on(CPU_AGE, fresh(*LABELS[1:]))
    server.on(CPU_LAST, fresh(*LABELS, age_s=45))
    cpu = signal(read(prometheus, directory))
    assert cpu.node_unknown == {}
    assert cpu.node_age_s == {"n1": 45.0, "n2": 15.0, "n3": 15.0}


def test_the_wide_search_for_last_samples_is_made_only_when_a_series_is_gone(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """On a healthy cluster the cheap question is enough."""
    read(prometheus, directory)
    assert server.queries(CPU_LAST) == []


def test_m1_a_node_without_any_raw_sample_is_unknown(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """A usage without a raw sample behind it cannot be shown to be fresh."""
    server.on(CPU_AGE, fresh(*LABELS[1:]))
    assert signal(read(prometheus, directory)).node_unknown == {"n1": "the age of its last sample is unknown"}


def test_ages_that_cannot_be_had_make_all_nodes_unknown(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Freshness that cannot be verified is not taken for granted."""
    server.on(CPU_AGE, failure(422, "too many samples", kind="execution"))
    cpu = signal(read(prometheus, directory))
    assert set(cpu.node_unknown) == {"n1", "n2", "n3"}
    assert "too many samples" in cpu.node_unknown["n1"]


@pytest.mark.parametrize("reply", [Reply(status=500), HTML_LOGIN, Reply(status=302, headers={"Location": "/login"})])
def test_m3_a_prometheus_that_fails_is_an_error_and_not_zero(
    reply: Reply, server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """Nothing at all can be had: no samples come back, an error does."""
    server.on("", reply)
    with pytest.raises(PrometheusUnreachable):
        read(connect(server), directory)


def test_m3_empty_answers_are_an_error_that_says_what_was_tried(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """Which query found nothing, and what Prometheus does scrape."""
    server.on("(up)", vector(({"job": "apiserver"}, 1), ({"job": "etcd"}, 3)))
    with pytest.raises(MetricsMissing) as caught:
        read(connect(server), directory)
    assert "query 'cpu of nodes (node_exporter)' found no series" in caught.value.message
    assert "query 'memory of nodes (kubelet resource metrics)' found no series" in caught.value.message
    assert "the jobs that Prometheus scrapes are apiserver, etcd" in caught.value.message
    assert "rebalancer check" in caught.value.remedy


def test_m4_a_signal_whose_query_finds_nothing_is_inert_by_name(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """The other signals are read; this one says that it is dead."""
    server.on(NODE_MEMORY, matrix())
    samples = read(prometheus, directory)
    memory = signal(samples, "memory")
    assert "found no series" in memory.failed
    assert memory.node_usage == {}
    assert set(memory.node_unknown) == {"n1", "n2", "n3"}
    assert signal(samples).failed == ""
    assert any(note.startswith("signal memory is inert: query 'memory of nodes (node_exporter)' found no series") for note in samples.notes)


def test_m5_series_that_match_no_node_show_the_labels_that_were_seen(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """An operator can see from the sentence which label holds what."""
    node_cpu(server, ({"instance": "172.16.0.1:9100", "machine": "n1"}, [1.0] * 10))
    with pytest.raises(MetricsMissing, match=re.escape('labels seen: {instance="172.16.0.1:9100", machine="n1"}')):
        read(connect(server), directory)


def test_m5_unames_are_fetched_once_for_all_signals(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """Host names resolve instances that mean nothing; the table is asked for once in a cycle."""
    labels = [{"instance": f"172.16.0.{k}:9100"} for k in (1, 2, 3)]
    node_cpu(server, *((one, [1.0] * 10) for one in labels))
    server.on(NODE_MEMORY, matrix(*((one, [GIB] * 10) for one in labels)))
    server.on(CPU_AGE, fresh(*labels))
    server.on(MEMORY_AGE, fresh(*labels))
    server.on("node_uname_info", vector(*(({**one, "nodename": f"n{k}"}, 1) for k, one in enumerate(labels, start=1))))
    samples = read(connect(server), directory)
    assert set(signal(samples).node_usage) == set(signal(samples, "memory").node_usage) == {"n1", "n2", "n3"}
    assert len(server.queries("node_uname_info")) == 1
    assert "signal cpu: 3 of 3 nodes by node_exporter, names from node_uname_info (3)" in samples.notes


def test_m6_the_kubelets_metrics_are_used_where_there_is_no_node_exporter(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """No recording rule, no node_exporter, no cAdvisor: the resource metrics that every kubelet has are enough."""
    labels = [{"instance": f"10.0.0.{k}:10250", "node": f"n{k}"} for k in (1, 2, 3)]
    server.on("rate(node_cpu_usage_seconds_total[300s])", matrix(*((one, [2.0] * 10) for one in labels)))
    server.on("avg_over_time(node_memory_working_set_bytes[300s])", matrix(*((one, [GIB] * 10) for one in labels)))
    server.on("(timestamp(node_cpu_usage_seconds_total", fresh(*labels))
    server.on("(timestamp(node_memory_working_set_bytes", fresh(*labels))
    server.on("pod_cpu_usage_seconds_total", vector(({"namespace": "default", "pod": "web-n1", "node": "n1"}, 0.25)))
    server.on("pod_memory_working_set_bytes", vector(({"namespace": "default", "pod": "web-n1", "node": "n1"}, GIB)))
    samples = read(connect(server), directory)
    for one in samples.signals:
        assert one.source == "kubelet resource metrics"
        assert one.node_unknown == {}
        assert set(one.pod_usage) == {("default", "web-n1", "n1")}


def test_a_source_that_knows_a_handful_of_nodes_gives_way_to_one_that_knows_all(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """A node_exporter on one node of three is less than half: the kubelet's metrics are taken."""
    node_cpu(server, (LABELS[0], [1.0] * 10))
    labels = [{"node": f"n{k}"} for k in (1, 2, 3)]
    server.on("rate(node_cpu_usage_seconds_total", matrix(*((one, [2.0] * 10) for one in labels)))
    server.on("(timestamp(node_cpu_usage_seconds_total", fresh(*labels))
    cpu = signal(read(prometheus, directory))
    assert cpu.source == "kubelet resource metrics"
    assert len(cpu.node_usage) == 3


def test_m7_the_windows_come_from_one_range_and_a_restart_changes_nothing(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """A spike is one window among many, and a new process reads the same windows."""
    healthy(server)
    line = [40.0, 95.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 41.0]
    node_cpu(server, *((labels, line) for labels in LABELS))
    first = signal(read(connect(server), directory))
    second = signal(read(connect(server), directory))
    assert first.node_usage["n1"].tolist() == second.node_usage["n1"].tolist() == line
    asked = server.queries(NODE_CPU)
    assert len(asked) == 2
    assert [asked[0].form[name] for name in ("start", "end", "step")] == [f"{AT - 540:.3f}", f"{AT:.3f}", "60.000"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "nan"),
        ("+Inf", "infinite"),
        ("-Inf", "infinite"),
        ("", "unparsable"),
        ("-1", "negative"),
        ("1e9", "absurd"),
        ("x", "unparsable"),
    ],
)
def test_m8_kp7_a_senseless_sample_makes_its_node_unknown_and_no_other(
    text: str, reason: str, server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Never 0: unknown, counted by reason, with the other nodes as they would be without it."""
    node_cpu(server, (LABELS[0], [1.0] * 9 + [text]), (LABELS[1], [2.0] * 10), (LABELS[2], [3.0] * 10))
    samples = read(prometheus, directory)
    cpu = signal(samples)
    assert np.isnan(cpu.node_usage["n1"][-1])
    assert cpu.node_usage["n1"][:-1].tolist() == [1.0] * 9
    assert set(cpu.node_unknown) == {"n1"}
    assert cpu.node_usage["n2"].tolist() == [2.0] * 10
    assert samples.dropped == {reason: 1}


def test_zero_is_a_measurement(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """An idle node is known to be idle."""
    node_cpu(server, *((labels, [0.0] * 10) for labels in LABELS))
    cpu = signal(read(prometheus, directory))
    assert cpu.node_usage["n1"].tolist() == [0.0] * 10
    assert cpu.node_unknown == {}


def test_m9_series_of_other_clusters_are_ignored_counted_and_listed(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """A strange node with a strange value spoils nothing."""
    node_cpu(server, *((labels, [1.0] * 10) for labels in LABELS), ({"instance": "192.168.9.9:9100"}, [1.01] * 10))
    samples = read(prometheus, directory)
    assert set(signal(samples).node_usage) == {"n1", "n2", "n3"}
    assert samples.dropped == {"foreign": 10}
    assert 'signal cpu: 1 series match no node of the cluster: {instance="192.168.9.9:9100"}' in samples.notes


def test_m10_two_series_for_one_node_are_ambiguous(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """Neither wins, not even when they agree: the node is unknown and both label sets are shown."""
    twins = [{**LABELS[0], "prometheus_replica": replica} for replica in ("a", "b")]
    node_cpu(server, *((labels, [1.0] * 10) for labels in (*twins, *LABELS[1:])))
    server.on(CPU_AGE, fresh(*twins, *LABELS[1:]))
    samples = read(prometheus, directory)
    cpu = signal(samples)
    assert np.isnan(cpu.node_usage["n1"]).all()
    assert cpu.node_unknown["n1"].startswith("ambiguous: 2 series: {")
    assert 'prometheus_replica="a"' in cpu.node_unknown["n1"]
    assert 'prometheus_replica="b"' in cpu.node_unknown["n1"]
    assert set(cpu.node_unknown) == {"n1"}
    assert samples.dropped == {"ambiguous": 20}


def test_m10_the_series_of_a_replaced_exporter_is_joined_with_its_successors(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """A new exporter's pod gives a new series; the old one has ended, so the two are the parts of one history and no contradiction."""
    old, new = ({**LABELS[0], "pod": pod, "namespace": "monitoring"} for pod in ("exporter-n1", "exporter-n1-new"))
    node_cpu(
        server,
        (old, [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.5, 0.5, None, None]),
        (new, [None, None, None, None, None, None, 0.5, 1.5, 2.0, 2.0]),
        *((labels, [2.0] * 10) for labels in LABELS[1:]),
    )
    server.on(CPU_AGE, fresh(new, *LABELS[1:]))
    server.on(CPU_LAST, fresh(old, age_s=200))
    cpu = signal(read(prometheus, directory))
    assert cpu.node_usage["n1"].tolist() == [2.0] * 10
    assert cpu.node_unknown == {}
    assert cpu.node_age_s["n1"] == 15


def test_m11_a_sample_of_1970_is_unknown_also_when_the_query_succeeds(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """The raw sample's time stamp decides for nodes, the answer's own for pods, and a value at a time nobody asked for is in no window."""
    server.on(CPU_AGE, vector(*((labels, 15.0) for labels in LABELS)))
    server.on(POD_CPU, vector(({"namespace": "default", "pod": "web-n1", "node": "n1"}, 1.0), stamp=15.0))
    ancient = [{"metric": labels, "values": [[15.0, "1"]]} for labels in LABELS]
    server.on(NODE_MEMORY, success("matrix", ancient))
    samples = read(prometheus, directory)
    cpu, memory = samples.signals
    assert all(np.isnan(line[-1]) for line in cpu.node_usage.values())
    assert "limit 3m" in cpu.node_unknown["n1"]
    assert cpu.pod_usage == {}
    assert all(np.isnan(line).all() for line in memory.node_usage.values())
    assert samples.dropped == {"stale": 3 + 1 + 3}


def test_m17_nothing_is_remembered_when_the_source_fails(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """A good cycle, then a Prometheus that is down: the second cycle has no value of the first."""
    healthy(server)
    prometheus = connect(server)
    assert signal(read(prometheus, directory)).node_unknown == {}
    server.on(NODE_CPU, Reply(status=500))
    samples = read(prometheus, directory)
    assert signal(samples).node_usage == {}
    assert "status 500" in signal(samples).failed


def test_kp2_every_query_hangs_and_the_cycle_ends_at_its_deadline(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """The error names a query."""
    server.on("", Reply(hang=True))
    with pytest.raises(PrometheusUnreachable, match="query 'cpu of nodes"):
        read(connect(server), directory, seconds=0.5)


def test_kp6_a_warning_is_reported_once_and_missing_nodes_stay_unknown(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """A partial answer: what is in it is used, what is not is unknown, and the warning is shown."""
    server.on(NODE_CPU, matrix(*((labels, [1.0] * 10) for labels in LABELS[:2]), warnings=["store-1 is away", "store-1 is away"]))
    samples = read(prometheus, directory)
    assert samples.partial
    assert samples.warnings == ("cpu of nodes (node_exporter): store-1 is away",)
    assert signal(samples).node_unknown == {"n3": "no series of cpu of nodes (node_exporter) speaks of it"}


def test_one_window_is_one_point(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """With a single confirmation window the range has one point and it is the usage."""
    healthy(server, windows=1)
    cpu = signal(read(connect(server), directory, spec=Spec(confirm=Confirm(windows=1, at_least=1))))
    assert cpu.node_usage["n2"].tolist() == [2.0]


def test_no_more_queries_are_under_way_than_allowed(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """The limit is that of the access settings."""
    healthy(server)
    prometheus = connect(server, max_in_flight=1)
    assert signal(read(prometheus, directory)).failed == ""


def test_dropped_reasons_are_a_closed_set() -> None:
    """They are label values of a metric."""
    assert {reason.value for reason in DropReason} == {
        "nan", "infinite", "negative", "absurd", "stale", "ambiguous", "foreign", "unparsable",
    }  # fmt: skip
