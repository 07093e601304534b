"""Recorded series are taken where they are as good as the queries, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rebalancer.collect.metrics import read_samples
from rebalancer.collect.probe import probe
from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory
from rebalancer.deadline import Deadline
from rebalancer.errors import MetricsMissing
from rebalancer.policy.model import Metrics, Spec
from tests.collect_metrics.conftest import Connect
from tests.collect_metrics.scene import AT, GIB, LABELS, NODES, healthy, read, signal
from tests.support.scripted_prometheus import ScriptedPrometheus, failure, fresh, matrix, vector

CPU = "max without () (rebalancer:node_cpu_cores:node_exporter_mean5m unless"
CPU_AGE = "(rebalancer:node_cpu_stamp_seconds:node_exporter_mean5m <"
CPU_LAST = "max_over_time(rebalancer:node_cpu_stamp_seconds:node_exporter_mean5m["
MEMORY = "max without () (rebalancer:node_memory_bytes:node_exporter_mean5m unless"
MEMORY_AGE = "(rebalancer:node_memory_stamp_seconds:node_exporter_mean5m <"
POD_CPU = "rebalancer:pod_cpu_cores:cadvisor_mean5m"
POD_MEMORY = "rebalancer:pod_memory_bytes:cadvisor_mean5m"
DIRECT = "sum without (cpu, mode) (rate(node_cpu_seconds_total"


@pytest.fixture
def prometheus(server: ScriptedPrometheus, connect: Connect) -> Prometheus:
    """Rules are said to be there; every query and every look-up is answered, the look-ups with ten times as much."""
    healthy(server)
    server.on(CPU, nodes([10.0] * 10, [20.0] * 10, [30.0] * 10))
    server.on(MEMORY, nodes([10 * GIB] * 10, [20 * GIB] * 10, [30 * GIB] * 10))
    for age in (CPU_AGE, MEMORY_AGE):
        server.on(age, fresh(*LABELS))
    server.on(POD_CPU, pods(5.0, 10.0, 15.0))
    server.on(POD_MEMORY, pods(5 * GIB, 10 * GIB, 15 * GIB))
    return connect(server, recording_rules=True)


def nodes(*lines: Sequence[float | None], names: Sequence[int] = (0, 1, 2)):
    return matrix(*((LABELS[k], line) for k, line in zip(names, lines, strict=False)))


def pods(*values: float):
    labels = [
        {"namespace": "default", "pod": f"web-{name}", "node": name, "instance": f"10.0.0.{k}:10250"} for k, name in enumerate(NODES, 1)
    ]
    return vector(*zip(labels, values, strict=False))


def asked(server: ScriptedPrometheus) -> list[str]:
    return [one.query for one in server.asked]


def test_what_is_recorded_is_looked_up_and_nothing_else_is_asked(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Nodes, pods and ages: not one query has a range of raw samples in it."""
    samples = read(prometheus, directory)
    assert signal(samples).node_usage["n2"].tolist() == [20.0] * 10
    assert signal(samples).source == "node_exporter, recorded"
    assert signal(samples).pod_usage["default", "web-n3", "n3"] == 15.0
    assert signal(samples, "memory").pod_usage["default", "web-n1", "n1"] == 5 * GIB
    assert not [query for query in asked(server) if "rebalancer:" not in query and "node_uname_info" not in query]


def test_without_the_setting_no_look_up_is_tried(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """The queries are those that they always were."""
    healthy(server)
    read(connect(server), directory)
    assert not [query for query in asked(server) if "rebalancer:" in query]


def test_without_rules_the_queries_themselves_are_asked(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """As when the rules are those of another window; a note says so."""
    healthy(server)
    samples = read(connect(server, recording_rules=True), directory)
    assert signal(samples).node_usage["n2"].tolist() == [2.0] * 10
    assert signal(samples).source == "node_exporter"
    assert signal(samples).pod_usage["default", "web-n2", "n2"] == 1.0
    assert (
        "signal cpu: series of nodes (node_exporter, recorded) do not suffice: there is none, or none of a node of the cluster"
        in samples.notes
    )
    assert "signal cpu: series of pods (cAdvisor, recorded) do not suffice: there is none, or none of a pod of the cluster" in samples.notes


def test_rules_of_a_few_minutes_ago_are_not_taken_for_young_nodes(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Until they reach back to the first window, the queries know more: nothing becomes unknown by installing them."""
    server.on(CPU, nodes(*([None] * 8 + [10.0, 10.0] for _ in NODES)))
    cpu = signal(read(prometheus, directory))
    assert (cpu.source, cpu.node_unknown) == ("node_exporter", {})
    assert cpu.node_usage["n3"].tolist() == [3.0] * 10


def test_m1_rules_that_are_not_evaluated_any_more_leave_it_to_the_queries(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Earlier windows are still recorded, the newest is not."""
    server.on(CPU, nodes(*([10.0] * 7 + [None] * 3 for _ in NODES)))
    samples = read(prometheus, directory)
    assert (signal(samples).source, signal(samples).node_unknown) == ("node_exporter", {})
    assert "signal cpu: series of nodes (node_exporter, recorded) do not suffice: they speak of 0 of 3 nodes now" in samples.notes


def test_rules_for_a_part_of_the_cluster_are_not_enough(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Two of three nodes are less than minCoverage, although they would do as a source of their own."""
    server.on(CPU, nodes([10.0] * 10, [20.0] * 10))
    server.on(POD_CPU, pods(5.0, 10.0))
    samples = read(prometheus, directory)
    assert signal(samples).source == "node_exporter"
    assert signal(samples).pod_usage["default", "web-n3", "n3"] == 1.5
    assert "signal cpu: series of nodes (node_exporter, recorded) do not suffice: they speak of 2 of 3 nodes now" in samples.notes
    assert "signal cpu: series of pods (cAdvisor, recorded) do not suffice: they speak of pods on 2 of 3 nodes" in samples.notes


def test_what_is_recorded_of_a_part_is_better_than_a_query_that_is_refused(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """The rest is unknown, and coverage says so."""
    server.on(CPU, nodes([10.0] * 10, [20.0] * 10))
    server.on(DIRECT, failure(422, "query processing would load too many samples into memory", kind="execution"))
    cpu = signal(read(prometheus, directory))
    assert cpu.source == "node_exporter, recorded"
    assert set(cpu.node_usage) == {"n1", "n2"}
    assert "n3" in cpu.node_unknown


def test_m1_a_node_that_is_not_measured_any_more_is_unknown_though_its_usage_is_still_recorded(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Its stamp, recorded in the same evaluation, is that of its last raw sample."""
    server.on(CPU_AGE, vector((LABELS[0], AT - 200.0), *((one, AT - 20.0) for one in LABELS[1:])))
    cpu = signal(read(prometheus, directory))
    assert cpu.node_unknown == {"n1": "last sample is 3m20s old, limit 3m"}
    assert np.isnan(cpu.node_usage["n1"][-1])
    assert cpu.node_age_s["n2"] == 20.0


def test_m1_a_node_without_a_stamp_is_unknown(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """A usage alone does not say when it was measured."""
    server.on(CPU_AGE, fresh(*LABELS[1:]))
    server.on(CPU_LAST, fresh(*LABELS[1:]))
    assert signal(read(prometheus, directory)).node_unknown == {"n1": "the age of its last sample is unknown"}


def test_large_clusters_look_their_pods_up_in_shards_too(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """By the namespace of the recorded series."""
    read_samples(
        prometheus,
        spec=Spec(),
        directory=directory,
        at=AT,
        deadline=Deadline.after(20),
        namespaces=["default", "monitoring"],
        pods=40_000,
    )
    looked_up = {query for query in asked(server) if POD_CPU in query}
    assert len(looked_up) == 2
    assert any(
        f'{POD_CPU}{{namespace=~"default"}} unless timestamp({POD_CPU}{{namespace=~"default"}}) < time() - 180' in q for q in looked_up
    )


def test_a_stricter_age_is_part_of_the_look_up(connect: Connect, server: ScriptedPrometheus, directory: NodeDirectory) -> None:
    """What was last evaluated before it is not given out by Prometheus at all."""
    healthy(server)
    read(connect(server, recording_rules=True), directory, spec=Spec(metrics=Metrics(max_age=90)))
    assert len([query for query in asked(server) if "_mean5m unless timestamp(rebalancer:" in query and "time() - 90" in query]) == 4


def test_when_nothing_answers_the_sentence_is_about_the_queries(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """That rules are missing as well is no news."""
    with pytest.raises(MetricsMissing, match=r"query 'cpu of nodes \(node_exporter\)' found no series") as raised:
        read(connect(server, recording_rules=True), directory)
    assert "recorded" not in str(raised.value)


def test_check_tells_ages_of_recorded_stamps(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """They are unix times, as the raw ones are."""
    results = {r.query.name: r for r in probe(prometheus, spec=Spec(), directory=directory, at=AT, deadline=Deadline.after(20))}
    assert results["age of cpu of nodes (node_exporter, recorded)"].oldest_sample_s == 15.0
