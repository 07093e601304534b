"""The built-in queries against a real Prometheus, whose blocks hold every shape of labels and every kind of bad sample.

Time is fixed: the blocks end at `NOW`, and that is the moment that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from rebalancer.collect.metrics import read_samples
from rebalancer.collect.probe import probe
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.samples import NodeDirectory, SignalSamples
from rebalancer.collect.samples import Samples as ReadSamples
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Confirm, Metrics, Pool, Spec, Threshold
from tests.support.prometheus_server import Samples, StartPrometheus, counter, gauge, openmetrics

pytestmark = pytest.mark.prometheus

NOW = 1_750_000_000.7
GIB = 2.0**30
MARKS = {"cpu": Threshold(low=40, target=55, high=70), "memory": Threshold(low=50, target=70, high=85)}


def times(*, since: float = 1500, until: float = 10, every: float = 15) -> list[float]:
    """Moments of scrapes, given as seconds before `NOW`."""
    return [NOW - since + k * every for k in range(int((since - until) / every) + 1)]


def node_exporter(labels: dict[str, str], *, cores: float, memory: float, at: Sequence[float] | None = None) -> list[Samples]:
    """Two CPUs that are busy for ``cores`` seconds a second together, and a memory of 16 GiB of which ``memory`` is used."""
    at = times() if at is None else at
    series = [gauge("node_memory_MemTotal_bytes", labels, 16 * GIB, times=at)]
    series.append(gauge("node_memory_MemAvailable_bytes", labels, 16 * GIB - memory, times=at))
    for cpu in ("0", "1"):
        for mode, rate in (("user", cores * 0.3), ("system", cores * 0.2), ("idle", 0.7), ("iowait", 0.2), ("steal", 0.1)):
            series.append(counter("node_cpu_seconds_total", {**labels, "cpu": cpu, "mode": mode}, rate, times=at))
    return series


def container(labels: dict[str, str], *, cores: float, memory: float, at: Sequence[float] | None = None) -> list[Samples]:
    at = times() if at is None else at
    return [
        counter("container_cpu_usage_seconds_total", {**labels, "cpu": "total"}, cores, times=at),
        gauge("container_memory_working_set_bytes", labels, memory, times=at),
    ]


def scene() -> Iterator[Samples]:
    """One cluster of eleven nodes, named in every way there is; `by-nothing` has no series, `ambiguous` has two."""
    yield from node_exporter({"job": "ne", "node": "by-label", "instance": "192.168.7.1:9100"}, cores=1, memory=GIB)
    yield from node_exporter({"job": "ne", "instance": "10.0.0.2:9100"}, cores=2, memory=2 * GIB)
    yield from node_exporter({"job": "ne", "instance": "[fd00::3]:9100"}, cores=3, memory=3 * GIB)
    yield from node_exporter({"job": "ne", "instance": "by-name:9100"}, cores=4, memory=4 * GIB)
    yield from node_exporter({"job": "ne", "instance": "192.168.7.5:9100"}, cores=5, memory=5 * GIB)
    yield gauge("node_uname_info", {"instance": "192.168.7.5:9100", "nodename": "by-uname"}, 1, times=times())
    yield from node_exporter(
        {"job": "ne", "instance": "192.168.7.6:9100", "namespace": "mon", "pod": "exporter-6"}, cores=6, memory=6 * GIB
    )
    yield from node_exporter(
        {"job": "ne", "instance": "192.168.7.7:9100", "namespace": "mon", "pod": "exporter-7"}, cores=7, memory=7 * GIB
    )
    yield gauge("kube_pod_info", {"namespace": "mon", "pod": "exporter-7", "node": "by-pod-info", "uid": "u"}, 1, times=times())
    yield from node_exporter({"job": "ne", "instance": "stale:9100"}, cores=8, memory=8 * GIB, at=times(until=220))
    yield from node_exporter({"job": "ne", "instance": "foreign:9100"}, cores=9, memory=9 * GIB)
    for replica in ("a", "b"):
        yield from node_exporter({"job": "ne", "instance": "ambiguous:9100", "prometheus_replica": replica}, cores=9, memory=GIB)
    yield from node_exporter({"job": "ne", "instance": "nan:9100"}, cores=10, memory=float("nan"))
    yield from pods()


def pods() -> Iterator[Samples]:
    kubelet = {"namespace": "a", "node": "by-label", "instance": "192.168.7.1:10250"}
    yield from container({**kubelet, "pod": "p1", "container": "c1", "id": "/p1/c1"}, cores=0.25, memory=GIB)
    yield from container({**kubelet, "pod": "p1", "container": "c2", "id": "/p1/c2"}, cores=0.5, memory=2 * GIB)
    yield from container({**kubelet, "pod": "p1", "container": "", "id": "/p1"}, cores=0.75, memory=3 * GIB)
    yield from container({**kubelet, "pod": "p1", "container": "POD", "id": "/p1/pod"}, cores=0.01, memory=GIB)
    # a container that was restarted two minutes ago: its dead twin still has samples in the window
    yield from container({**kubelet, "pod": "restarted", "container": "c", "id": "/r/1"}, cores=1, memory=4 * GIB, at=times(until=130))
    yield from container({**kubelet, "pod": "restarted", "container": "c", "id": "/r/2"}, cores=1, memory=GIB, at=times(since=115))
    # the kubelet is scraped by two jobs: the same container twice
    for job in ("kubelet", "cadvisor"):
        yield from container({**kubelet, "job": job, "pod": "twice", "container": "c", "id": "/t"}, cores=0.5, memory=GIB)
    # a StatefulSet's pod that moved: the same name on two nodes
    for node, instance, cores in (("by-label", "192.168.7.1:10250", 2.0), ("by-name", "by-name:10250", 0.5)):
        labels = {"namespace": "a", "node": node, "instance": instance, "pod": "db-0", "container": "c", "id": f"/db/{node}"}
        yield from container(labels, cores=cores, memory=GIB)
    # a pod that left its node two minutes ago
    gone = {**kubelet, "pod": "departed", "container": "c", "id": "/gone"}
    yield from container(gone, cores=2, memory=5 * GIB, at=times(until=120))
    yield from container({**kubelet, "node": "foreign", "pod": "p1", "container": "c1", "id": "/p1/c1"}, cores=9, memory=GIB)


DIRECTORY = NodeDirectory(
    names=frozenset(
        ["by-label", "by-address", "by-ipv6", "by-name", "by-uname", "by-pod", "by-pod-info", "stale", "ambiguous", "nan", "by-nothing"]
    ),
    addresses={"10.0.0.2": "by-address", "fd00::3": "by-ipv6"},
    pod_nodes={
        ("mon", "exporter-6"): "by-pod",
        **{("a", pod): "by-label" for pod in ("p1", "restarted", "twice")},
        ("a", "db-0"): "by-name",
    },
)


@pytest.fixture(scope="module")
def prometheus(start_prometheus: StartPrometheus) -> Iterator[Prometheus]:
    client = Prometheus(PrometheusAccess(url=start_prometheus(blocks=openmetrics(scene())).url))
    yield client
    client.close()


def read(prometheus: Prometheus, *, at: float = NOW, **metrics: object) -> ReadSamples:
    spec = Spec(metrics=Metrics(**metrics), confirm=Confirm(windows=10, at_least=8, step=60))  # type: ignore[arg-type]
    return read_samples(prometheus, spec=spec, directory=DIRECTORY, at=at, deadline=Deadline.after(60))


@pytest.fixture(scope="module")
def samples(prometheus: Prometheus) -> ReadSamples:
    return read(prometheus)


@pytest.fixture(scope="module")
def cpu(samples: ReadSamples) -> SignalSamples:
    return samples.signals[0]


@pytest.fixture(scope="module")
def memory(samples: ReadSamples) -> SignalSamples:
    return samples.signals[1]


@pytest.mark.parametrize(
    ("node", "cores"),
    [("by-label", 1), ("by-address", 2), ("by-ipv6", 3), ("by-name", 4), ("by-uname", 5), ("by-pod", 6), ("by-pod-info", 7), ("nan", 10)],
)
def test_m5_m6_every_variant_of_labels_finds_its_node(node: str, cores: float, cpu: SignalSamples) -> None:
    """All windows of CPU in cores, without idle, iowait and stolen time, from plain node_exporter series."""
    np.testing.assert_allclose(cpu.node_usage[node], [cores] * 10, rtol=1e-6)
    assert node not in cpu.node_unknown


def test_memory_is_total_less_available(memory: SignalSamples) -> None:
    """In bytes."""
    np.testing.assert_allclose(memory.node_usage["by-name"], [4 * GIB] * 10)


def test_the_age_is_that_of_the_raw_sample(cpu: SignalSamples, memory: SignalSamples) -> None:
    """The last scrape was some ten seconds before the moment that is asked for."""
    for one in (cpu, memory):
        assert 10 <= one.node_age_s["by-label"] <= 25


def test_m1_a_stale_node_is_unknown_although_its_mean_still_has_a_value(cpu: SignalSamples, memory: SignalSamples) -> None:
    """Its last sample is older than the limit: the newest window is unknown, the older ones are history."""
    for one in (cpu, memory):
        assert np.isnan(one.node_usage["stale"][-1])
        assert np.isfinite(one.node_usage["stale"][:-4]).all()
        assert one.node_unknown["stale"].startswith("last sample is 3m")
        assert "limit 3m" in one.node_unknown["stale"]


def test_m1_a_longer_limit_trusts_the_same_node(prometheus: Prometheus) -> None:
    """The limit is the policy's."""
    found = read(prometheus, max_age=600).signals[0]
    assert "stale" not in found.node_unknown
    np.testing.assert_allclose(found.node_usage["stale"], [8] * 10, rtol=0.15)
    assert found.node_usage["stale"][-1] == pytest.approx(8)


def test_m8_a_nan_is_unknown_on_its_own_signal_only(cpu: SignalSamples, memory: SignalSamples, samples: ReadSamples) -> None:
    """NaN memory says nothing about CPU, and is counted."""
    assert np.isnan(memory.node_usage["nan"]).all()
    assert memory.node_unknown["nan"] == "its newest sample is no possible amount (nan)"
    assert "nan" not in cpu.node_unknown
    assert samples.dropped["nan"] == 10


def test_m9_a_strange_node_is_listed(samples: ReadSamples) -> None:
    """With its labels, and counted."""
    assert any("match no node of the cluster" in note and 'instance="foreign:9100"' in note for note in samples.notes)
    assert samples.dropped["foreign"] >= 20


def test_m10_two_replicas_are_ambiguous(cpu: SignalSamples) -> None:
    """Both label sets are shown."""
    assert cpu.node_unknown["ambiguous"].startswith("ambiguous: 2 series: {")
    assert np.isnan(cpu.node_usage["ambiguous"]).all()


def test_a_node_without_series_says_so(cpu: SignalSamples) -> None:
    """Absent is unknown."""
    assert "by-nothing" not in cpu.node_usage
    assert cpu.node_unknown["by-nothing"] == "no series of cpu of nodes (node_exporter) speaks of it"


def test_pods_are_summed_over_their_containers_and_not_counted_twice(cpu: SignalSamples, memory: SignalSamples) -> None:
    """Neither the pod's own cgroup, nor the pause container, nor a second scrape of the same kubelet adds to it."""
    assert cpu.pod_usage["a", "p1", "by-label"] == pytest.approx(0.75)
    assert memory.pod_usage["a", "p1", "by-label"] == pytest.approx(3 * GIB)
    assert cpu.pod_usage["a", "twice", "by-label"] == pytest.approx(0.5)
    assert memory.pod_usage["a", "twice", "by-label"] == pytest.approx(GIB)


def test_a_restarted_container_is_one_container(cpu: SignalSamples, memory: SignalSamples) -> None:
    """CPU goes on at one core over the restart; memory is not the sum of the living and the dead."""
    assert cpu.pod_usage["a", "restarted", "by-label"] == pytest.approx(1.0, rel=0.1)
    assert memory.pod_usage["a", "restarted", "by-label"] <= 4 * GIB


def test_a_pod_that_moved_has_one_usage_a_node(cpu: SignalSamples) -> None:
    """The old node's part is told apart from the new one's."""
    assert cpu.pod_usage["a", "db-0", "by-label"] == pytest.approx(2.0)
    assert cpu.pod_usage["a", "db-0", "by-name"] == pytest.approx(0.5)


def test_m2_a_departed_pod_counts_for_the_part_of_the_window_that_it_was_there(cpu: SignalSamples, memory: SignalSamples) -> None:
    """That is its share of the node's own mean, for memory as for CPU: three minutes of five."""
    assert cpu.pod_usage["a", "departed", "by-label"] == pytest.approx(2 * 0.6, rel=0.1)
    assert memory.pod_usage["a", "departed", "by-label"] == pytest.approx(5 * GIB * 0.6, rel=0.1)


def test_m9_a_pod_on_a_strange_node_is_not_ours(cpu: SignalSamples) -> None:
    """Only the pod on our node is there."""
    assert [key for key in cpu.pod_usage if key[1] == "p1"] == [("a", "p1", "by-label")]


@pytest.mark.parametrize("statistic", ["max", "p95"])
def test_other_statistics_of_a_steady_load_equal_its_mean(statistic: str, prometheus: Prometheus) -> None:
    """Maximum and 95th percentile of moments inside the window, for nodes and for pods."""
    cpu, memory = read(prometheus, statistic=statistic).signals
    np.testing.assert_allclose(cpu.node_usage["by-label"], [1.0] * 10, rtol=1e-6)
    np.testing.assert_allclose(memory.node_usage["by-label"], [GIB] * 10, rtol=1e-6)
    assert cpu.pod_usage["a", "p1", "by-label"] == pytest.approx(0.75)
    assert memory.pod_usage["a", "p1", "by-label"] == pytest.approx(3 * GIB)


def test_kp8_the_moments_are_those_that_were_asked_for(prometheus: Prometheus) -> None:
    """At x.7 s Prometheus computes the windows at x.7 s."""
    query = "time()*scalar(sum(up)*0 or vector(1)) + on() group_left() (vector(0))"
    answer = prometheus.range(query, start=NOW - 120, end=NOW, step_s=60, deadline=Deadline.after(60))
    np.testing.assert_allclose(answer.values, [[NOW - 120, NOW - 60, NOW]], atol=1e-3)


def test_long_queries_are_answered(prometheus: Prometheus) -> None:
    """A query of more than 20,000 characters is no longer than a body may be."""
    names = "|".join(f"none{k}" for k in range(3000))
    answer = prometheus.instant(f'count(node_uname_info{{nodename!~"{names}"}})', at=NOW, deadline=Deadline.after(60))
    assert answer.values.tolist() == [[1.0]]


def test_check_sees_every_query_with_what_it_found(prometheus: Prometheus) -> None:
    """Series, matched nodes, ages and labels, and which built-in source is not there."""
    spec = Spec(pools=(Pool(name="default", signals=MARKS),))
    results = {
        result.query.name: result for result in probe(prometheus, spec=spec, directory=DIRECTORY, at=NOW, deadline=Deadline.after(60))
    }
    nodes = results["cpu of nodes (node_exporter)"]
    assert (nodes.series, nodes.matched, nodes.wanted) == (12, 10, 11)
    assert "label node (1)" in nodes.resolved_by
    assert "1 series match no node" in nodes.problem
    assert nodes.labels_seen[0].startswith("{instance=")
    assert 10 <= results["age of cpu of nodes (node_exporter)"].oldest_sample_s <= 300
    assert results["cpu of pods (cAdvisor)"].matched == 4
    missing = results["cpu of nodes (kubelet resource metrics)"]
    assert not missing.useful
    assert missing.problem.startswith("no series; ")
