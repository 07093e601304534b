"""The committed schemas are those of the models, and documents keep to them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from rebalancer.report.page import Page
from rebalancer.report.registry import Format, render
from rebalancer.report.schema import document_schemas, main, plan_schema, schema_text
from tests.report import samples
from tests.report.documents import all_documents

COMMITTED = Path(__file__).parents[2] / "config" / "schema"
BY_DOCUMENT = {
    "plan": "plan.schema.json",
    "demo": "demo-result.schema.json",
    "checks": "check-report.schema.json",
    "skew": "skew-report.schema.json",
    "gpus": "gpus-report.schema.json",
    "node": "explanation.schema.json",
    "pod": "explanation.schema.json",
    "workload": "explanation.schema.json",
}


@pytest.mark.parametrize("name", document_schemas())
def test_committed_schemas_are_current(name: str) -> None:
    """Otherwise: python -m rebalancer.report.schema config/schema."""
    assert (COMMITTED / name).read_text(encoding="utf-8") == schema_text(document_schemas()[name])


@pytest.mark.parametrize("name", BY_DOCUMENT)
def test_documents_keep_to_their_schema(name: str) -> None:
    """What -o json prints is what the schema promises."""
    schema = document_schemas()[BY_DOCUMENT[name]]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(render(all_documents()[name], Format.JSON, Page())), schema)


@pytest.mark.parametrize("key", ["apiVersion", "kind", "cluster", "summary", "coverage", "moves", "refused", "nodes"])
def test_the_schema_misses_what_is_missing(key: str) -> None:
    """A plan without one of its parts is no plan."""
    plan = json.loads(render(samples.plan(), Format.JSON, Page()))
    del plan[key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        jsonschema.validate(plan, plan_schema())


def test_the_schema_knows_its_kind() -> None:
    """Another document is refused."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(render(samples.demo(), Format.JSON, Page())), plan_schema())


def test_schemas_are_written_by_one_command(tmp_path: Path) -> None:
    """Every file, and only where it was told to."""
    assert main([str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(document_schemas())
    assert main([]) == 2
