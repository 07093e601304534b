"""Nodes as columns that are kept from one look to the next."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.node_columns import NodeColumns, NodeTable, Reading
from rebalancer.kube.wire_steering import NodeLoadWire
from rebalancer.steer.load_annotations import SERIES, Oddity
from tests.extending.kit import node
from tests.steer.kit import NOW, SHANGHAI, crane, own

READING = Reading(SHANGHAI, SERIES, lambda labels: int(labels.get("pool", "-1")))


def looked(*looks: list[NodeLoadWire]) -> NodeColumns:
    table = NodeTable(READING)
    for nodes in looks:
        table.look(nodes)
    return table.columns


def same(one: NodeColumns, other: NodeColumns) -> bool:
    arrays = [
        (x.crane.usage, x.crane.written_at, x.crane.hot, x.own.load, x.own.expires_at, x.machine, x.allocatable, x.pool)
        for x in (one, other)
    ]
    equal = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*arrays, strict=True))
    return equal and one.names == other.names and dict(one.crane.odd) == dict(other.crane.odd) and one.own.odd == other.own.odd


def test_a_look_reads_what_nodes_say() -> None:
    """Loads of both annotations, the machine, what pods may have of it, and the pool."""
    found = looked([node("a", {**crane(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, hot=2), **own(cpu=0.7)}, labels={"pool": "1"}, allocatable="6")])
    assert found.crane.usage.tolist() == [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]]
    assert found.crane.hot.tolist() == [2.0]
    assert found.own.load[0, 0] == 0.7
    assert found.machine[0, :2].tolist() == [8.0, 32 * 2**30]
    assert found.allocatable[0, :2].tolist() == [0.75, 1.0]
    assert np.isnan(found.machine[0, 2:]).all()
    assert found.pool.tolist() == [1]


def test_a_look_without_news_is_none() -> None:
    """The same objects, or equal ones from another list."""
    table = NodeTable(READING)
    first = [node("a", own(cpu=0.1)), node("b", own(cpu=0.2))]
    assert table.look(first)
    columns = table.columns
    assert not table.look(list(first))
    assert not table.look([node("a", own(cpu=0.1)), node("b", own(cpu=0.2))])
    assert table.columns is columns


def test_columns_that_were_handed_out_are_never_written_again() -> None:
    """Who answers by them may still be at it."""
    table = NodeTable(READING)
    a, b = node("a", own(cpu=0.1)), node("b", own(cpu=0.2))
    table.look([a, b])
    before = table.columns
    table.look([a, node("b", own(cpu=0.9))])
    assert before.own.load[:, 0].tolist() == [0.1, 0.2]
    assert table.columns.own.load[:, 0].tolist() == [0.1, 0.9]


def test_odd_annotations_are_told_with_a_node_and_only_while_there_is_one() -> None:
    """Somebody else's value under the same key does not count, and nothing else suffers."""
    a = node("a", {**own(cpu=0.1), "cpu_usage_avg_5m": "50%"})
    b = node("b", {"rebalancer.dev/load": "high"})
    table = NodeTable(READING)
    table.look([a, b])
    assert dict(table.columns.odd) == {("cpu_usage_avg_5m", Oddity.NOT_TWO_PARTS): "a"}
    assert (table.columns.own_odd, table.columns.own.odd) == ("b", 1)
    assert table.columns.own.load[0, 0] == 0.1
    table.look([a])
    assert (table.columns.own_odd, table.columns.own.odd) == ("", 0)
    table.look([node("a", own(cpu=0.1))])
    assert dict(table.columns.odd) == {}


def test_a_size_that_cannot_be_read_is_unknown() -> None:
    """Not zero; and without the machine's own size, what pods may have is all that is known."""
    odd = node("a", allocatable="lots")
    assert np.isnan(looked([odd]).machine).all()
    bare = NodeLoadWire(metadata=odd.metadata)
    assert np.isnan(looked([bare]).machine).all()
    assert math.isnan(looked([node("a", cpu="0")]).machine[0, 0])


def test_another_reading_reads_everything_again() -> None:
    """Series and pools that an edited policy names."""
    table = NodeTable(READING)
    nodes = [node("a", {**crane(*[0.5] * 6), "disk_usage": "0.25000,2026-01-02T11:04:05Z"})]
    table.look(nodes)
    table.read_as(Reading(SHANGHAI, ("disk_usage",), lambda labels: 3))
    assert table.columns.names == ()
    assert table.look(nodes)
    assert table.columns.crane.usage.tolist() == [[0.25]]
    assert table.columns.pool.tolist() == [3]


VALUES = st.one_of(
    st.just({}),
    st.floats(0, 2).map(lambda load: own(cpu=load, memory=load)),
    st.floats(0, 2).map(lambda load: crane(*[load] * 6, hot=1, at=NOW)),
    st.sampled_from([{"cpu_usage_avg_5m": "x"}, {"rebalancer.dev/load": "{}"}, {"node_hot_value": "-1,2026-01-02T11:04:05Z"}]),
)
LOOKS = st.lists(st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=6), min_size=1, max_size=6)


@given(LOOKS)
def test_many_looks_end_where_one_would(looks: list[dict[str, dict[str, str]]]) -> None:
    """Nodes that come, go and change: the columns are those of the last list, whatever was kept on the way."""
    known: dict[str, NodeLoadWire] = {}
    table = NodeTable(READING)
    for look in looks:
        made = {name: node(name, written) for name, written in sorted(look.items())}
        known = {name: known[name] if known.get(name) == each else each for name, each in made.items()}
        table.look(list(known.values()))
    assert same(table.columns, looked([node(name, written) for name, written in sorted(looks[-1].items())]))
