"""The text of queries, and how many there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.collect.pod_usage import PODS_PER_QUERY, shards
from rebalancer.collect.queries import counter, duration, own_query, re_literal, usage_query
from rebalancer.collect.samples import NodeDirectory
from rebalancer.collect.signal_plan import GPU_SIGNALS, describe_queries
from rebalancer.collect.signals import built_in_signals
from rebalancer.policy.model import BUILT_IN_SIGNALS, Metrics, Spec


def test_every_built_in_signal_of_the_policy_has_a_file() -> None:
    """The policy's list and the package agree."""
    assert {*built_in_signals(), *GPU_SIGNALS} == set(BUILT_IN_SIGNALS)


@pytest.mark.parametrize("statistic", ["mean", "max", "p95"])
def test_no_placeholder_is_left_in_a_query(statistic: str) -> None:
    """Braces in a query are PromQL's own."""
    for query in describe_queries(Spec(metrics=Metrics(statistic=statistic))):  # type: ignore[arg-type]
        for placeholder in ("{window}", "{by}", "{shard}", "{lookback}"):
            assert placeholder not in query.text
        assert query.text.count("(") == query.text.count(")")


def test_names_of_queries_are_unique() -> None:
    """A sentence that names a query names one."""
    names = [query.name for query in describe_queries(Spec())]
    assert len(set(names)) == len(names)


def test_a_maximum_looks_at_moments_inside_the_window_alone() -> None:
    """Window 5m: rates over 2m, taken over the last 3m, so that nothing from before the window enters."""
    expected = "max_over_time((rate(x[120s]))[180s:30s])"
    assert usage_query(counter("rate(x[{window}])"), window_s=300, statistic="max") == expected


@pytest.mark.parametrize(("seconds", "text"), [(300.0, "300s"), (90.5, "90500ms"), (0.25, "250ms")])
def test_durations_are_promql(seconds: float, text: str) -> None:
    """Whole seconds or milliseconds."""
    assert duration(seconds) == text


def test_the_window_is_put_into_the_operators_query() -> None:
    """Everywhere it is named; other braces are left alone."""
    assert own_query('a{b="c"}[{window}] + d[{window}]', window_s=60) == 'a{b="c"}[60s] + d[60s]'


@given(st.text(alphabet="ab.|()[]{}*+?^$\\-_/ ", max_size=12))
def test_a_literal_matches_itself_alone(text: str) -> None:
    """Whatever a namespace or a label holds, it is no pattern."""
    import re

    assert re.fullmatch(re_literal(text), text)
    assert not re.fullmatch(re_literal(text), f"{text}a")


@given(sizes=st.lists(st.integers(0, 3 * PODS_PER_QUERY), max_size=6), extra=st.integers(0, 50_000))
def test_every_namespace_is_in_exactly_one_shard(sizes: list[int], extra: int) -> None:
    """Whatever the sizes are, and never more shards than the number of pods asks for."""
    sizes = [size // 1000 for size in sizes]  # the rule is the same, the directory smaller
    directory = NodeDirectory(
        names=frozenset(), addresses={}, pod_nodes={(f"ns{k}", f"p{i}"): "n" for k, size in enumerate(sizes) for i in range(size)}
    )
    namespaces = [f"ns{k}" for k in range(len(sizes))]
    pods = sum(sizes) + extra
    parts = shards(directory=directory, namespaces=namespaces, pods=pods)
    assert len(parts) <= max(1, -(-pods // PODS_PER_QUERY))
    if parts != (None,):
        assert sorted(name for part in parts for name in part or ()) == sorted(namespaces)
