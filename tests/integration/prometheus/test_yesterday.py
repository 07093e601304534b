"""Yesterday on a real Prometheus: a peak of the day before is found where it was, for nodes of every kind of label."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from rebalancer.collect.asking import Asking
from rebalancer.collect.metrics import read_samples
from rebalancer.collect.prometheus import Prometheus, PrometheusAccess
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.yesterday import DAY_S, read_yesterday
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Anticipation, Pool, Spec, Threshold
from rebalancer.state.cluster import Yesterday
from tests.support.prometheus_server import Samples, StartPrometheus, gauge, openmetrics

pytestmark = pytest.mark.prometheus

NOW = 1_750_000_000.7
GIB = 2.0**30
MARKS = {"cpu": Threshold(low=40, target=55, high=70), "memory": Threshold(low=50, target=70, high=85)}
SPEC = Spec(pools=(Pool(name="default", signals=MARKS),), anticipation=Anticipation(horizon=1800, step=300))
DIRECTORY = NodeDirectory(names=frozenset(["by-label", "by-address", "new"]), addresses={"10.0.0.2": "by-address"}, pod_nodes={})
NAMES = ("by-address", "by-label", "new")
PEAK_S = 900.0
"""How long after this time of the day the peak of yesterday ended."""


def scene() -> Iterator[Samples]:
    """A scrape every 15 s of the last half hour and of the day before; the node that is new was not there then."""
    around = [NOW - DAY_S - 1500 + 15 * number for number in range(400)]
    lately = [NOW - 1500 + 15 * number for number in range(100)]
    for labels, cores, moments in (
        ({"job": "ne", "node": "by-label", "instance": "192.168.7.1:9100"}, 3.0, [*around, *lately]),
        ({"job": "ne", "instance": "10.0.0.2:9100"}, 1.0, [*around, *lately]),
        ({"job": "ne", "node": "new", "instance": "192.168.7.9:9100"}, 2.0, lately),
    ):
        yield gauge("node_memory_MemTotal_bytes", labels, 16 * GIB, times=moments)
        yield gauge("node_memory_MemAvailable_bytes", labels, 12 * GIB, times=moments)
        busy, last = 0.0, moments[0]
        points = []
        for moment in moments:
            in_peak = moment < NOW - DAY_S + PEAK_S or moment > NOW - DAY_S / 2
            busy += (cores if in_peak else 0.5) * (moment - last)
            points.append((moment, busy))
            last = moment
        yield Samples("node_cpu_seconds_total", {**labels, "cpu": "0", "mode": "user"}, points)
        yield gauge("node_cpu_seconds_total", {**labels, "cpu": "0", "mode": "idle"}, 1.0, times=moments)


@pytest.fixture(scope="module")
def yesterday(start_prometheus: StartPrometheus) -> Yesterday:
    client = Prometheus(PrometheusAccess(url=start_prometheus(blocks=openmetrics(scene())).url))
    try:
        samples = read_samples(client, spec=SPEC, directory=DIRECTORY, at=NOW, deadline=Deadline.after(60))
        asking = Asking(client, directory=DIRECTORY, at=NOW, deadline=Deadline.after(60))
        sources = {each.signal.name: each.source for each in samples.signals}
        capacity = np.tile([4.0, 16 * GIB], (3, 1))
        return read_yesterday(asking, spec=SPEC, names=NAMES, capacity=capacity, sources=sources, wanted=["cpu", "memory"])
    finally:
        client.close()


def test_the_peak_of_yesterday_is_where_it_was(yesterday: Yesterday) -> None:
    """Three of four cores until a quarter of an hour from this time of the day, half a core once the window has passed it."""
    ahead, cpu = yesterday.ahead_s, yesterday.load[1, 0]
    np.testing.assert_allclose(cpu[ahead <= PEAK_S], 0.75, rtol=0.02)
    np.testing.assert_allclose(cpu[ahead >= PEAK_S + SPEC.metrics.window + 15], 0.125, rtol=0.02)
    assert ahead[0] <= -540
    assert ahead[-1] >= 3600


def test_a_node_is_found_by_its_address_as_it_is_today(yesterday: Yesterday) -> None:
    """One of four cores, and a quarter of the memory."""
    np.testing.assert_allclose(yesterday.load[0, 0, yesterday.ahead_s <= PEAK_S], 0.25, rtol=0.02)
    np.testing.assert_allclose(yesterday.load[0, 1], 0.25, rtol=1e-6)


def test_of_a_node_that_was_not_there_nothing_is_known(yesterday: Yesterday) -> None:
    """Not zero."""
    assert np.isnan(yesterday.load[2]).all()
