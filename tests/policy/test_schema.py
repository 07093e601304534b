"""The JSON Schema of policy files: committed, current, and in agreement with the loader."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from rebalancer.policy.model import Spec
from rebalancer.policy.schema import policy_schema, schema_text, write_schemas
from tests.policy.writing import policy_text, refusal

CONFIG = Path(__file__).parents[2] / "config"


def test_the_committed_schema_is_current() -> None:
    """`make schema` was run after the last change of the models."""
    assert (CONFIG / "schema" / "policy.schema.json").read_text() == schema_text(policy_schema())


def test_write_schemas_writes_what_is_committed(tmp_path: Path) -> None:
    """The function behind `make schema`."""
    written = write_schemas(tmp_path / "schema")
    assert [path.name for path in written] == ["policy.schema.json", "tenants.schema.json"]
    assert written[0].read_text() == schema_text(policy_schema())


def test_the_schema_is_a_valid_schema() -> None:
    """It obeys the dialect that it names."""
    jsonschema.Draft202012Validator.check_schema(policy_schema())


def test_the_shipped_example_is_valid_by_the_schema() -> None:
    """An editor that checks the example finds nothing."""
    jsonschema.validate(yaml.safe_load((CONFIG / "policy.yaml").read_text()), policy_schema())


def test_the_shipped_example_shows_every_key_of_the_spec() -> None:
    """Nothing can be set that the example does not mention."""

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return {*value, *(key for child in value.values() for key in keys(child))}
        return {key for item in value for key in keys(item)} if isinstance(value, list) else set()

    shipped = keys(yaml.safe_load((CONFIG / "policy.yaml").read_text())["spec"])
    dumped = keys(yaml.safe_load(Spec().model_dump_json(by_alias=True)))
    assert dumped - shipped - {"matchLabels", "matchExpressions"} == set()


@pytest.mark.parametrize(
    "spec",
    ["modus: x", "interval: 5x", "budgets: {total: -1}", "mode: evikt", "pools: []", "events: 'no'", "victims: {namespaces: {exclude: a}}"],
)
def test_the_schema_refuses_what_the_loader_refuses(spec: str) -> None:
    """Where a schema can see a mistake, it does."""
    refusal(policy_text(spec))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(policy_text(spec)), policy_schema())


def test_durations_are_written_as_people_write_them() -> None:
    """Defaults in the schema are durations, not bare seconds."""
    assert policy_schema()["$defs"]["Cooldown"]["properties"]["max"]["default"] == "6h"
