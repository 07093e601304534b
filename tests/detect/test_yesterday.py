"""What yesterday says of the time to come: peaks that pass by themselves, and loads that come without anybody's doing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.detect.findings import Findings
from rebalancer.detect.yesterday import DAY_S
from rebalancer.policy.model import Anticipation, Pool, Spec, Threshold
from rebalancer.state.cluster import ClusterState, Yesterday
from tests.support.builder import NOW, PodSpec, cluster, node, pod

GIB = 2.0**30
MARKS = {"cpu": Threshold(low=30, target=55, high=65), "memory": Threshold(low=30, target=70, high=90)}
HORIZON_S, STEP_S = 1800.0, 300.0
SPEC = Spec(pools=(Pool(name="default", signals=MARKS),), anticipation=Anticipation(horizon=HORIZON_S))
Course = Callable[[float], float]
"""Seconds from this time of the day -> load."""


def old(name: str, *, cpu: float = 5.6, age_s: float = 3 * DAY_S, on: str = "busy") -> PodSpec:
    return pod(name, on=on, workload=name, uses={"cpu": cpu, "memory": GIB}, age_s=age_s)


def today(*pods: PodSpec, load: float = 0.7) -> ClusterState:
    """A node of 8 cores, and a calm one beside it."""
    nodes = [node("busy", load={"cpu": load, "memory": 0.3}), node("calm", load={"cpu": 0.2, "memory": 0.2})]
    return cluster(nodes=nodes, pods=pods or (old("a"),))


def with_yesterday(state: ClusterState, cpu: Course, *, of: str = "busy") -> ClusterState:
    """One point every five minutes from a quarter of an hour ago to twice the horizon; nothing is known of other nodes and of memory."""
    ahead = np.arange(-900.0, 2 * HORIZON_S + 1, STEP_S)
    load = np.full((len(state.nodes.names), len(state.signals), len(ahead)), np.nan)
    load[state.node_index[of], state.signal_index["cpu"]] = [cpu(moment) for moment in ahead.tolist()]
    return replace(state, yesterday=Yesterday(ahead_s=ahead, load=load))


def falling(at_s: float, *, before: float = 0.7, after: float = 0.4) -> Course:
    return lambda moment: before if moment < at_s else after


def why_passing(state: ClusterState, cpu: Course, spec: Spec = SPEC) -> str:
    return detect(with_yesterday(state, cpu), spec).foreseen.passing.get(0, "")


def test_a_peak_that_fell_yesterday_passes_by_itself() -> None:
    """With the loads of both days, the mark, and how long it took."""
    found = why_passing(today(), falling(1200.0, before=0.68))
    assert found == "cpu load 70 % as yesterday at this time (68 %), when it was under 60 % within 20m and stayed there"


@pytest.mark.parametrize(
    "cpu",
    [
        pytest.param(lambda _: 0.7, id="it never fell"),
        pytest.param(falling(2100.0), id="it fell after the horizon"),
        pytest.param(lambda moment: 0.4 if 600 <= moment < 2400 else 0.7, id="it came back before twice the horizon"),
        pytest.param(falling(1200.0, after=0.62), id="it fell to where another day may be hot again"),
        pytest.param(falling(1200.0, before=0.8), id="it was much hotter yesterday"),
        pytest.param(falling(1200.0, before=0.6), id="it was much cooler yesterday"),
        pytest.param(lambda moment: math.nan if moment == 2400 else falling(1200.0)(moment), id="a point that counts is unknown"),
        pytest.param(lambda moment: math.nan if moment <= 0 else 0.4, id="this time of the day is unknown"),
    ],
)
def test_what_did_not_pass_yesterday_does_not_pass(cpu: Course) -> None:
    """Nor what is not like it, nor what is not known."""
    assert why_passing(today(), cpu) == ""


def test_what_today_is_higher_by_is_taken_along() -> None:
    """Four points over yesterday: 57 % then are 61 % today, which is not under 60 %."""
    assert why_passing(today(load=0.7), falling(600.0, before=0.66, after=0.57)) == ""
    assert why_passing(today(load=0.7), falling(600.0, before=0.70, after=0.57)) != ""
    assert why_passing(today(load=0.7), falling(600.0, before=0.74, after=0.59)) != "", "nothing is taken off where today is lower"


def test_yesterday_counts_only_for_the_work_that_was_there() -> None:
    """At least four fifths of what the node uses."""
    new = old("new", cpu=1.0, age_s=DAY_S - 60)
    assert why_passing(today(old("a", cpu=4.6), new), falling(600.0)) != ""
    assert why_passing(today(old("a", cpu=4.6), replace(new, uses={"cpu": 1.2, "memory": GIB})), falling(600.0)) == ""


def test_every_signal_that_the_node_is_hot_by_has_to_pass() -> None:
    """Memory, of which yesterday says nothing, does not."""
    state = cluster(nodes=[node("busy", load={"cpu": 0.7, "memory": 0.95}), node("calm")], pods=[old("a")])
    assert why_passing(state, falling(600.0)) == ""


def test_nothing_is_anticipated_where_the_policy_does_not_ask() -> None:
    """Or where yesterday was not read."""
    off = SPEC.model_copy(update={"anticipation": Anticipation()})
    assert why_passing(today(), falling(600.0), off) == ""
    assert detect(today(), SPEC).foreseen.passing == {}


def calm_ahead(cpu: Course, *, load: float = 0.2) -> Findings:
    state = cluster(nodes=[node("calm", load={"cpu": load, "memory": 0.2})], pods=[old("a", cpu=8 * load, on="calm")])
    return detect(with_yesterday(state, cpu, of="calm"), SPEC)


def test_the_highest_load_to_come_is_foreseen_of_cool_nodes_too() -> None:
    """Within the horizon, and higher by as much as today is."""
    assert calm_ahead(lambda moment: 0.8 if moment == 1500 else 0.2).foreseen.peak[0, 0] == pytest.approx(0.8)
    assert calm_ahead(lambda moment: 0.8 if moment == 2100 else 0.2).foreseen.peak[0, 0] == pytest.approx(0.2)
    assert calm_ahead(lambda moment: 0.8 if moment == 1500 else 0.17).foreseen.peak[0, 0] == pytest.approx(0.83)
    assert np.isnan(calm_ahead(lambda moment: 0.8 if moment == 1500 else 0.05).foreseen.peak[0, 0])
    assert np.isnan(detect(today(), SPEC).foreseen.peak).all()


@given(st.lists(st.integers(0, 100).map(lambda percent: percent / 100), min_size=40, max_size=40))
def test_nobody_waits_for_longer_than_the_horizon(points: list[float]) -> None:
    """Whatever yesterday was: a node that stays as hot as it is, is not passing for all of the horizon and the windows before it."""
    times = np.arange(len(points)) * STEP_S
    window_s = 60.0 * (today().nodes.history.shape[2] - 1)
    waited = 0.0
    for moment in np.arange(900.0, 900.0 + HORIZON_S + window_s + 2 * STEP_S, 60.0):
        passing = why_passing(today(), lambda ahead, now=moment: float(np.interp(now + ahead, times, points)))
        if not passing:
            return
        waited = moment - 900.0
    raise AssertionError(f"it waits after {waited:g} s")


def test_old_enough_is_a_day() -> None:
    """To the second."""
    assert why_passing(today(old("a", age_s=DAY_S)), falling(600.0)) != ""
    assert why_passing(today(old("a", age_s=DAY_S - 1)), falling(600.0)) == ""
    assert today().at == NOW
