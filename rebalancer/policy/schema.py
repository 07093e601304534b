"""JSON Schemas of the files that operators write, so that an editor can complete and check them.

Generated from the models and committed under `config/schema`; a test keeps the two equal. The loader is stricter than any schema can be:
what spans several keys, such as the order of marks, only it can judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rebalancer.policy.model import RebalancePolicy
from rebalancer.policy.quantities import DURATION_PATTERN, write_duration
from rebalancer.policy.tenants import TenantQuotas

DIALECT = "https://json-schema.org/draft/2020-12/schema"
REQUIRED = ("apiVersion", "kind", "spec")
"""The models have defaults for these, so that code can make policies in one line; a file must say what it is."""


def policy_schema() -> dict[str, Any]:
    """JSON Schema of a `RebalancePolicy` file."""
    return {**schema_of(RebalancePolicy), "required": list(REQUIRED)}


def tenants_schema() -> dict[str, Any]:
    """JSON Schema of a `TenantQuotas` file."""
    return {**schema_of(TenantQuotas), "required": list(REQUIRED)}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The model's schema with defaults and descriptions as people write them."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    for node in _nodes(schema):
        if isinstance(node.get("title"), str) and "properties" not in node:
            del node["title"]  # pydantic's titles of fields only repeat the key
        if "default" in node and any(kind.get("pattern") == DURATION_PATTERN for kind in node.get("anyOf", ())):
            node["default"] = write_duration(float(node["default"]))
        if isinstance(node.get("description"), str):
            node["description"] = " ".join(node["description"].split())
    return {"$schema": DIALECT, **schema}


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema in a schema. The keys under ``properties`` are names of fields, not words of the schema."""
    if isinstance(value, list):
        for item in value:
            yield from _nodes(item)
    elif isinstance(value, dict):
        yield value
        for key, child in value.items():
            if key in ("properties", "$defs"):
                for named in child.values():
                    yield from _nodes(named)
            elif key not in ("default", "examples", "enum", "const", "required"):
                yield from _nodes(child)


def schema_text(schema: dict[str, Any]) -> str:
    """The schema as it is written to a file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_schemas(directory: Path) -> tuple[Path, ...]:
    """Write the schemas of policies and tenants into the directory and return what was written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, schema in (("policy", policy_schema()), ("tenants", tenants_schema())):
        path = directory / f"{name}.schema.json"
        path.write_text(schema_text(schema), encoding="utf-8")
        written.append(path)
    return tuple(written)
