"""This project's own rules in the fast-forward world: calm in noise, no ping-pong, and better than nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalancer.errors import UsageError
from rebalancer.runtime.own_strategy import REBALANCER, built_in_strategies, find_strategy
from rebalancer.simulate.forward.scenario import SimulationScenario
from rebalancer.simulate.forward.scenario_file import load_scenario
from rebalancer.simulate.forward.strategy import DO_NOTHING
from tests.simulate_forward.kit import population, run, scenario

SCENARIOS = Path(__file__).parents[2] / "config" / "scenarios"


def shipped(name: str, **spec: object) -> SimulationScenario:
    """A shipped scenario with some keys of its spec replaced."""
    made = load_scenario(SCENARIOS / f"{name}.yaml")
    return made.model_copy(update={"spec": made.spec.model_copy(update=spec)})


def test_t4_noise_moves_nobody_in_a_whole_day() -> None:
    """Sixty balanced nodes, every pod trembling by a third: not one eviction in 24 hours."""
    made = shipped("balanced-noise")
    sampled = made.spec.metrics.model_copy(update={"interval": 30.0})
    assert run(shipped("balanced-noise", metrics=sampled), REBALANCER, hours=24).tally.evictions == 0


EARLY = yaml.safe_load((SCENARIOS.parent / "policy-early.yaml").read_text())["spec"]
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "early": {key: EARLY[key] for key in ("confirm", "risk", "budgets")},
    "without steering": {"steering": {"softTaint": False}},
    "two grades": {"steering": {"grades": 2}},
    "one grade": {"steering": {"grades": 1}},
    "hasty": {
        "confirm": {"windows": 1, "atLeast": 1},
        "budgets": {"perNode": 50, "total": 200, "perWorkload": 5},
        "cooldown": {"workload": 0, "node": 0},
    },
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_at_constant_load_no_move_is_undone_over_a_hundred_cycles(seed: int, options: str) -> None:
    """No pod ever goes back to a node that a pod of its place left, and the moves come to an end."""
    skewed = population(pods=280, use={"cpu": {"median": 0.5, "sigma": 1.0, "most": 8}}, requests=[{"cpu": "500m", "memory": "1Gi"}])
    fleet = [{"count": 16, "cores": 16, "memory": "64Gi", "zones": 2}]
    made = scenario(workloads=[skewed], averageLoad=48, seed=seed, fleet=fleet, policy=OPTIONS[options])
    tally = run(made, REBALANCER, hours=100 * 2 / 60).tally
    assert tally.evictions > 0
    left: dict[int, set[int]] = {}
    for landed in tally.landings:
        left.setdefault(landed.slot, set()).add(landed.source)
        assert landed.node not in left[landed.slot]
    assert max(landed.at for landed in tally.landings) < tally.start + tally.seconds / 2
    assert (tally.returned, tally.made_hot) == (0, 0)


def test_a_skewed_fleet_is_cured_without_harm() -> None:
    """Less than half of the hot node-minutes of doing nothing within an hour and a half, no budget violated, nothing left pending."""
    made = shipped("skewed")
    nothing, own = (run(made, kind, hours=1.5).tally for kind in (DO_NOTHING, REBALANCER))
    assert own.hot_node_s < 0.5 * nothing.hot_node_s
    assert own.worst_load <= nothing.worst_load + 1e-9
    assert (own.violations, own.pending_pod_s, own.returned, own.landed_on_hot) == (0, 0, 0, 0)


def test_without_enough_metrics_it_decides_nothing_and_says_why() -> None:
    """Samples that are too old count as none; the cycles are counted, with the sentence that an operator would read."""
    result = run(scenario(metrics={"delay": "4m"}), REBALANCER, hours=0.2)
    assert (result.undecided, result.cycles) == (6, 6)
    assert "known for 0 of 8 nodes" in result.undecided_why


def test_a_strategy_is_found_by_its_name_or_its_place() -> None:
    """A registered one, and any `StrategyKind` that Python can import."""
    assert find_strategy("rebalancer") is REBALANCER
    assert find_strategy("rebalancer.simulate.forward.strategy:DO_NOTHING") is DO_NOTHING
    assert set(built_in_strategies()) == {"none", "rebalancer"}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("rebalancr", "there is no strategy rebalancr: did you mean rebalancer"),
        ("magic", "there is no strategy magic: use none, rebalancer"),
        ("no.such.module:X", r"strategy no\.such\.module:X cannot be loaded"),
        ("rebalancer.errors:NOTHING", "cannot be loaded"),
        ("rebalancer.errors:UsageError", "is no StrategyKind but a type"),
        (":X", "cannot be loaded"),
    ],
)
def test_an_unknown_strategy_is_told_in_one_sentence(name: str, sentence: str) -> None:
    """And ends with the status for usage."""
    with pytest.raises(UsageError, match=sentence) as raised:
        find_strategy(name)
    assert raised.value.exit_status == 2
