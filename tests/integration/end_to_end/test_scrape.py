"""A living exporter, scraped every second: what it says now is what is planned on, and when it breaks off nothing is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rebalancer.errors import MetricsMissing
from rebalancer.plan.model import Plan
from rebalancer.policy.model import Confirm, Metrics, Pool, Spec, Threshold
from tests.integration.end_to_end.conftest import StartTown, Town
from tests.integration.end_to_end.town import GIB, HOT, MEMORY, NODE_LABEL, NODES, PODS, VICTIM
from tests.support.prometheus_server import PrometheusServer, StartPrometheus, TestExporter

pytestmark = pytest.mark.prometheus

POLLS = 200
BIG = 14 * GIB
MEMORY_ALONE = (Pool(name="default", signals={"memory": Threshold(low=50, target=70, high=85)}),)
SPEC = Spec(pools=MEMORY_ALONE, metrics=Metrics(window=30, max_age=10), confirm=Confirm(windows=1, at_least=1, step=10))


class Exporters:
    """Node and pod memory as text; ``used`` is what the hot node holds, ``victim`` what the pod behind it holds."""

    def __init__(self) -> None:
        self.used = 29 * GIB
        self.text = self._text

    def _text(self) -> str:
        lines = []
        for name in NODES:
            labels = _shown(NODE_LABEL.of_node(name))
            used = self.used if name == HOT else 4 * GIB
            lines += [f"node_memory_MemTotal_bytes{labels} {MEMORY}", f"node_memory_MemAvailable_bytes{labels} {MEMORY - used}"]
        for one in PODS:
            labels = _shown({**NODE_LABEL.of_pod(one), "container": "main", "id": f"/{one.name}"})
            lines.append(f"container_memory_working_set_bytes{labels} {BIG if one.name == VICTIM else GIB / 2}")
        return "\n".join([*lines, ""])


def _shown(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


@pytest.fixture
def exporters() -> Exporters:
    return Exporters()


@pytest.fixture
def exporter(exporters: Exporters) -> Iterator[TestExporter]:
    with TestExporter(exporters.text) as running:
        yield running


@pytest.fixture
def server(exporter: TestExporter, start_prometheus: StartPrometheus) -> Iterator[PrometheusServer]:
    started = start_prometheus(targets={"node": [exporter.address]})
    yield started
    started.stop()


def planned(town: Town, server: PrometheusServer) -> Plan | None:
    """The plan of this very moment; None while nothing has been scraped yet."""
    try:
        return town.look(server.url, SPEC, at=time.time()).decision.plan
    except MetricsMissing:
        return None


def until(found):
    """The first answer that is true, within bounded polls."""
    for _ in range(POLLS):
        if answer := found():
            return answer
        time.sleep(0.1)
    raise AssertionError("it did not happen within the polls")


def test_m13_what_is_scraped_now_is_what_is_planned_on(start_town: StartTown, server: PrometheusServer, exporters: Exporters) -> None:
    """A node hot by memory alone loses its big pod; when its memory falls the windows follow, and the plan is empty again."""
    town = start_town()
    plan = until(lambda: planned(town, server))
    assert [(move.pod.name, move.source) for move in plan.moves] == [(VICTIM, HOT)]
    assert plan.moves[0].signals["memory"].source_before == pytest.approx(29 / 32)
    assert plan.moves[0].signals["memory"].usage == pytest.approx(BIG)
    assert plan.moves[0].reason.startswith("memory load 91 % > high 85 % in 1 of 1 windows; this pod alone brings it under target 70 %")
    exporters.used = 6 * GIB
    cool = until(lambda: (found := planned(town, server)) and not found.moves and found)
    assert cool.outcome == "nothing to do: none of 12 nodes with a known load is hot"


def test_m1_m3_an_exporter_that_breaks_off_leaves_nothing_to_plan_on(
    start_town: StartTown, server: PrometheusServer, exporter: TestExporter
) -> None:
    """Every node was hot or cool a moment ago; ten seconds after the last scrape that succeeded all are unknown, and none is 0."""
    town = start_town()
    until(lambda: exporter.scrapes > 7)  # a series that was seen for less than five seconds may be missed by the search for last samples
    assert until(lambda: planned(town, server)).moves
    exporter.failing = True
    plan = until(lambda: (found := planned(town, server)) and found.summary.unknown_nodes == len(NODES) and found)
    assert plan.moves == ()
    assert {node.signals["memory"].load for node in plan.nodes} == {None}
    assert all("limit 10s" in node.reason for node in plan.nodes)
