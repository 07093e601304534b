"""JSON Schemas of the documents that programs read, generated from the models.

``python -m rebalancer.report.schema config/schema`` writes them; a test fails when the committed files are not what the models say. Objects
stay open for more properties, since fields are added freely and never change their meaning.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from rebalancer.plan.model import API_VERSION, Plan
from rebalancer.report.accounting import AccountingReport
from rebalancer.report.checks import CheckReport
from rebalancer.report.demo import DemoResult
from rebalancer.report.demo_tenants import TenantsDemoResult
from rebalancer.report.explanation import Explanation
from rebalancer.report.gpus import GpusReport
from rebalancer.report.simulation import SimulationReport
from rebalancer.report.skew import SkewReport
from rebalancer.report.tenants import TenantsReport
from rebalancer.report.tenants_change import TenantsChangeReport

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, object]


def plan_schema() -> Schema:
    return _schema(Plan)


def demo_result_schema() -> Schema:
    return _schema(DemoResult)


def document_schemas() -> Mapping[str, Schema]:
    """file name -> schema, of every document that has a kind."""
    return {
        "plan.schema.json": plan_schema(),
        "demo-result.schema.json": demo_result_schema(),
        "skew-report.schema.json": _schema(SkewReport),
        "gpus-report.schema.json": _schema(GpusReport),
        "explanation.schema.json": _schema(Explanation),
        "check-report.schema.json": _schema(CheckReport),
        "simulation-report.schema.json": _schema(SimulationReport),
        "tenants-report.schema.json": _schema(TenantsReport),
        "tenants-change-report.schema.json": _schema(TenantsChangeReport),
        "accounting-report.schema.json": _schema(AccountingReport),
        "tenants-demo-result.schema.json": _schema(TenantsDemoResult),
    }


def schema_text(schema: Mapping[str, object]) -> str:
    """As committed: two spaces, ASCII, a line break at the end."""
    return json.dumps(schema, indent=2) + "\n"


def _schema(document: type[msgspec.Struct]) -> Schema:
    generated = msgspec.json.schema(document)
    definitions: dict[str, Schema] = generated["$defs"]
    root = definitions.pop(document.__name__)
    properties = root["properties"]
    required = root["required"]
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise TypeError(f"{document.__name__} has no properties")
    properties["apiVersion"] = {"const": API_VERSION}
    properties["kind"] = {"const": document.__name__}
    return {
        "$schema": _DRAFT,
        "$id": f"https://rebalancer.dev/schema/v1alpha1/{document.__name__}.json",
        **root,
        "required": ["apiVersion", "kind", *required],
        "$defs": dict(sorted(definitions.items())),
    }


def write_schemas(directory: Path) -> Iterator[Path]:
    """Write every document's schema into ``directory`` and yield the paths. Raises OSError."""
    for name, schema in document_schemas().items():
        path = directory / name
        path.write_text(schema_text(schema), encoding="utf-8")
        yield path


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m rebalancer.report.schema DIRECTORY\n")
        return 2
    for path in write_schemas(Path(arguments[0])):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
