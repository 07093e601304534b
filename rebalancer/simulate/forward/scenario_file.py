"""From a scenario file to a `SimulationScenario`, or to one sentence with file, line and path; and the JSON Schema of such files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalancer.errors import ScenarioError
from rebalancer.policy.document import Mistake, parse_document, read_text
from rebalancer.policy.loader import check_header, validated
from rebalancer.policy.mistakes import failure_of
from rebalancer.policy.schema import schema_of, schema_text
from rebalancer.policy.timing import judge_timing
from rebalancer.simulate.forward.scenario import KIND, SimulationScenario

SCHEMA_FILE = "scenario.schema.json"


def load_scenario(path: Path) -> SimulationScenario:
    """Read and validate a scenario file. Raises ScenarioError, whose ``mistakes`` hold every mistake that was found."""
    return parse_scenario(read_text(path, what="scenario", error=ScenarioError), origin=str(path))


def parse_scenario(text: str, *, origin: str) -> SimulationScenario:
    """Validate the text of a scenario; ``origin`` is what the sentences call it. Raises ScenarioError."""
    document = parse_document(text, origin=origin, what="scenario", error=ScenarioError)
    check_header(document, kind=KIND, error=ScenarioError)
    scenario = validated(document, SimulationScenario, error=ScenarioError)
    never = [
        Mistake(("spec", "policy", *fault.at), document.line_of(("spec", "policy", *fault.at)), fault.message, fault.remedy)
        for fault in judge_timing(scenario.spec.policy).errors
    ]
    if never:
        raise failure_of(never, origin=origin, error=ScenarioError)
    return scenario


def scenario_schema() -> dict[str, Any]:
    """JSON Schema of a `SimulationScenario` file."""
    return {**schema_of(SimulationScenario), "required": ["apiVersion", "kind", "spec"]}


def write_scenario_schema(directory: Path) -> Path:
    """Write ``scenario.schema.json`` into the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / SCHEMA_FILE
    path.write_text(schema_text(scenario_schema()), encoding="utf-8")
    return path
