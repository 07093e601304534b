"""The reference of policy files: committed, current, complete, in words that operators use, with examples that load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from pydantic import BaseModel, ConfigDict

from rebalancer.policy.examples import EXAMPLES
from rebalancer.policy.model import Metadata, Mode, RebalancePolicy
from rebalancer.policy.quantities import Duration
from rebalancer.policy.reference import LEVELS, POLICY_WORDS, default_words, policy_markdown, table, type_words
from rebalancer.policy.timing import judge_timing
from tests.policy.writing import HEADER, policy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "policy.md"
ON_THE_PAGE = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def levels_of(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Every model that a file can hold, each once."""
    seen: list[type[BaseModel]] = []
    waiting: list[object] = [root]
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            if hint not in seen:
                seen.append(hint)
                waiting += get_type_hints(hint, include_extras=True).values()
        else:
            waiting += get_args(hint)
    yield from seen


def test_the_committed_page_is_current() -> None:
    """docs/policy.md is what the models say today; `make docs` writes it."""
    assert PAGE.read_text(encoding="utf-8") == policy_markdown()


def test_every_level_of_a_file_has_a_section() -> None:
    """A model that is added to the policy cannot be forgotten; the header and its metadata are explained in the text."""
    assert set(levels_of(RebalancePolicy)) - {RebalancePolicy, Metadata} == {model for _, model in LEVELS}


@pytest.mark.parametrize("model", list(levels_of(RebalancePolicy)), ids=lambda model: model.__name__)
def test_every_level_and_every_key_is_explained_in_sentences(model: type[BaseModel]) -> None:
    """The same words are the descriptions of the JSON Schema."""
    words = {"the level itself": model.__doc__, **{name: field.description for name, field in model.model_fields.items()}}
    assert [name for name, text in words.items() if not text or not text.strip().endswith((".", "..."))] == []


@pytest.mark.parametrize("model", [model for _, model in LEVELS], ids=lambda model: model.__name__)
def test_every_key_has_a_row_as_it_is_written_in_a_file(model: type[BaseModel]) -> None:
    """In the section of its level, in camelCase."""
    section = policy_markdown().split(f"\n## {model.__name__}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    assert rows == [field.alias for field in model.model_fields.values()]


@pytest.mark.parametrize("text", ON_THE_PAGE, ids=lambda text: " ".join(text.split())[:50])
def test_every_example_on_the_page_loads(text: str) -> None:
    """With the strict loader, after the two lines that the page names, and without a warning about its times."""
    spec = policy_of(text).spec
    assert judge_timing(spec).warnings == ()


def test_the_page_names_the_two_lines_that_make_an_example_whole() -> None:
    """They are what the loader asks for."""
    assert f"```\n{HEADER}```" in policy_markdown()


def test_every_example_stands_on_the_page() -> None:
    """None is attached to a level that does not exist."""
    assert sorted(example.text for example in EXAMPLES) == sorted(ON_THE_PAGE)


def test_examples_say_what_their_titles_promise() -> None:
    """The features that are least obvious."""
    loaded = [policy_of(text).spec for text in ON_THE_PAGE]
    assert any(spec.mode is Mode.EVICT for spec in loaded)
    assert any(pool.thresholds == "deviation" for spec in loaded for pool in spec.pools)
    assert any(len(spec.pools) == 2 for spec in loaded)
    assert any(spec.victims.require_opt_in and spec.victims.namespaces.include for spec in loaded)
    assert {signal.name for spec in loaded for signal in spec.signals} == {"network", "cpu_pressure"}
    assert next(signal.capacity.value for spec in loaded for signal in spec.signals if signal.name == "network") == 1.25e9


def test_types_and_defaults_are_in_the_words_of_operators() -> None:
    """Durations as durations, bounds where there are any, and nothing of Python."""
    page = policy_markdown()
    for row in (
        "| `interval` | duration, at least 10s | `2m` |",
        "| `mode` | `dry-run`, `annotate` or `evict` | `dry-run` |",
        "| `minCoverage` | percent | `90` |",
        "| `perTenant` | count or percent | `10%` |",
        "| `windows` | whole number, 1 to 120 | `10` |",
        "| `priorityBelow` | PriorityClass or whole number | `system-cluster-critical` |",
        "| `exclude` | list of text | `[kube-system]` |",
        "| `low` | percent | required |",
        "| `value` | number, above 0 | none |",
    ):
        assert row in page
    assert not re.search(r"\b(None|True|False|tuple|Literal|dict)\b", page)


def test_a_field_without_a_word_is_not_passed_over() -> None:
    """Whoever adds a new kind of value has to name it."""

    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        value: bytes = b""

    with pytest.raises(TypeError, match="no word for"):
        type_words(Odd, "value", words=POLICY_WORDS)


def test_an_alias_is_told_from_its_python_type() -> None:
    """Both are numbers to Python."""
    assert get_type_hints(RebalancePolicy.model_fields["spec"].annotation, include_extras=True)["interval"] is Duration
    assert default_words(Metadata, "name") == "`default`"


def test_bars_in_cells_do_not_break_a_table() -> None:
    """A regular expression in a meaning stays in its cell."""
    assert table(("a", "b"), [("x|y", "")]) == "| a | b |\n|---|---|\n| x\\|y |  |\n"


def policy_of(text: str) -> RebalancePolicy:
    """An example as an operator would use it."""
    assert text.startswith("spec:\n")
    return policy("\n".join(line.removeprefix("  ") for line in text.splitlines()[1:]))
