"""Signals of the operator's own, capacities by query, and a label that is forced."""

from __future__ import annotations

import pytest

from rebalancer.collect.prometheus import Prometheus
from rebalancer.collect.samples import NodeDirectory
from rebalancer.errors import PrometheusRefused
from rebalancer.policy.model import Metrics, Pool, SignalQueries, Spec, Threshold
from tests.collect_metrics.conftest import Connect
from tests.collect_metrics.scene import CPU_AGE, NODE_CPU, POD_CPU, healthy, read, signal
from tests.support.scripted_prometheus import ScriptedPrometheus, failure, fresh, matrix, vector

MARKS = {"cpu": Threshold(low=40, target=55, high=70)}


@pytest.fixture
def prometheus(server: ScriptedPrometheus, connect: Connect) -> Prometheus:
    healthy(server)
    return connect(server)


def network(**changes: object) -> SignalQueries:
    values: dict[str, object] = {
        "name": "network",
        "unit": "bytes/s",
        "node_query": "sum by (node) (rate(node_net[{window}]))",
        "pod_query": "sum by (namespace, pod) (rate(pod_net[{window}]))",
        "capacity": {"value": 1000.0},
    }
    return SignalQueries.model_validate({**values, **changes})


def spec_with(own: SignalQueries, **metrics: object) -> Spec:
    marks = {own.name: Threshold(low=40, target=55, high=70)}
    return Spec(pools=(Pool(name="default", signals=marks),), signals=(own,), metrics=Metrics(**metrics))  # type: ignore[arg-type]


def test_a_refused_policy_query_is_named(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """A mistake in the operator's own PromQL comes back as Prometheus' words."""
    server.on("node_net", failure(400, "parse error"))
    with pytest.raises(PrometheusRefused, match=r"network of nodes \(policy\).*parse error"):
        read(connect(server), directory, spec=spec_with(network()))


def test_a_signal_of_the_operators_own_is_read_by_its_queries(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """The window is put in, capacity is the policy's value, and without an age query no age is demanded."""
    server.on("node_net[120s]", matrix(*(({"node": f"n{k}"}, [100.0 * k] * 10) for k in (1, 2, 3))))
    server.on("pod_net[120s]", vector(({"namespace": "default", "pod": "web-n1"}, 7.0)))
    network_samples = signal(read(connect(server), directory, spec=spec_with(network(), window=120)), "network")
    assert network_samples.node_usage["n3"].tolist() == [300.0] * 10
    assert network_samples.node_unknown == {}
    assert network_samples.pod_usage == {("default", "web-n1", ""): 7.0}
    assert network_samples.capacity == {"n1": 1000.0, "n2": 1000.0, "n3": 1000.0}
    assert (network_samples.signal.unit, network_samples.signal.resource) == ("bytes/s", None)


def test_a_capacity_query_gives_capacity_to_the_nodes_it_knows(
    server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory
) -> None:
    """A capacity of 0, NaN, or given twice is none."""
    server.on("node_net[", matrix(*(({"node": f"n{k}"}, [1.0] * 10) for k in (1, 2, 3))))
    server.on("node_speed", vector(({"node": "n1"}, 50), ({"node": "n2"}, 0), ({"node": "n3", "d": "a"}, 1), ({"node": "n3", "d": "b"}, 1)))
    own = network(capacity={"query": "node_speed"})
    assert signal(read(connect(server), directory, spec=spec_with(own)), "network").capacity == {"n1": 50.0}


def test_a_capacity_query_that_finds_nothing_makes_the_signal_inert(
    server: ScriptedPrometheus, prometheus: Prometheus, directory: NodeDirectory
) -> None:
    """A usage without a capacity is no load."""
    server.on("node_net[", matrix(*(({"node": f"n{k}"}, [1.0] * 10) for k in (1, 2, 3))))
    own = network(capacity={"query": "node_speed"})
    spec = Spec(pools=(Pool(name="default", signals={**MARKS, "network": MARKS["cpu"]}),), signals=(own,))
    assert "network capacity of nodes (policy)" in signal(read(prometheus, directory, spec=spec), "network").failed


def test_m1_an_age_query_of_the_operators_own_is_obeyed(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """Ages come by node; one that is too great, senseless or missing makes the node unknown."""
    server.on("node_net[", matrix(*(({"node": f"n{k}"}, [1.0] * 10) for k in (1, 2, 3))))
    server.on("net_age", vector(({"node": "n1"}, 20), ({"node": "n2"}, 400)))
    own = network(node_age_query="net_age")
    found = signal(read(connect(server), directory, spec=spec_with(own)), "network")
    assert found.node_unknown == {"n2": "last sample is 6m40s old, limit 3m", "n3": "the age of its last sample is unknown"}


def test_the_operators_maximum_makes_samples_absurd(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """Above the maximum a sample is not believed."""
    server.on("node_net[", matrix(*(({"node": f"n{k}"}, [100.0 * k] * 10) for k in (1, 2, 3))))
    samples = read(connect(server), directory, spec=spec_with(network(maximum=250)))
    assert set(signal(samples, "network").node_unknown) == {"n3"}
    assert samples.dropped == {"absurd": 10}


def test_a_built_in_signal_can_be_replaced(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """CPU by the operator's recording rule is still compared with CPU requests, and no built-in query is sent."""
    server.on("my:cpu", matrix(*(({"node": f"n{k}"}, [1.0] * 10) for k in (1, 2, 3))))
    own = network(name="cpu", unit="cores", node_query="my:cpu", pod_query="my:pods", capacity={"resource": "cpu"})
    cpu = signal(read(connect(server), directory, spec=spec_with(own)))
    assert (cpu.signal.resource, cpu.capacity_resource, cpu.source) == ("cpu", "cpu", "policy")
    assert server.queries("node_cpu_seconds_total") == []


def test_a_forced_node_label_is_obeyed_for_nodes_and_pods(server: ScriptedPrometheus, connect: Connect, directory: NodeDirectory) -> None:
    """The label is kept by the aggregation of pods and is the only one asked."""
    server.on(NODE_CPU, matrix(*(({"host": f"n{k}", "node": "n1"}, [1.0] * 10) for k in (1, 2, 3))))
    server.on(CPU_AGE, fresh(*({"host": f"n{k}", "node": "n1"} for k in (1, 2, 3))))
    server.on(POD_CPU, vector(({"namespace": "default", "pod": "web-n2", "host": "n2", "node": "n1"}, 1.0)))
    spec = Spec(pools=(Pool(name="default", signals=MARKS),), metrics=Metrics(node_label="host"))
    cpu = signal(read(connect(server), directory, spec=spec))
    assert set(cpu.node_usage) == {"n1", "n2", "n3"}
    assert cpu.pod_usage == {("default", "web-n2", "n2"): 1.0}
    assert "instance, host)" in server.queries(POD_CPU)[0].query
