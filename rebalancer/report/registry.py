"""Which writer makes which format of which document.

To add a format or a document, add a file to `report.writers` with a decorated function; nothing else changes. A writer for a base class
serves every document that has none of its own, which is how JSON and YAML are written once.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TextIO, TypeVar, cast

import msgspec

from rebalancer.errors import UsageError
from rebalancer.report.page import Page


class Format(Enum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    HTML = "html"


Document = TypeVar("Document", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Writer:
    document: type[msgspec.Struct]
    formats: tuple[Format, ...]
    render: Callable[[msgspec.Struct, Page, Format], str]


def writer(document: type[Document], *formats: Format) -> Callable[[Callable[[Document, Page, Format], str]], Writer]:
    """Turn ``render(document, page, format) -> text`` into an entry of the registry."""

    def register(render: Callable[[Document, Page, Format], str]) -> Writer:
        return Writer(document=document, formats=formats, render=cast(Callable[[msgspec.Struct, Page, Format], str], render))

    return register


@cache
def all_writers() -> dict[tuple[type[msgspec.Struct], Format], Writer]:
    """Every writer of `report.writers`. Raises ValueError when two claim the same document and format."""
    from rebalancer.report import writers as package

    found: dict[tuple[type[msgspec.Struct], Format], Writer] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for entry in vars(module).values():
            if not isinstance(entry, Writer):
                continue
            for fmt in entry.formats:
                if found.setdefault((entry.document, fmt), entry) is not entry:
                    raise ValueError(f"two writers make {fmt.value} of {entry.document.__name__}")
    return found


def formats_of(document: type[msgspec.Struct]) -> tuple[Format, ...]:
    """The formats that a document can be written in, in the order of `Format`."""
    known = all_writers()
    return tuple(fmt for fmt in Format if any((kind, fmt) in known for kind in document.__mro__))


def render(document: msgspec.Struct, fmt: Format, page: Page) -> str:
    """The text of a document, ending in a line break. Raises UsageError when there is no such writer."""
    known = all_writers()
    for kind in type(document).__mro__:
        entry = known.get((kind, fmt))
        if entry is not None:
            return entry.render(document, page, fmt)
    words = ", ".join(other.value for other in formats_of(type(document)))
    raise UsageError(f"a {type(document).__name__} cannot be written as {fmt.value}", remedy=f"use one of {words}")


def write(document: msgspec.Struct, fmt: Format, *, stream: TextIO, width: int = 100, color: bool = False) -> None:
    """Write a document to ``stream``; a stream that is not UTF-8 gets plain ASCII."""
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
    stream.write(render(document, fmt, Page(width=width, color=color, ascii=encoding not in ("utf-8", "utf8"))))
