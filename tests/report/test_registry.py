"""Every document can be written in every format, by a writer that the registry found."""

from __future__ import annotations

import io
import json
import re

import msgspec
import pytest
import yaml

from rebalancer.errors import UsageError
from rebalancer.report.page import Page
from rebalancer.report.registry import Format, all_writers, formats_of, render, write
from tests.report import samples
from tests.report.documents import all_documents

DOCUMENTS = all_documents()


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("fmt", list(Format))
def test_every_document_has_every_format(name: str, fmt: Format) -> None:
    """Whatever a command prints, -o understands all its words."""
    assert render(DOCUMENTS[name], fmt, Page()).endswith("\n")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_json_and_yaml_say_the_same(name: str) -> None:
    """Both are the document, in camelCase, with its apiVersion and kind."""
    document = DOCUMENTS[name]
    as_json = json.loads(render(document, Format.JSON, Page()))
    assert yaml.safe_load(render(document, Format.YAML, Page())) == as_json
    assert (as_json["apiVersion"], as_json["kind"]) == ("rebalancer.dev/v1alpha1", type(document).__name__)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_tables_are_plain_without_colour(name: str, width: int) -> None:
    """No escape sequence and no line with blanks at its end."""
    lines = render(DOCUMENTS[name], Format.TABLE, Page(width=width)).splitlines()
    assert not [line for line in lines if not line.isprintable() or line != line.rstrip()]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_tables_fit_a_hundred_columns(name: str) -> None:
    """With the long names of real clusters too."""
    assert max(map(len, render(DOCUMENTS[name], Format.TABLE, Page(width=100)).splitlines())) <= 100


def test_colour_is_only_where_it_is_asked_for() -> None:
    """The same text, with and without escapes."""
    coloured = render(samples.plan(), Format.TABLE, Page(color=True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(samples.plan(), Format.TABLE, Page())


@pytest.mark.parametrize("fmt", list(Format))
def test_a_stream_that_is_not_utf_8_gets_ascii(fmt: Format) -> None:
    """A latin-1 terminal or a C locale cannot fail on a character."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    moved = samples.plan().moves[0]
    plan = msgspec.structs.replace(samples.plan(), moves=(msgspec.structs.replace(moved, reason="über 70 % → 🔥"),))
    write(plan, fmt, stream=stream, width=70)
    stream.flush()
    assert raw.getvalue().isascii()
    if fmt is Format.JSON:
        assert json.loads(raw.getvalue())["moves"][0]["reason"] == "über 70 % → 🔥"


def test_a_document_without_a_writer_is_a_sentence() -> None:
    """The answer names the formats that there are."""

    class Odd(msgspec.Struct):
        name: str = "x"

    with pytest.raises(UsageError, match="a Odd cannot be written as table: use one of json, yaml"):
        render(Odd(), Format.TABLE, Page())
    assert formats_of(Odd) == (Format.JSON, Format.YAML)


def test_the_registry_is_found_by_file() -> None:
    """Dropping a file into the package is all it takes."""
    assert len(all_writers()) >= 15
