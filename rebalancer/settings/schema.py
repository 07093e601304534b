"""JSON Schema of the settings file, for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalancer.policy.schema import schema_of, schema_text
from rebalancer.settings.model import Settings


def settings_schema() -> dict[str, Any]:
    """JSON Schema of a settings file. Every key is optional."""
    return schema_of(Settings)


def write_settings_schema(directory: Path) -> Path:
    """Write ``settings.schema.json`` into the directory and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "settings.schema.json"
    path.write_text(schema_text(settings_schema()), encoding="utf-8")
    return path
