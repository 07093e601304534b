"""Node names: every way that installations name nodes finds them, and none finds a node twice or one that is not ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.resolve import Lookups, Way, describe_foreign, match_node, resolve
from rebalancer.collect.samples import NodeDirectory


@pytest.mark.parametrize(
    "text",
    ["n1", "n1:9100", "10.0.0.1", "10.0.0.1:9100", "[fd00::1]:9100", "fd00::1", "FD00:0::1", "[fd00::1]", "http://10.0.0.1:9100/metrics"],
)
def test_m5_every_spelling_of_an_instance_finds_its_node(text: str, directory: NodeDirectory) -> None:
    """Name, address, either with a port, IPv6 in any form, a URL."""
    assert resolve([{"instance": text}], directory=directory).nodes == ("n1",)


@pytest.mark.parametrize("text", ["", "n10", "n1.example", "10.0.0.11", "10.0.0.1.5:9100", ":9100", "n", "fd00::2", "[n1", "::"])
def test_m5_what_only_looks_like_a_node_finds_none(text: str, directory: NodeDirectory) -> None:
    """No prefix, no suffix, no guess."""
    assert match_node(text, directory) == ""


def test_m5_a_uname_finds_the_node_behind_a_foreign_instance(directory: NodeDirectory) -> None:
    """An instance that means nothing here is looked up in node_uname_info."""
    lookups = Lookups(exporter_pods=lambda _: {}, unames=lambda: {"172.16.0.9:9100": "n2"})
    found = resolve([{"instance": "172.16.0.9:9100"}], directory=directory, lookups=lookups)
    assert found.nodes == ("n2",)
    assert found.ways == {Way.UNAME: 1}


def test_the_exporters_pod_finds_the_node_where_it_runs(directory: NodeDirectory) -> None:
    """Namespace and pod of the exporter are looked up in the API server's list first."""
    found = resolve([{"namespace": "monitoring", "pod": "exporter-n3", "instance": "172.16.0.9:9100"}], directory=directory)
    assert found.nodes == ("n3",)
    assert found.ways == {Way.EXPORTER_POD: 1}


def test_the_exporters_pod_is_asked_of_prometheus_when_the_directory_lacks_it(directory: NodeDirectory) -> None:
    """Only the namespaces of series that are still open are asked for."""
    asked: list[set[str]] = []

    def exporter_pods(namespaces):
        asked.append(set(namespaces))
        return {("obs", "ne-abc"): "n2"}

    lookups = Lookups(exporter_pods=exporter_pods, unames=dict)
    labels = [{"namespace": "obs", "pod": "ne-abc"}, {"namespace": "monitoring", "pod": "exporter-n1"}]
    assert resolve(labels, directory=directory, lookups=lookups).nodes == ("n2", "n1")
    assert asked == [{"obs"}]


def test_the_label_node_comes_before_all_others(directory: NodeDirectory) -> None:
    """Where two ways disagree, the one of more trust is taken."""
    found = resolve([{"node": "n1", "instance": "10.0.0.2:9100", "namespace": "monitoring", "pod": "exporter-n3"}], directory=directory)
    assert found.nodes == ("n1",)


def test_m9_a_node_label_of_another_cluster_is_foreign_although_its_address_is_ours(directory: NodeDirectory) -> None:
    """Private addresses repeat between clusters; a label node that names our nodes elsewhere is believed when it names a strange one."""
    labels = [{"node": "n1", "instance": "10.0.0.1:9100"}, {"node": "other-7", "instance": "10.0.0.2:9100"}]
    found = resolve(labels, directory=directory)
    assert found.nodes == ("n1", "")
    assert describe_foreign(labels, found) == ('1 series match no node of the cluster: {instance="10.0.0.2:9100", node="other-7"}')


def test_a_node_label_that_never_names_a_node_is_not_the_nodes_name(directory: NodeDirectory) -> None:
    """Some installations use the label for something else: then the instance is asked."""
    labels = [{"node": "blue", "instance": "10.0.0.1:9100"}, {"node": "green", "instance": "10.0.0.2:9100"}]
    assert resolve(labels, directory=directory).nodes == ("n1", "n2")


def test_a_forced_label_is_the_only_one_asked(directory: NodeDirectory) -> None:
    """What the policy names is taken, as a name or an address, and nothing else."""
    labels = [{"host": "10.0.0.3:1", "node": "n1"}, {"node": "n1", "instance": "n1"}]
    found = resolve(labels, directory=directory, forced="host")
    assert found.nodes == ("n3", "")
    assert found.ways == {Way.FORCED: 1}


def test_the_tables_are_not_asked_for_when_labels_say_it_all(directory: NodeDirectory) -> None:
    """A query is saved where every instance is a node."""

    def never(*_):
        raise AssertionError("asked for a table without need")

    lookups = Lookups(exporter_pods=never, unames=never)
    assert resolve([{"instance": "n1:9100"}, {"node": "n2"}], directory=directory, lookups=lookups).nodes == ("n1", "n2")


def test_the_report_says_which_way_found_how_many(directory: NodeDirectory) -> None:
    """In words, in the order of trust."""
    labels = [{"instance": "n1:9100"}, {"node": "n2"}, {"instance": "10.0.0.3"}]
    assert resolve(labels, directory=directory).describe() == "label node (1), label instance (2)"


@given(st.lists(st.dictionaries(st.sampled_from(["node", "instance", "namespace", "pod", "job"]), st.text(max_size=20)), max_size=8))
def test_any_labels_give_a_node_of_the_cluster_or_none(labels: list[dict[str, str]]) -> None:
    """Whatever the labels are, no node is invented and every series without one is listed as foreign."""
    directory = NodeDirectory(names=frozenset({"n1", "0"}), addresses={"10.0.0.1": "n1", "gone": "n9"}, pod_nodes={("", ""): "n1"})
    found = resolve(labels, directory=directory)
    assert set(found.nodes) <= {"n1", "0", ""}
    assert found.foreign == tuple(row for row, node in enumerate(found.nodes) if not node)
    assert sum(found.ways.values()) == len(labels) - len(found.foreign)
