"""The programs against trying everything, and against our own plans."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.exact.fewest import fewest_moves, most_cured
from benchmarks.exact.frozen import Frozen
from benchmarks.exact.measuring import put_beside
from benchmarks.exact.problem import ceilings
from benchmarks.exact.worst import CLOSE, lowest_worst
from rebalancer.detect.classify import detect
from rebalancer.guard.gate import Booked, Candidate, Scene, book, first_refusal
from rebalancer.policy.model import Budgets, Cooldown, Mode, RebalancePolicy, Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED
from tests.exact.posing import NEAR, SPEC, posed, try_everything
from tests.support.builder import cluster, node, pod
from tests.support.strategies import clusters

PROFILE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
TIGHT = Spec(pools=SPEC.pools, budgets=Budgets(total=6, per_node=2, per_namespace=5, per_workload=2), cooldown=Cooldown(node=0))


@st.composite
def tiny_clusters(draw: st.DrawFn) -> ClusterState:
    """Two to four nodes of 100 cores and GiB, up to five pods in whole cores, most of them on the first; some share a workload."""
    names = [f"n{i}" for i in range(draw(st.integers(2, 4)))]
    pods = [
        pod(
            f"p{i}",
            on=draw(st.sampled_from(["n0", "n0", "n0", "n1"])),
            workload=draw(st.sampled_from(["a", "b", f"own{i}", f"own{i}"])),
            cpu=draw(st.sampled_from([1, 10, 30])),
            memory="1Gi",
            uses={"cpu": draw(st.integers(0, 30)), "memory": draw(st.integers(0, 20)) * 2.0**30},
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    nodes = []
    for name in names:
        here = [each for each in pods if each.on == name]
        rest = {"cpu": draw(st.integers(35, 50) if name == "n0" else st.integers(0, 50)), "memory": draw(st.integers(0, 60))}
        usage = {
            "cpu": rest["cpu"] + sum(float(each.uses["cpu"]) for each in here),
            "memory": rest["memory"] * 2.0**30 + sum(float(each.uses["memory"]) for each in here),
        }
        nodes.append(node(name, cpu=100, memory="100Gi", usage=usage))
    return cluster(nodes=nodes, pods=pods)


@PROFILE
@given(tiny_clusters(), st.integers(0, 3))
def test_nothing_that_can_be_tried_is_better(state: ClusterState, moves: int) -> None:
    """The fewest moves, the most cured nodes, the fewest moves for those, and the lowest worst load, all by enumeration."""
    problem = posed(state)
    tried, ceiling = try_everything(state, problem, moves=moves), ceilings(problem)
    hot = int((problem.findings.node_class == 3).sum())
    fewest, most = fewest_moves(problem, ceiling), most_cured(problem, ceiling)
    assert (np.inf if fewest.moves is None else len(fewest.moves)) == tried.fewest == fewest.proven
    assert most.count == most.proven == tried.most_cured
    again = fewest_moves(problem, ceiling, uncured=hot - most.count)
    assert again.moves is not None
    assert len(again.moves) == again.proven == tried.fewest_for_most
    lowest = lowest_worst(problem, moves, also_from=np.ones(len(state.nodes.names), dtype=np.bool_))
    assert lowest.proven - NEAR <= tried.lowest <= lowest.worst + NEAR
    assert lowest.worst <= tried.lowest * (1 + 2 * CLOSE) + NEAR
    assert len(lowest.moves) <= moves


@PROFILE
@given(clusters())
def test_what_is_found_is_a_plan(state: ClusterState) -> None:
    """Each pod passes every gate with all the others booked before it, and nobody is over the ceiling but who was."""
    problem = posed(state, TIGHT)
    hot = int((problem.findings.node_class == 3).sum())
    ceiling, most = ceilings(problem), most_cured(problem, ceilings(problem))
    found = fewest_moves(problem, ceiling, uncured=hot - most.count)
    assert found.moves is not None
    scene = Scene(state=state, spec=TIGHT, history=NOTHING_HAPPENED, booked=Booked(), mode=Mode.EVICT)
    for position, node_row in found.moves:
        candidate = Candidate(int(problem.pods[position]), int(problem.source[position]))
        assert first_refusal(candidate, scene) is None
        assert problem.open[position, node_row]
        book(candidate, scene)
    after = problem.load_after(found.moves)
    counted = problem.findings.judged & problem.known[:, None]
    assert (after <= np.fmax(ceiling, problem.load) + NEAR)[counted].all()
    assert int((after > ceiling + NEAR)[counted.all(axis=1)].any(axis=1).sum()) <= hot - most.count


@PROFILE
@given(clusters())
def test_no_plan_of_ours_beats_the_optimum(state: ClusterState) -> None:
    """Neither in moves for what it does, nor in cured nodes, nor in the worst load."""
    policy = RebalancePolicy(spec=TIGHT)
    beside = put_beside(Frozen("drawn", 0, state, policy), policy)
    assert beside.same.moves is not None
    assert len(beside.same.moves) <= len(beside.ours.moves)
    assert beside.ours.cured <= beside.most.count
    assert beside.lowest.proven <= beside.ours.worst + NEAR
    assert beside.lowest.worst <= beside.ours.worst * (1 + CLOSE) + NEAR
    assert beside.lowest.bound <= beside.lowest.proven + NEAR
    assert beside.hot == int((detect(state, TIGHT).node_class == 3).sum())
