"""Scenario files: what is shipped is valid, and what is wrong is told in one sentence with its place."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from rebalancer.errors import ScenarioError
from rebalancer.policy.schema import schema_text
from rebalancer.runtime.simulating import scenario_setting
from rebalancer.simulate.forward.scenario_file import SCHEMA_FILE, load_scenario, parse_scenario, scenario_schema, write_scenario_schema
from tests.simulate_forward.kit import population, scenario, setting

CONFIG = Path(__file__).parents[2] / "config"
SHIPPED = sorted((CONFIG / "scenarios").glob("*.yaml"))
GOOD = """apiVersion: rebalancer.dev/v1alpha1
kind: SimulationScenario
metadata: {name: small}
spec:
  fleet: [{count: 4, cores: 16, memory: 64Gi}]
  workloads:
    - pods: 20
      replicas: {from: 2, to: 4}
      requests: [{cpu: 1, memory: 2Gi}]
      use: {cpu: {median: 0.5, sigma: 0.9}}
"""


def test_the_scenarios_that_are_meant_to_be_are_shipped() -> None:
    """Each aim has a file."""
    assert {path.stem for path in SHIPPED} >= {"skewed", "balanced-noise", "diurnal", "daily-peaks", "bursts", "node-failures", "planetlab"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_scenario_is_valid_by_loader_and_by_schema(path: Path) -> None:
    """An editor that checks a shipped file finds nothing, and the name is that of the file."""
    assert load_scenario(path).metadata.name == path.stem
    jsonschema.validate(yaml.safe_load(path.read_text()), scenario_schema())


def test_the_committed_schema_is_current(tmp_path: Path) -> None:
    """`make schema` was run after the last change of the models."""
    assert (CONFIG / "schema" / SCHEMA_FILE).read_text() == schema_text(scenario_schema())
    assert write_scenario_schema(tmp_path).read_text() == schema_text(scenario_schema())


@pytest.mark.parametrize(
    ("wrong", "right", "sentence"),
    [
        ("form: 2", "from: 2", r"line 8, spec\.workloads\[0\]\.replicas\.form: unknown key.*did you mean from"),
        ("pods: 2000", "pods: 20", r"line 6, spec\.workloads: 2,000 pods do not fit on nodes that hold 440"),
        ("cpu: 64, memory", "cpu: 1, memory", r"line 9, spec\.workloads\[0\]\.requests\[0\]: no node of the fleet is as large"),
        ("median: -1", "median: 0.5", r"line 10, spec\.workloads\[0\]\.use\.cpu\.median: must be more than 0, not -1"),
        ("memory: lots", "memory: 64Gi", r"line 5, spec\.fleet\[0\]\.memory: 'lots' is not a Kubernetes quantity"),
        ("count: 0", "count: 4", r"line 5, spec\.fleet\[0\]\.count: must be at least 1, not 0"),
        ("from: 9", "from: 2", r"line 8, spec\.workloads\[0\]\.replicas\.from: from 9 is more than to 4"),
        ("kind: Scenario\n", "kind: SimulationScenario\n", r"line 2, kind: must be SimulationScenario, not 'Scenario'"),
        ("v9", "v1alpha1", r"line 1, apiVersion: 'rebalancer.dev/v9' is not a version that is known"),
        ("requestsFrom: {path: x, kind: planetlab-cpu}", "requests: [{cpu: 1, memory: 2Gi}]", r"traces of kind openb-requests alone"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_its_path(wrong: str, right: str, sentence: str) -> None:
    """One sentence, and an exit status for configuration."""
    with pytest.raises(ScenarioError, match=sentence) as raised:
        parse_scenario(GOOD.replace(right, wrong), origin="small.yaml")
    assert raised.value.exit_status == 3


def test_a_policy_that_can_never_act_is_refused_inside_a_scenario_too() -> None:
    """The policy within is held to the rules of a policy file, with its place in this one."""
    text = GOOD + "  policy: {metrics: {maxAge: 1s}}\n"
    with pytest.raises(ScenarioError, match=r"line 11, spec\.policy\.metrics\.maxAge"):
        parse_scenario(text, origin="small.yaml")


def test_pods_that_ask_for_more_than_the_fleet_has_are_refused() -> None:
    """Possible one by one, impossible together."""
    with pytest.raises(ScenarioError, match="the pods request 160 cores, the fleet has 128"):
        setting(scenario(workloads=[population(requests=[{"cpu": 2, "memory": "1Gi"}])]))


def test_a_fleet_that_cannot_be_filled_is_refused() -> None:
    """Enough cores together, but a pod that is left over finds no node with room for it."""
    with pytest.raises(ScenarioError, match="finds no node when the fleet is filled"):
        setting(scenario(workloads=[population(pods=9, requests=[{"cpu": 9, "memory": "1Gi"}])]))


def test_an_average_load_below_what_machines_use_is_refused() -> None:
    """No level of the pods could bring it about."""
    with pytest.raises(ScenarioError, match=r"spec\.averageLoad: 1 % of the fleet are 1\.3 cores"):
        setting(scenario(averageLoad=1))


def test_the_average_load_is_met() -> None:
    """Levels are scaled so that all demand and what machines use is the share that was asked for."""
    made = scenario_setting(scenario(averageLoad=40))
    used = made.ground.slots.base[:, 0].sum() + made.ground.nodes.system[:, 0].sum()
    assert used == pytest.approx(0.40 * 8 * 16)
