"""Signals of the operator's own, from the policy file to the move: network against a capacity query, and CPU pressure against a value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalancer.policy.loader import load_policy
from tests.integration.end_to_end.conftest import Town
from tests.integration.end_to_end.town import HOT, NODE_LABEL, NODES, PODS, VICTIM, Running, instants, series
from tests.support.prometheus_server import PrometheusServer, Samples, StartPrometheus, counter, gauge, openmetrics

pytestmark = pytest.mark.prometheus

LATER_S = 1800.0
LINE = 1.25e9
BUSY, CHATTY = NODES[5], f"filler-{NODES[5]}"
STRAINED, STRAINING = NODES[7], f"filler-{NODES[7]}"

TWO_POOLS = """
apiVersion: rebalancer.dev/v1alpha1
kind: RebalancePolicy
metadata: {{name: own}}
spec:
  pools:
    - name: edge
      nodeSelector: {{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{}, {}]}}]}}
      signals:
        cpu: {{low: 40, target: 55, high: 70}}
        network: {{low: 10, target: 40, high: 60}}
    - name: rest
      signals:
        cpu: {{low: 40, target: 55, high: 70}}
"""
POLICY = """
apiVersion: rebalancer.dev/v1alpha1
kind: RebalancePolicy
metadata: {{name: own}}
spec:
  pools:
    - name: default
      signals:
        cpu: {{low: 40, target: 55, high: 70}}
        memory: {{low: 50, target: 70, high: 85}}
        {name}: {{low: 10, target: 40, high: 60}}
  signals:
    - name: {name}
      unit: {unit}
      nodeQuery: '{node}'
      podQuery: '{pod}'
      capacity: {capacity}
"""
NETWORK = POLICY.format(
    name="network",
    unit="bytes/s",
    node='sum by (node, instance) (rate(node_network_receive_bytes_total{device!="lo"}[{window}]))',
    pod="sum by (namespace, pod, node) (rate(container_network_receive_bytes_total[{window}]))",
    capacity="{query: 'sum by (node) (node_network_speed_bytes{device!=\"lo\"})'}",
)
PRESSURE = POLICY.format(
    name="pressure",
    unit="ratio",
    node="rate(node_pressure_cpu_waiting_seconds_total[{window}])",
    pod="sum by (namespace, pod, node) (rate(container_pressure_cpu_waiting_seconds_total[{window}]))",
    capacity="{value: 1}",
)
NOBODY = POLICY.format(
    name="disk",
    unit="bytes/s",
    node="sum by (node) (rate(node_disk_read_bytes_total[{window}]))",
    pod="sum by (namespace, pod) (rate(container_fs_reads_bytes_total[{window}]))",
    capacity="{value: 5e8}",
)


def traffic_of(one: Running) -> float:
    """Bytes a second that a pod receives."""
    return 0.45 * LINE if one.name == CHATTY else 1e6


def strain_of(one: Running) -> float:
    """Seconds a second that a pod waits for a processor."""
    return 0.4 if one.name == STRAINING else 0.001


def own_series(now: float) -> Iterator[Samples]:
    times = instants(now, until=LATER_S)
    for name in NODES:
        labels = NODE_LABEL.of_node(name)
        here = [one for one in PODS if one.node == name]
        received = sum(map(traffic_of, here)) + (0.25 * LINE if name == BUSY else 0)
        for device, rate in (("eth0", received), ("lo", 5e9)):
            yield counter("node_network_receive_bytes_total", {**labels, "device": device}, rate, times=times)
        yield gauge("node_network_speed_bytes", {**labels, "device": "eth0"}, LINE, times=times)
        waited = 0.3 if name == STRAINED else 0.01
        yield counter("node_pressure_cpu_waiting_seconds_total", labels, waited + sum(map(strain_of, here)), times=times)
    for one in PODS:
        labels = {**NODE_LABEL.of_pod(one), "id": f"/{one.name}"}
        yield counter("container_network_receive_bytes_total", {**labels, "interface": "eth0"}, traffic_of(one), times=times)
        yield counter("container_pressure_cpu_waiting_seconds_total", labels, strain_of(one), times=times)


@pytest.fixture(scope="module")
def server(start_prometheus: StartPrometheus, now: float) -> PrometheusServer:
    return start_prometheus(blocks=openmetrics([*series(now, until=LATER_S), *own_series(now)]))


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


@pytest.mark.parametrize(
    ("policy", "signal", "node", "pod", "before", "after"),
    [(NETWORK, "network", BUSY, CHATTY, 0.7, 0.25), (PRESSURE, "pressure", STRAINED, STRAINING, 0.7, 0.3)],
    ids=["network", "pressure"],
)
def test_m13_a_signal_of_ones_own_makes_a_node_hot(
    policy: str,
    signal: str,
    node: str,
    pod: str,
    before: float,
    after: float,
    server: PrometheusServer,
    shared_town: Town,
    policy_file: Path,
) -> None:
    """A node that is cool by CPU and memory loses the pod behind its heat; the node that is hot by CPU is relieved beside it."""
    policy_file.write_text(policy, encoding="utf-8")
    plan = shared_town.look(server.url, load_policy(policy_file).spec).decision.plan
    moves = {move.source: move for move in plan.moves}
    assert {source: move.pod.name for source, move in moves.items()} == {HOT: VICTIM, node: pod}
    own = moves[node].signals[signal]
    assert own.source_before == pytest.approx(before, abs=0.01)
    assert own.source_after == pytest.approx(after, abs=0.01)
    assert own.destination_after is not None
    assert own.destination_after <= 0.6
    assert moves[node].reason.startswith(f"{signal} load 70 % > high 60 % in 10 of 10 windows; this pod alone brings it under target 40 %")
    assert f"signal {signal}: 12 of 12 nodes by policy, names from label node (12)" in plan.coverage.notes


def test_the_command_reads_the_same_policy_file(server: PrometheusServer, shared_town: Town, policy_file: Path) -> None:
    """From YAML to JSON: the moves of both signals, with the signal's own numbers."""
    policy_file.write_text(NETWORK, encoding="utf-8")
    ran = shared_town.command(server.url, "plan", "--policy", policy_file, "-o", "json").ended(0)
    assert {move["source"]: move["pod"]["name"] for move in ran.document["moves"]} == {HOT: VICTIM, BUSY: CHATTY}
    shown = next(node for node in ran.document["nodes"] if node["name"] == BUSY)
    assert shown["class"] == "hot"
    assert shown["signals"]["network"]["load"] == pytest.approx(0.7, abs=0.01)
    assert shown["signals"]["network"]["packing"] is None


def test_coverage_counts_the_nodes_that_are_judged_by_the_signal(
    start_prometheus: StartPrometheus, shared_town: Town, policy_file: Path, now: float
) -> None:
    """Two nodes have a network exporter, and their pool alone is judged by it: known whole, though ten other nodes have no such series."""
    edge = (BUSY, NODES[6])
    own = [one for one in own_series(now) if one.labels["node"] in edge]
    server = start_prometheus(blocks=openmetrics([*series(now, until=LATER_S), *own]))
    policy_file.write_text(TWO_POOLS.format(*edge) + NETWORK[NETWORK.index("  signals:\n    - name") :], encoding="utf-8")
    ran = shared_town.command(server.url, "plan", "--policy", policy_file, "-o", "json").ended(0)
    found = {node["name"]: (node["pool"], node["class"]) for node in ran.document["nodes"]}
    assert (found[BUSY], found[NODES[6]], found[HOT]) == (("edge", "hot"), ("edge", "cold"), ("rest", "hot"))
    assert "unknown" not in {word for _, word in found.values()}
    server.stop()


def test_m4_a_signal_that_nothing_serves_is_inert_by_name(server: PrometheusServer, shared_town: Town, policy_file: Path) -> None:
    """A pool that is judged by it has no node whose load is known: no move, no load of 0, and the note names the signal and its query."""
    policy_file.write_text(NOBODY, encoding="utf-8")
    plan = shared_town.look(server.url, load_policy(policy_file).spec).decision.plan
    assert plan.moves == ()
    assert plan.outcome == "nothing to do: none of 0 nodes with a known load is hot; 12 more have an unknown load"
    assert [note for note in plan.coverage.notes if "inert" in note] == [
        "signal disk is inert: query 'disk of nodes (policy)' found no series; Prometheus scrapes no job at all"
    ]
    assert {node.signals["disk"].load for node in plan.nodes} == {None}
    assert {round(node.signals["cpu"].load or 0, 2) for node in plan.nodes if node.name == HOT} == {0.88}


def test_m4_the_commands_name_the_signal_that_nothing_serves(server: PrometheusServer, shared_town: Town, policy_file: Path) -> None:
    """`plan` ends with status 5 and the name; `check` fails at the very query, with its text."""
    policy_file.write_text(NOBODY, encoding="utf-8")
    planned = shared_town.command(server.url, "plan", "--policy", policy_file).ended(5)
    assert planned.out == ""
    assert planned.error.startswith(
        "Error: signal disk is known for 0 of 12 nodes (0 %), metrics.minCoverage is 90 % (query 'disk of nodes"
    )
    checked = shared_town.command(server.url, "check", "--policy", policy_file, "-o", "json").ended(5)
    failed = [check for check in checked.document["checks"] if check["status"] == "fail"]
    assert {"disk of nodes", "disk of pods"} < {check["name"] for check in failed}
    assert any("node_disk_read_bytes_total[300s]" in check["remedy"] for check in failed)
