"""The six queries behind node load annotations against a real Prometheus, held against numpy on a day whose every value is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from rebalancer.collect.load_peaks import DAY_S, HOUR_S, MEAN_S, LoadPeaks, Peaks, PeriodsS
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.recording import rules_text
from rebalancer.collect.samples import NodeDirectory
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Metrics, Pool, Spec, Threshold
from rebalancer.state.arrays import FloatArray
from tests.support.prometheus_server import PrometheusServer, Samples, StartPrometheus, openmetrics

pytestmark = pytest.mark.prometheus

NOW = 1_750_000_123.0
GIB = 2.0**30
EVERY_S = 60.0
NAMES = ("n1", "n2", "young")
DIRECTORY = NodeDirectory(names=frozenset((*NAMES, "silent")), addresses={}, pod_nodes={})
SPEC = Spec()
USAGE = {"cpu": np.ones(3), "memory": np.ones(3)}


@dataclass(frozen=True)
class Node:
    """Samples a minute apart, and what was used in the minute that ends with each. ``peaks``: (seconds ago, cores) for ten minutes each."""

    name: str
    back_s: float
    base: float
    peaks: tuple[tuple[float, float], ...]

    @property
    def times(self) -> FloatArray:
        return NOW - 7.0 - EVERY_S * np.arange(int(self.back_s / EVERY_S))[::-1]

    @property
    def cores(self) -> FloatArray:
        times = self.times
        cores = self.base + 0.2 * np.sin(times / 5000.0)
        for ago, height in self.peaks:
            cores = np.where((times > NOW - ago) & (times <= NOW - ago + 600), height, cores)
        return cores

    @property
    def memory(self) -> FloatArray:
        return self.cores * GIB

    def mean_cores(self, at: float) -> float:
        """Of the five minutes before ``at``: what the counter grew between its first and its last sample there."""
        inside = (self.times > at - MEAN_S) & (self.times <= at)
        return float(self.cores[inside][1:].mean()) if inside.sum() > 1 else np.nan

    def mean_memory(self, at: float) -> float:
        inside = (self.times > at - MEAN_S) & (self.times <= at)
        return float(self.memory[inside].mean()) if inside.any() else np.nan

    def samples(self) -> Iterator[Samples]:
        times = self.times.tolist()
        labels = {"job": "node", "node": self.name}
        grown = 1000.0 + np.cumsum(self.cores * EVERY_S)
        yield Samples("node_cpu_seconds_total", {**labels, "cpu": "0", "mode": "user"}, list(zip(times, grown.tolist(), strict=True)))
        yield Samples("node_cpu_seconds_total", {**labels, "cpu": "0", "mode": "idle"}, [(at, at) for at in times])
        yield Samples("node_memory_MemTotal_bytes", labels, [(at, 64 * GIB) for at in times])
        free = (64 * GIB - self.memory).tolist()
        yield Samples("node_memory_MemAvailable_bytes", labels, list(zip(times, free, strict=True)))


NODES = (
    Node("n1", 27 * HOUR_S, 2.0, ((24 * HOUR_S + 1500, 15.0), (23 * HOUR_S + 2400, 9.0), (3000, 5.0))),
    Node("n2", 27 * HOUR_S, 4.0, ((2 * HOUR_S, 8.0), (HOUR_S + 1800, 12.0))),
    Node("young", HOUR_S / 2, 1.0, ((900, 3.0),)),
)


def highest(node: Node, span_s: float, *, memory: bool = False) -> float:
    """The maximum of the five-minute means at multiples of five minutes within the span, and of the mean now."""
    mean = node.mean_memory if memory else node.mean_cores
    first = np.ceil((NOW - span_s) / MEAN_S) * MEAN_S
    return float(np.nanmax([*(mean(at) for at in np.arange(first, NOW, MEAN_S)), mean(NOW)]))


@pytest.fixture(scope="module")
def server(start_prometheus: StartPrometheus) -> PrometheusServer:
    return start_prometheus(blocks=openmetrics(one for node in NODES for one in node.samples()))


@pytest.fixture
def prometheus(server: PrometheusServer) -> Iterator[Prometheus]:
    client = Prometheus(PrometheusAccess(url=server.url))
    yield client
    client.close()


def read(peaks: LoadPeaks, *, spec: Spec = SPEC, at: float = NOW, names: tuple[str, ...] = NAMES) -> dict[str, Peaks]:
    usage = USAGE
    if spec.metrics.window == MEAN_S:
        usage = {
            "cpu": np.array([node.mean_cores(at) for node in NODES if node.name in names]),
            "memory": np.array([node.mean_memory(at) for node in NODES if node.name in names]),
        }
    found, notes = peaks.read(
        ("cpu", "memory"),
        spec=spec,
        directory=DIRECTORY,
        names=names,
        usage=usage,
        periods=PeriodsS(),
        at=at,
        deadline=Deadline.after(60),
    )
    assert not [note for note in notes if "lack" in note]
    return dict(found)


def test_all_six_are_what_numpy_finds(prometheus: Prometheus) -> None:
    """Hour and day of both signals, and the mean where the policy's own window is another."""
    other = Spec(metrics=Metrics(window=600))
    for spec in (SPEC, other):
        found = read(LoadPeaks(prometheus, budget_s=60), spec=spec)
        for row, node in enumerate(NODES):
            cpu, memory = found["cpu"], found["memory"]
            assert cpu.mean[row] == pytest.approx(node.mean_cores(NOW), rel=0.02)
            assert cpu.hour[row] == pytest.approx(highest(node, HOUR_S), rel=0.02)
            assert cpu.day[row] == pytest.approx(highest(node, DAY_S), rel=0.02)
            assert memory.mean[row] == pytest.approx(node.mean_memory(NOW), rel=0.02)
            assert memory.hour[row] == pytest.approx(highest(node, HOUR_S, memory=True), rel=0.02)
            assert memory.day[row] == pytest.approx(highest(node, DAY_S, memory=True), rel=0.02)


def test_a_mean_over_a_window_that_has_only_begun_is_not_known(prometheus: Prometheus) -> None:
    """The young node a minute or two after its first sample: a rate over five minutes would be a fraction of the truth."""
    at = float(NODES[2].times[0]) + 200
    found = read(LoadPeaks(prometheus, budget_s=60), spec=Spec(metrics=Metrics(window=600)), at=at)["cpu"]
    assert np.isfinite(found.mean).tolist() == [True, True, False]
    assert np.isnan(found.hour[2])


def test_the_peaks_lie_where_the_test_means_them_to(prometheus: Prometheus) -> None:
    """One is older than the day and higher, one is as old as the first hour of it, one is older than the hour."""
    found = read(LoadPeaks(prometheus, budget_s=60))["cpu"]
    assert found.hour.round(1).tolist() == [5.0, pytest.approx(4.2, abs=0.3), 3.0]
    assert found.day.round(1).tolist() == [9.0, 12.0, 3.0]


def test_a_maximum_is_asked_for_at_its_period_and_grows_in_between(prometheus: Prometheus) -> None:
    """The hours of the day that are known already are never asked for again."""
    peaks = LoadPeaks(prometheus, budget_s=60)
    asked: list[str] = []
    instant = prometheus.instant

    def counted(query: str, **rest: object) -> object:
        asked.append(query)
        return instant(query, **rest)  # type: ignore[arg-type]

    prometheus.instant = counted  # type: ignore[assignment, method-assign]
    first = read(peaks, at=NOW - 3 * HOUR_S, names=("n1", "n2"))
    assert len(asked) == 2 * (1 + 23 + 1)
    asked.clear()
    assert read(peaks, at=NOW - 3 * HOUR_S + 120, names=("n1", "n2"))["cpu"].day_at[0] == first["cpu"].day_at[0]
    assert asked == []
    read(peaks, at=NOW - 3 * HOUR_S + 900, names=("n1", "n2"))
    assert len(asked) == 2
    asked.clear()
    later = read(peaks, names=("n1", "n2"))["cpu"]
    assert len(asked) == 2 * (1 + 3 + 1)
    assert later.day[0] == pytest.approx(highest(NODES[0], DAY_S), rel=0.02)
    assert later.day_at[0] == NOW


def test_a_mean_above_the_remembered_maximum_is_the_maximum_at_once(prometheus: Prometheus) -> None:
    """Until the next query nobody else would say so."""
    peaks = LoadPeaks(prometheus, budget_s=60)
    read(peaks)
    arguments = {"spec": SPEC, "directory": DIRECTORY, "names": NAMES, "periods": PeriodsS(), "deadline": Deadline.after(60)}
    found, _ = peaks.read(("cpu",), usage={"cpu": np.array([20.0, np.nan, 1.0])}, at=NOW + 120, **arguments)  # type: ignore[arg-type]
    assert found["cpu"].hour[0] == found["cpu"].day[0] == 20.0
    assert found["cpu"].hour_at[0] == NOW + 120
    assert np.isnan([found["cpu"].hour[1], found["cpu"].day[1]]).all()
    assert found["cpu"].hour_at[2] == NOW


def test_the_hours_of_a_day_come_in_several_cycles_when_they_are_slow(prometheus: Prometheus) -> None:
    """No time at all: the hour is known, the day is not, and nothing less than the day is taken for it."""
    peaks = LoadPeaks(prometheus, budget_s=0.0)
    found = read(peaks)["cpu"]
    assert np.isfinite(found.hour).all()
    assert np.isnan(found.day).all()


def test_recorded_means_are_looked_up_and_rules_that_are_younger_than_the_day_are_not(start_prometheus: StartPrometheus) -> None:
    """The hour comes from the rules, the day from the queries."""
    recorded = start_prometheus(blocks=openmetrics(one for node in NODES for one in node.samples()))
    rules = rules_text(SPEC, node_label=None)
    recorded.backfill(rules, since=NOW - 2 * HOUR_S, until=NOW)
    client = Prometheus(PrometheusAccess(url=recorded.url, recording_rules=True))
    asked: list[str] = []
    instant = client.instant

    def counted(query: str, **rest: object) -> object:
        asked.append(query)
        return instant(query, **rest)  # type: ignore[arg-type]

    client.instant = counted  # type: ignore[assignment, method-assign]
    found = read(LoadPeaks(client, budget_s=60))["cpu"]
    client.close()
    assert any(query.startswith("max_over_time((max without () (rebalancer:node_cpu_cores") for query in asked)
    assert not any("rebalancer:" in query and "[86400s" in query for query in asked)
    for row, node in enumerate(NODES):
        assert found.hour[row] == pytest.approx(highest(node, HOUR_S), rel=0.02)
        assert found.day[row] == pytest.approx(highest(node, DAY_S), rel=0.02)


def test_a_signal_that_cannot_be_had_is_a_note_and_unknown(tmp_path: object) -> None:
    """Prometheus is gone: no maxima, no error."""
    client = Prometheus(PrometheusAccess(url="http://127.0.0.1:9"), pause_s=0.0)
    found, notes = LoadPeaks(client).read(
        ("cpu",),
        spec=Spec(pools=(Pool(name="p", signals={"cpu": Threshold(low=40, target=55, high=70)}),)),
        directory=DIRECTORY,
        names=NAMES,
        usage={"cpu": np.ones(3)},
        periods=PeriodsS(),
        at=NOW,
        deadline=Deadline.after(20),
    )
    client.close()
    assert np.isnan(found["cpu"].day).all()
    assert found["cpu"].mean.tolist() == [1.0, 1.0, 1.0]
    assert [note for note in notes if note.startswith("signal cpu: node load annotations lack the maxima:")]
