"""Recorded series on a real Prometheus: the same usage and the same ages as by the queries, and no trust in rules that stand still.

What the rules would have recorded is computed by promtool, for moments of their own grid. At such a moment a look-up and the query have to
agree to the last digit; in between the look-up is as old as the last evaluation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from rebalancer.collect.metrics import read_samples
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.queries import usage_query
from rebalancer.collect.recording import RecordedNodes, live_lookup, rules_text
from rebalancer.collect.samples import NodeDirectory, SignalSamples
from rebalancer.collect.samples import Samples as ReadSamples
from rebalancer.collect.signals import built_in_signals
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Confirm, Metrics, Spec
from tests.integration.prometheus.test_queries import DIRECTORY, GIB, NOW, scene
from tests.support.prometheus_server import PrometheusServer, StartPrometheus, TestExporter, gauge, openmetrics

pytestmark = pytest.mark.prometheus

STATISTICS = ("mean", "max", "p95")
STAMP = "rebalancer:node_{}_stamp_seconds:node_exporter_mean5m"


def spec_of(statistic: str = "mean") -> Spec:
    return Spec(metrics=Metrics(statistic=statistic), confirm=Confirm(windows=10, at_least=8, step=60))  # type: ignore[arg-type]


def look(url: str, *, at: float = NOW, recorded: bool, spec: Spec | None = None, directory: NodeDirectory = DIRECTORY) -> ReadSamples:
    prometheus = Prometheus(PrometheusAccess(url=url, recording_rules=recorded), pause_s=0.01)
    try:
        return read_samples(prometheus, spec=spec or spec_of(), directory=directory, at=at, deadline=Deadline.after(60))
    finally:
        prometheus.close()


def signal(samples: ReadSamples, name: str) -> SignalSamples:
    return next(one for one in samples.signals if one.signal.name == name)


def evaluated(url: str, series: str, *, at: float = NOW) -> float:
    """When the rule of a series was last evaluated."""
    prometheus = Prometheus(PrometheusAccess(url=url), pause_s=0.01)
    try:
        return float(prometheus.instant(f"max(timestamp({series}))", at=at, deadline=Deadline.after(20)).values[0, 0])
    finally:
        prometheus.close()


@pytest.fixture(scope="module")
def recorded(start_prometheus: StartPrometheus) -> str:
    """The scene of the queries, and what the rules of all three statistics have recorded of it."""
    server = start_prometheus(blocks=openmetrics(scene()))
    for statistic in STATISTICS:
        server.backfill(rules_text(spec_of(statistic), node_label=None), since=NOW - 1500, until=NOW)
    return server.url


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_a_look_up_yields_what_the_query_yields(recorded: str, name: str, statistic: str) -> None:
    """Nodes in all windows, pods, ages, and what is unknown and why: at a moment of evaluation there is no difference at all."""
    spec = spec_of(statistic)
    at = evaluated(recorded, f"rebalancer:node_{name}_stamp_seconds:node_exporter_{statistic}5m")
    assert NOW - 30 < at <= NOW
    direct, looked_up = (signal(look(recorded, at=at, recorded=way, spec=spec), name) for way in (False, True))
    assert (direct.source, looked_up.source) == ("node_exporter", "node_exporter, recorded")
    assert looked_up.node_usage.keys() == direct.node_usage.keys()
    assert len(direct.node_usage) == 10
    for node, line in direct.node_usage.items():
        np.testing.assert_allclose(looked_up.node_usage[node], line, rtol=1e-9, err_msg=node)
    assert looked_up.node_age_s == pytest.approx(direct.node_age_s, abs=0.01)
    assert {node: why.replace(", recorded", "") for node, why in looked_up.node_unknown.items()} == direct.node_unknown
    assert looked_up.pod_usage == pytest.approx(direct.pod_usage, rel=1e-9)
    assert len(direct.pod_usage) >= 5


def test_between_evaluations_a_sample_is_as_old_as_the_last_one_that_was_seen(recorded: str) -> None:
    """Not younger: the raw sample of a second ago is not in the value yet."""
    at = evaluated(recorded, STAMP.format("cpu"))
    then = signal(look(recorded, at=at, recorded=True), "cpu").node_age_s["by-name"]
    later = signal(look(recorded, at=at + 25, recorded=True), "cpu")
    assert later.node_age_s["by-name"] == pytest.approx(then + 25, abs=0.01)
    assert later.node_usage["by-name"][-1] == pytest.approx(4.0, rel=0.01)


def test_m1_a_node_that_is_silent_is_unknown_by_its_recorded_stamp(recorded: str) -> None:
    """Its usage is recorded until its window is empty."""
    cpu = signal(look(recorded, recorded=True), "cpu")
    assert cpu.source == "node_exporter, recorded"
    assert "stale" in cpu.node_usage
    assert "limit 3m" in cpu.node_unknown["stale"]


def test_a_policy_of_another_window_asks_the_queries(recorded: str) -> None:
    """The names differ, so there is nothing to confuse."""
    spec = Spec(metrics=Metrics(window=600), confirm=Confirm(windows=2, at_least=1, step=60))
    assert signal(look(recorded, recorded=True, spec=spec), "cpu").source == "node_exporter"


@pytest.mark.parametrize(
    ("since", "until", "source"),
    [(1500, 60, "node_exporter, recorded"), (1500, 240, "node_exporter"), (300, 0, "node_exporter")],
    ids=["a minute late", "not evaluated for longer than maxAge", "installed five minutes ago"],
)
def test_m1_rules_that_stand_still_or_are_new_hide_nothing(
    start_prometheus: StartPrometheus, since: float, until: float, source: str
) -> None:
    """Prometheus gives a recorded value out for five minutes; it counts as what it is, and at last not at all."""
    server = start_prometheus(blocks=openmetrics(scene()))
    server.backfill(rules_text(spec_of(), node_label=None), since=NOW - since, until=NOW - until)
    samples = look(server.url, recorded=True)
    cpu = signal(samples, "cpu")
    assert cpu.source == source
    if source == "node_exporter":
        assert cpu.node_age_s["by-name"] < 30
        assert set(cpu.pod_usage) == set(signal(look(server.url, recorded=False), "cpu").pod_usage)
    else:
        assert until <= cpu.node_age_s["by-name"] < until + 60


def grid(*, until: float) -> list[float]:
    """Moments of evaluation, the last one ``until`` seconds before `NOW`."""
    return [NOW - until - 30.0 * step for step in range(40, -1, -1)]


def test_m1_a_rule_that_fails_alone_makes_its_values_old(start_prometheus: StartPrometheus) -> None:
    """The stamps of its group go on; the age is that of the usage's last evaluation. Where a stamp is missing there is no age."""
    usage, stamp = "rebalancer:node_cpu_cores:node_exporter_mean5m", STAMP.format("cpu")
    labels = {name: {"instance": f"{name}:9100"} for name in ("by-name", "by-uname", "stale")}
    series = [gauge(usage, labels["by-name"], 1.0, times=grid(until=120)), gauge(usage, labels["by-uname"], 1.0, times=grid(until=0))]
    series += [gauge(usage, labels["stale"], 1.0, times=grid(until=0))]
    series += [gauge(stamp, labels[name], lambda at: at - 5, times=grid(until=0)) for name in ("by-name", "by-uname")]
    url = start_prometheus(blocks=openmetrics(series)).url
    query = live_lookup(RecordedNodes(usage=usage, stamp=stamp))
    assert sorted(NOW - value for value in values(url, query, at=NOW)) == pytest.approx([5, 120], abs=0.01)


def test_pods_that_two_replicas_have_recorded_count_once(start_prometheus: StartPrometheus) -> None:
    """As the query itself drops copies; nodes with two series stay ambiguous, as they are without rules."""
    pod = {"namespace": "a", "pod": "p1", "node": "by-label", "instance": "192.168.7.1:10250"}
    name = "rebalancer:pod_cpu_cores:cadvisor_mean5m"
    series = [gauge(name, {**pod, "prometheus_replica": replica}, 0.8, times=grid(until=0)) for replica in ("a", "b")]
    directory = NodeDirectory(names=frozenset(["by-label"]), addresses={}, pod_nodes={("a", "p1"): "by-label"})
    url = start_prometheus(blocks=openmetrics([*series, *scene()])).url
    cpu = signal(look(url, recorded=True, directory=directory), "cpu")
    assert dict(cpu.pod_usage) == {("a", "p1", "by-label"): 0.8}


class Hardware:
    """The counters of a node that is busy for one and a half cores."""

    def text(self) -> str:
        passed = time.time() % 100_000
        lines = [f'node_cpu_seconds_total{{cpu="0",mode="user"}} {1.5 * passed}', f'node_cpu_seconds_total{{cpu="0",mode="idle"}} {passed}']
        return "\n".join([*lines, f"node_memory_MemTotal_bytes {16 * GIB}", f"node_memory_MemAvailable_bytes {12 * GIB}", ""])


@pytest.fixture
def living(start_prometheus: StartPrometheus) -> Iterator[tuple[PrometheusServer, TestExporter]]:
    """A server that scrapes and evaluates the rules every second."""
    rules = rules_text(spec_of(), node_label=None).replace("interval: 30s", "interval: 1s")
    with TestExporter(Hardware().text) as exporter:
        yield start_prometheus(targets={"node": [exporter.address]}, rules=rules), exporter


def values(url: str, query: str, *, at: float | None = None) -> list[float]:
    prometheus = Prometheus(PrometheusAccess(url=url), pause_s=0.01)
    try:
        return prometheus.instant(query, at=at or time.time(), deadline=Deadline.after(20)).values[:, 0].tolist()
    finally:
        prometheus.close()


def test_rules_that_prometheus_evaluates_itself_end_with_their_node(living: tuple[PrometheusServer, TestExporter]) -> None:
    """A target that fails takes its recorded stamp along at once, and its last one is found by looking back, as a raw one is."""
    server, exporter = living
    stamp, usage = STAMP.format("cpu"), "rebalancer:node_cpu_cores:node_exporter_mean5m"
    for _ in range(300):
        if values(server.url, usage) and values(server.url, stamp):
            break
        time.sleep(0.1)
    at = evaluated(server.url, usage, at=time.time())
    query = usage_query(built_in_signals()["cpu"].nodes[0].usage, window_s=300, statistic="mean")
    assert values(server.url, usage, at=at) == pytest.approx(values(server.url, query, at=at))
    assert values(server.url, usage, at=at)[0] > 0
    assert time.time() - values(server.url, stamp)[0] < 10
    exporter.failing = True
    for _ in range(300):
        if not values(server.url, stamp):
            break
        time.sleep(0.1)
    assert values(server.url, stamp) == []
    assert len(values(server.url, f"max_over_time({stamp}[60s])")) == 1
