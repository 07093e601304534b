"""What a cycle learns about pods, in a number of queries that follows from their number alone."""

from __future__ import annotations

import pytest

from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory
from tests.collect_metrics.conftest import Connect
from tests.collect_metrics.scene import CPU_AGE, MEMORY_AGE, NODE_CPU, NODE_MEMORY, POD_CPU, POD_MEMORY, healthy, read, signal
from tests.support.scripted_prometheus import ScriptedPrometheus, failure, fresh, matrix, vector


@pytest.fixture
def prometheus(server: ScriptedPrometheus, connect: Connect) -> Prometheus:
    healthy(server)
    return connect(server)


@pytest.mark.parametrize(
    ("text", "reason"), [("NaN", "nan"), ("+Inf", "infinite"), ("", "unparsable"), ("-1", "negative"), ("1e9", "absurd")]
)
def test_kp7_a_senseless_sample_of_a_pod_is_no_sample(
    text: str, reason: str, server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """The pod is absent, not idle."""
    pods = [({"namespace": "default", "pod": "web-n1", "node": "n1"}, text), ({"namespace": "default", "pod": "web-n2", "node": "n2"}, 1.0)]
    server.on(POD_CPU, vector(*pods))
    samples = read(prometheus, directory)
    assert signal(samples).pod_usage == {("default", "web-n2", "n2"): 1.0}
    assert samples.dropped == {reason: 1}


def test_m9_pods_of_other_clusters_are_ignored(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """A pod measured on a node that is not ours is not the pod of the same name here."""
    pods = [({"namespace": "default", "pod": "web-n1", "node": name}, 1.0) for name in ("n1", "other")]
    server.on(POD_CPU, vector(*pods))
    samples = read(prometheus, directory)
    assert signal(samples).pod_usage == {("default", "web-n1", "n1"): 1.0}
    assert samples.dropped == {"foreign": 1}


def test_m10_two_series_for_one_pod_on_one_node_are_ambiguous(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """The pod is unknown, and a note shows why."""
    pods = [({"namespace": "default", "pod": "web-n1", "node": "n1", "instance": instance}, 1.0) for instance in ("n1", "10.0.0.1:10250")]
    server.on(POD_CPU, vector(*pods, ({"namespace": "default", "pod": "web-n2", "node": "n2"}, 1.0)))
    samples = read(prometheus, directory)
    assert signal(samples).pod_usage == {("default", "web-n2", "n2"): 1.0}
    assert samples.dropped == {"ambiguous": 2}
    assert any("default/web-n1" in note for note in samples.notes)


def test_a_pod_that_moved_is_told_apart_by_its_node(server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory) -> None:
    """A StatefulSet's pod has the same name on its old and its new node; both are kept, each with its node."""
    pods = [({"namespace": "default", "pod": "db-0", "node": name}, value) for name, value in (("n1", 3.0), ("n2", 0.1))]
    server.on(POD_CPU, vector(*pods))
    assert signal(read(prometheus, directory)).pod_usage == {("default", "db-0", "n1"): 3.0, ("default", "db-0", "n2"): 0.1}


def test_pods_are_named_by_exported_labels_where_labels_are_not_honoured(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Without honorLabels the plain labels name the scrape target."""
    labels = {"namespace": "kube-system", "pod": "agent", "exported_namespace": "default", "exported_pod": "web-n1", "node": "n1"}
    server.on(POD_CPU, vector((labels, 1.0)))
    assert signal(read(prometheus, directory)).pod_usage == {("default", "web-n1", "n1"): 1.0}


def test_a_pod_query_that_does_not_say_the_node_is_used_without(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """Then the key has an empty node, and the assembly may decide."""
    server.on(POD_CPU, vector(({"namespace": "default", "pod": "web-n1"}, 1.0)))
    assert signal(read(prometheus, directory)).pod_usage == {("default", "web-n1", ""): 1.0}


def test_m18_the_number_of_queries_follows_from_signals_alone(server: ScriptedPrometheus, prometheus: Prometheus) -> None:
    """Three nodes or three hundred, three pods or fifteen thousand: as many queries."""
    counts = []
    for size in (3, 300):
        names = [f"n{k}" for k in range(size)]
        directory = NodeDirectory(
            names=frozenset(names), addresses={}, pod_nodes={("default", f"w{p}-{n}"): n for n in names for p in range(50)}
        )
        server.on(NODE_CPU, matrix(*(({"node": name}, [1.0] * 10) for name in names)))
        server.on(NODE_MEMORY, matrix(*(({"node": name}, [1.0] * 10) for name in names)))
        server.on(CPU_AGE, fresh(*({"node": name} for name in names)))
        server.on(MEMORY_AGE, fresh(*({"node": name} for name in names)))
        rows = [({"namespace": namespace, "pod": pod, "node": node}, 0.1) for (namespace, pod), node in directory.pod_nodes.items()]
        server.on(POD_CPU, vector(*rows))
        server.on(POD_MEMORY, vector(*rows))
        before = len(server.asked)
        read(prometheus, directory)
        counts.append(len(server.asked) - before)
    assert counts == [6, 6]


def test_m18_many_pods_are_divided_by_namespace(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """45,000 pods: three queries a signal, each pod in exactly one of them, and a part that fails costs its own pods only."""
    healthy(server)
    large = NodeDirectory(
        names=directory.names,
        addresses=directory.addresses,
        pod_nodes={(f"team-{k % 9}", f"p{k}"): "n1" for k in range(45_000)},
    )
    for k in range(9):
        server.on(f"team-{k}", vector(({"namespace": f"team-{k}", "pod": "p0", "node": "n1"}, 1.0)))
    samples = read(connect(server), large)
    asked = server.queries(POD_CPU)
    assert len(asked) == 3
    for k in range(9):
        assert sum(f"team-{k}" in one.query for one in asked) == 1
    assert len(signal(samples).pod_usage) == 3
    server.on("team-0", failure(422, "no", kind="execution"))
    again = read(connect(server), large)
    assert len(signal(again).pod_usage) == 2
    assert any("part" in note and "status 422" in note for note in again.notes)


def test_pods_that_cannot_be_read_leave_the_nodes_known(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """The signal lives on for nodes, and says that it knows no pod."""
    server.on(POD_CPU, vector())
    samples = read(prometheus, directory)
    cpu = signal(samples)
    assert cpu.failed == ""
    assert cpu.pod_usage == {}
    assert "no pod of the cluster" in cpu.pods_failed
    assert any(note.startswith("signal cpu knows no pod") for note in samples.notes)
