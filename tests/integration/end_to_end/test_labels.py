"""However an installation labels its series, the same cluster gets the same plan."""

from __future__ import annotations

import pytest

from tests.integration.end_to_end.conftest import Town
from tests.integration.end_to_end.town import HOT, MEMORY, NODES, PODS, VARIANTS, VICTIM, memory_of, series
from tests.support.prometheus_server import StartPrometheus, openmetrics

pytestmark = pytest.mark.prometheus

SOURCES = {
    "a node label": "names from label node (12)",
    "instance as address and port": "names from label instance (12)",
    "the uname of a foreign instance": "names from node_uname_info (12)",
    "the pod of the exporter": "names from the exporter's pod (12)",
    "the exporter's pod of kube-state-metrics": "names from the exporter's pod (12)",
    "the kubelet's resource metrics": "12 of 12 nodes by kubelet resource metrics, names from label node (12)",
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_m5_m6_every_variant_of_labels_gets_the_same_plan(
    variant: str, shared_town: Town, now: float, start_prometheus: StartPrometheus
) -> None:
    """One move, of the pod that covers the excess, with loads and sentence from what was scraped; everything measured, nothing dropped."""
    server = start_prometheus(blocks=openmetrics(series(now, VARIANTS[variant])))
    plan = shared_town.look(server.url).decision.plan
    assert [(move.pod.name, move.source) for move in plan.moves] == [(VICTIM, HOT)]
    move = plan.moves[0]
    assert move.destination in NODES[1:]
    assert move.signals["cpu"].source_before == pytest.approx(0.88, abs=1e-4)
    assert move.signals["cpu"].source_after == pytest.approx(0.505, abs=1e-4)
    assert move.signals["cpu"].usage == pytest.approx(3.0, abs=1e-3)
    assert move.signals["memory"].source_before == pytest.approx(memory_of(HOT) / MEMORY, abs=1e-4)
    assert move.reason == "cpu load 88 % > high 70 % in 10 of 10 windows; this pod alone brings it under target 55 %"
    assert plan.outcome == "1 move from 1 of 1 hot node"
    assert (plan.coverage.nodes.known, plan.coverage.nodes.of) == (12, 12)
    assert plan.coverage.pods.known == len(PODS)
    assert plan.coverage.dropped == {}
    assert any(SOURCES[variant] in note for note in plan.coverage.notes)
    server.stop()
