"""Comparing: the same seed is the same world, and what is counted is what happened."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from rebalancer.report.simulation import SimulationReport, StrategyResult
from rebalancer.runtime.own_strategy import REBALANCER
from rebalancer.runtime.simulating import simulate
from rebalancer.simulate.forward.running import line_up
from rebalancer.simulate.forward.scenario import SimulationScenario
from rebalancer.simulate.forward.strategy import DO_NOTHING, Actions, StrategyKind
from rebalancer.state.cluster import ClusterState
from tests.simulate_forward.kit import Evicting, evicting, policy_of, population, run, scenario, setting

SKEWED = [population(use={"cpu": {"median": 0.5, "sigma": 0.9, "most": 8}}, wave={"share": 20}, noise={"share": 10})]


def compared(made: SimulationScenario, *kinds: StrategyKind, seed: int | None = None, hours: float = 0.5) -> SimulationReport:
    return simulate(setting(made, seed=seed, hours=hours), line_up(kinds, [policy_of(made)]), hours=hours)


def numbers(result: StrategyResult) -> object:
    return msgspec.structs.replace(result, wall_seconds=0.0, deciding_seconds=0.0)


def lively() -> SimulationScenario:
    """Everything that chance decides is in it."""
    return scenario(
        workloads=SKEWED,
        averageLoad=50,
        diurnal={"share": 20},
        bursts={"perDay": 200},
        failures={"perDay": 50},
        arrivals={"perDay": 100},
        rollouts={"perDay": 100},
    )


def test_the_same_seed_gives_the_same_result() -> None:
    """To the last digit, for a strategy that acts and for one that does not."""
    first, second = (compared(lively(), DO_NOTHING, REBALANCER) for _ in range(2))
    assert [numbers(one) for one in first.results] == [numbers(one) for one in second.results]


def test_another_seed_gives_another_world() -> None:
    """The seed is not only carried along."""
    first, second = (compared(lively(), DO_NOTHING, seed=seed) for seed in (1, 2))
    assert numbers(first.results[0]) != numbers(second.results[0])


def test_company_changes_nothing() -> None:
    """A strategy has the same life whether it runs alone or after others."""
    alone = compared(lively(), REBALANCER)
    last = compared(lively(), evicting(count=3), DO_NOTHING, REBALANCER)
    assert numbers(last.results[-1]) == numbers(alone.results[0])


def test_what_comes_from_outside_is_the_same_for_all() -> None:
    """A strategy that evicts meets the demand that one that does nothing meets: the sum over all nodes is the same, start-ups aside."""
    made = scenario(workloads=SKEWED)
    totals = [run(made, kind, hours=0.5).tally.loads[:, 0].sum() for kind in (DO_NOTHING, evicting(count=3))]
    assert totals[0] == pytest.approx(totals[1])


def test_a_state_cannot_be_changed_by_a_strategy() -> None:
    """Its arrays are read-only: what one strategy does to it can never be what the next one sees."""

    class Vandal:
        name = "vandal"

        def decide(self, state: ClusterState, memory: object) -> Actions:
            state.pods.usage[0, 0] = 0.0
            return Actions()

    with pytest.raises(ValueError, match="read-only"):
        run(scenario(), StrategyKind("vandal", "Changes the state.", lambda policy: Vandal()), hours=0.1)


def test_hot_node_minutes_are_what_they_are_called() -> None:
    """All eight nodes over the mark for half an hour are 240."""
    report = compared(scenario(averageLoad=80, hot={"cpu": 30}), DO_NOTHING)
    assert report.results[0].hot_node_minutes == 240
    assert report.results[0].mean_hot_nodes == 8
    assert report.hot_above == {"cpu": 0.3, "memory": 0.9}


def test_throttled_core_hours_are_the_demand_above_capacity() -> None:
    """A demand of 150 % on 128 cores for half an hour."""
    made = scenario(workloads=[population(pods=96, use={"cpu": {"median": 1.0}})], averageLoad=150 / 2)
    made = made.model_copy(update={"spec": made.spec.model_copy(update={"average_load": 150.0})})
    assert compared(made, DO_NOTHING).results[0].throttled_core_hours == pytest.approx(0.5 * 0.5 * 128, rel=0.02)


def test_evictions_are_counted_with_what_they_did() -> None:
    """By workload and day, and pods that were not Ready for a while; nothing was violated."""
    result = compared(scenario(), evicting(count=4)).results[0]
    assert result.evictions == 4
    assert result.evictions_per_workload_day_max >= 1
    assert result.unready_pod_minutes > 0
    assert (result.budget_violations, result.refused_by_api_server) == (0, 0)


def test_a_refused_eviction_is_no_eviction() -> None:
    """The budgets of workloads of two that must keep both allow nothing."""
    made = scenario(workloads=[population(replicas={"from": 2, "to": 2}, disruptionBudget={"minAvailable": "100%"})])
    result = compared(made, evicting(count=4)).results[0]
    assert (result.evictions, result.refused_by_api_server) == (0, 4)


def test_an_eviction_that_makes_a_node_hot_is_blamed() -> None:
    """The heaviest pod, sent to the only node without a taint, which it brings over the mark."""

    class Harmful:
        name = "harmful"

        def decide(self, state: ClusterState, memory: object) -> Actions:
            if memory:
                return Actions(memory=True)
            loads = np.bincount(state.pods.node, weights=state.pods.usage[:, 0], minlength=8)
            victim = int(np.argmax(np.where(state.pods.node != int(np.argmax(loads)), state.pods.usage[:, 0], -1.0)))
            taints = np.arange(8) != int(np.argmax(loads))
            return Actions(evictions=(victim,), soft_taints=taints, memory=True)

    made = scenario(workloads=[population(use={"cpu": {"median": 0.6, "sigma": 0.4, "most": 3}})])
    base = run(made, DO_NOTHING, hours=0.2).tally
    mark = round(float(base.loads[:, 0].max()) * 100 + 1, 2)
    marked = scenario(workloads=[population(use={"cpu": {"median": 0.6, "sigma": 0.4, "most": 3}})], hot={"cpu": mark})
    result = compared(marked, StrategyKind("harmful", "Makes hot.", lambda policy: Harmful())).results[0]
    assert (result.made_hot, result.landed_on_hot, result.returned) == (1, 0, 0)


def test_a_replacement_that_comes_back_is_counted() -> None:
    """All other nodes carry the taint."""

    class Returning:
        name = "returning"

        def decide(self, state: ClusterState, memory: object) -> Actions:
            return Actions(memory=True) if memory else replace(Evicting().decide(state, None), soft_taints=np.arange(8) != 0)

    result = compared(scenario(), StrategyKind("returning", "Comes back.", lambda policy: Returning())).results[0]
    assert (result.evictions, result.returned) == (1, 1)


def test_policies_are_compared_by_name_and_idleness_once() -> None:
    """Two policies make two contestants of a strategy that depends on them, and one of a strategy that does not."""
    made = scenario()
    first = policy_of(made)
    second = first.model_copy(update={"metadata": first.metadata.model_copy(update={"name": "other"})})
    labels = [each.label for each in line_up([DO_NOTHING, REBALANCER], [first, second])]
    assert labels == ["none", "rebalancer (scenario)", "rebalancer (other)"]
