"""Tiny problems for the yardstick, and the answer to them by trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.exact.problem import Places, Problem, ceilings, pose
from rebalancer.detect.classify import detect
from rebalancer.plan.planner import lay_bench
from rebalancer.policy.model import Budgets, Mode, Pool, RebalancePolicy, Spec, Threshold
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED

MARKS = {"cpu": Threshold(low=30, target=50, high=70), "memory": Threshold(low=30, target=70, high=90)}
"""The limit of a destination is 60 % of the CPU, 80 % of the memory."""
WIDE = Budgets(total=100, per_node=100, per_namespace=100, per_workload=100, per_tenant="100%")
SPEC = Spec(pools=(Pool(name="default", signals=MARKS),), budgets=WIDE)
NEAR = 1e-6


def posed(state: ClusterState, spec: Spec = SPEC, *, limits: bool = True, places: Places = Places.FREE) -> Problem:
    policy = RebalancePolicy(spec=spec)
    bench = lay_bench(state=state, findings=detect(state, spec), policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT)
    return pose(bench, limits=limits, places=places)


def named(state: ClusterState, problem: Problem, moves: tuple[tuple[int, int], ...] | None) -> dict[str, str]:
    """pod name -> node name."""
    assert moves is not None
    return {state.pods.names[problem.pods[position]]: state.nodes.names[node] for position, node in moves}


@dataclass
class Tried:
    """What trying every assignment found; inf where there is none."""

    fewest: float = np.inf
    most_cured: int = 0
    fewest_for_most: float = np.inf
    lowest: float = np.inf


def try_everything(state: ClusterState, problem: Problem, *, moves: int) -> Tried:
    """By the tables of the state alone: loads, requests, one pod of a workload. Every pod may leave; the pool is one, all nodes are known.

    ``fewest`` and ``most_cured`` are of plans in which only pods of hot nodes leave, ``lowest`` of all plans of at most ``moves`` moves.
    """
    nodes, pods, ceiling = state.nodes, state.pods, ceilings(problem)
    hot = (problem.findings.node_class == 3).tolist()
    request = np.zeros(nodes.allocatable.shape)
    np.add.at(request, pods.node, pods.request)
    best = Tried()
    for where in product(range(len(nodes.names)), repeat=len(pods.names)):
        moved = [pod for pod in range(len(where)) if where[pod] != pods.node[pod]]
        if any(count > 1 for count in Counter(int(pods.workload[pod]) for pod in moved).values()):
            continue
        after, asked = nodes.usage.copy(), request.copy()
        fits = all((request[where[pod]] + pods.request[pod] <= nodes.allocatable[where[pod]]).all() for pod in moved)
        for pod in moved:
            after[pods.node[pod]] -= pods.usage[pod]
            after[where[pod]] += pods.usage[pod]
            asked[pods.node[pod]] -= pods.request[pod]
            asked[where[pod]] += pods.request[pod]
        entered = sorted({where[pod] for pod in moved})
        if not fits or (asked[entered] > nodes.allocatable[entered]).any():
            continue
        load = after / nodes.capacity
        if len(moved) <= moves:
            best.lowest = min(best.lowest, float((load / problem.findings.high).max()))
        if all(hot[pods.node[pod]] for pod in moved):
            _judge(best, load, ceiling, problem, hot, len(moved))
    return best


def _judge(best: Tried, load: np.ndarray, ceiling: np.ndarray, problem: Problem, hot: list[bool], moved: int) -> None:
    under = (load <= ceiling + NEAR).all(axis=1)
    no_worse = (load <= np.fmax(ceiling, problem.load) + NEAR).all(axis=1)
    if not no_worse.all():
        return
    cured = sum(bool(one) for one, was in zip(under, hot, strict=True) if was)
    if cured == sum(hot):
        best.fewest = min(best.fewest, moved)
    if cured > best.most_cured:
        best.most_cured, best.fewest_for_most = cured, moved
    elif cured == best.most_cured:
        best.fewest_for_most = min(best.fewest_for_most, moved)
