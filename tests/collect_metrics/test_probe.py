"""What ``check`` learns before anything depends on it."""

from __future__ import annotations

from rebalancer.collect.probe import probe, unserved
from rebalancer.collect.samples import NodeDirectory
from rebalancer.deadline import Deadline
from rebalancer.policy.model import Spec
from tests.collect_metrics.conftest import Connect
from tests.collect_metrics.scene import AT, NODE_CPU, POD_CPU, healthy
from tests.support.scripted_prometheus import ScriptedPrometheus, failure, vector

INSTANT = "sum without (cpu, mode) (rate(node_cpu_seconds_total"


def test_m4_a_signal_that_nothing_serves_is_named(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """Of several sources one is enough; where none answers, all of them are listed."""
    healthy(server)
    labels = [{"instance": f"10.0.0.{k}:9100"} for k in (1, 2, 3)]
    server.on(INSTANT, vector(*((one, 1.0) for one in labels)))
    server.on("avg_over_time(node_memory_MemTotal_bytes", vector())
    results = probe(connect(server), spec=Spec(), directory=directory, at=AT, deadline=Deadline.after(20))
    assert {(result.query.signal, result.query.subject) for result in unserved(results)} == {("memory", "nodes")}
    assert [result.query.name for result in unserved(results)] == [
        "memory of nodes (node_exporter)",
        "memory of nodes (kubelet resource metrics)",
    ]


def test_a_query_that_fails_is_a_result_with_a_problem(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """The others are tried all the same."""
    healthy(server)
    server.on(NODE_CPU, failure(400, "parse error"))
    server.on(POD_CPU, vector(({"namespace": "default", "pod": "web-n1", "node": "n1"}, 1.0)))
    results = {
        result.query.name: result for result in probe(connect(server), spec=Spec(), directory=directory, at=AT, deadline=Deadline.after(20))
    }
    assert "parse error" in results["cpu of nodes (node_exporter)"].problem
    pods = results["cpu of pods (cAdvisor)"]
    assert (pods.matched, pods.wanted, pods.problem) == (1, 6, "")
