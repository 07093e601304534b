"""The reference of settings: committed, current, complete, with an example that loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from rebalancer.settings.loading import FLAGS, leaves, load_settings, variable_of
from rebalancer.settings.reference import PARTS, settings_markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"


def test_the_committed_page_is_current() -> None:
    """docs/settings.md is what the model says today; `make docs` writes it."""
    assert PAGE.read_text(encoding="utf-8") == settings_markdown()


def test_every_setting_has_one_row_with_its_variable_and_its_flag() -> None:
    """Nothing can be set that the page does not tell how to set."""
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \|(.*)$", settings_markdown(), flags=re.MULTILINE))
    assert list(rows) == sorted((".".join(path) for path in leaves()), key=lambda key: [s for s, _ in PARTS].index(key.rpartition(".")[0]))
    for path in leaves():
        row = rows[".".join(path)]
        assert f"| `{variable_of(path)}` |" in row
        assert (f"| `{FLAGS.get('.'.join(path))}` |" in row) == (".".join(path) in FLAGS)


@pytest.mark.parametrize("model", [model for _, model in PARTS], ids=lambda model: model.__name__)
def test_every_setting_is_explained_in_a_sentence(model: type[BaseModel]) -> None:
    """The same words are the descriptions of the JSON Schema."""
    assert [name for name, field in model.model_fields.items() if not (field.description or "").endswith(".")] == []


def test_the_example_loads(tmp_path: Path) -> None:
    """With the credentials that it names in place."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", settings_markdown(), flags=re.MULTILINE | re.DOTALL)
    token = tmp_path / "token"
    token.write_text("t")
    file = tmp_path / "settings.yaml"
    file.write_text(text.replace("/var/run/secrets/prometheus/token", str(token)))
    settings = load_settings(settings_file=file, flags={}, environ={})
    assert settings.prometheus.header_values() == {"X-Scope-OrgID": "platform"}
    assert settings.log.format == "json"
