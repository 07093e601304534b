"""A YAML file as plain values that know their line.

Pydantic validates values and forgets where they stood; an operator needs the line. So the node tree of the YAML text is walked once,
into values and into a map from path to line. What YAML allows and a configuration file does not need is refused here, with a sentence:
duplicate keys, tags, keys that are no text, several documents, aliases that unfold into a bomb. Only `true` and `false` are booleans
and nothing is a date, so that `no` and `on` and `12:30` stay the text that was meant.

Policy, tenants and settings are all read through this; what their values mean is for their own loaders to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from rebalancer.errors import ConfigurationError

KeyPath: TypeAlias = tuple[str | int, ...]
Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"

MAX_BYTES = 1024 * 1024
"""A ConfigMap holds no more."""
MAX_VALUES = 100_000
MAX_DEPTH = 30

_TAG = "tag:yaml.org,2002:"
_NULL, _BOOL, _INT, _FLOAT, _STR = (f"{_TAG}{name}" for name in ("null", "bool", "int", "float", "str"))
_SCALARS = {
    _NULL: (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    _BOOL: (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    _INT: (r"^[-+]?[0-9]{1,18}$", list("-+0123456789")),
    _FLOAT: (
        r"^(?:[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        list("-+0123456789."),
    ),
}


class _Reader(yaml.SafeLoader):
    """The scalars of YAML's core schema and no others."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - overrides a class attribute of PyYAML


for _tag, (_pattern, _first) in _SCALARS.items():
    _Reader.add_implicit_resolver(_tag, re.compile(_pattern), _first)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong, and where. ``message`` and ``remedy`` carry no file, line or path."""

    path: KeyPath
    line: int | None
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    origin: str
    """The file's name, as the operator wrote it."""
    value: Value
    lines: Mapping[KeyPath, int]
    """path of each key and list item -> its line, from 1; the root is ``()``."""
    mistakes: tuple[Mistake, ...] = ()
    """What is wrong with the YAML itself; ``value`` is what can be made of it all the same."""

    def line_of(self, path: KeyPath) -> int | None:
        """The line of the path, or of its nearest ancestor that is written in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def value_of(self, path: KeyPath) -> Value:
        """The value at the path; None where there is none."""
        value = self.value
        for step in path:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value


def dotted(path: KeyPath) -> str:
    """``("spec", "pools", 0, "name")`` as ``spec.pools[0].name``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_text(path: Path, *, what: str, error: type[ConfigurationError]) -> str:
    """The file's text. Raises ``error`` with one sentence when it is missing, not readable, too large or not UTF-8."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise error(f"{what} file {path} does not exist", remedy="check the path") from None
    except IsADirectoryError:
        raise error(f"{what} file {path} is a directory", remedy="name the file in it") from None
    except PermissionError:
        raise error(f"{what} file {path} may not be read by this user", remedy="change its permissions") from None
    except (OSError, ValueError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) and failure.strerror else type(failure).__name__
        raise error(f"{what} file {path} cannot be read ({reason})", remedy="check the path and the disk") from None
    if len(raw) > MAX_BYTES:
        raise error(f"{what} file {path} is larger than 1 MiB", remedy="this is not a file that was written for rebalancer; check the path")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = raw.count(b"\n", 0, failure.start) + 1
        raise error(f"{path}, line {line}: the {what} file is not UTF-8 text", remedy="save it as UTF-8") from None


def parse_document(text: str, *, origin: str, what: str, error: type[ConfigurationError]) -> Document:
    """The YAML text as a `Document`. Raises ``error`` when it cannot be read as one YAML document at all."""
    if len(text) > MAX_BYTES:
        raise error(f"{origin}: the {what} is larger than 1 MiB", remedy="this was not written for rebalancer; check the file")
    try:
        reader = _Reader(text)
        try:
            root = reader.get_single_node()
            if root is None:
                return Document(origin=origin, value=None, lines={(): 1})
            walk = _Walk(reader)
            value = walk.value(root, ())
        finally:
            reader.dispose()
    except yaml.MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        where = f"{origin}, line {mark.line + 1}" if mark is not None else origin
        raise error(f"{where}: the {what} cannot be read as YAML, {_reason(failure)}", remedy=_remedy(failure)) from None
    except yaml.reader.ReaderError as failure:
        line = text.count("\n", 0, failure.position) + 1
        raise error(f"{origin}, line {line}: the {what} holds a control character", remedy="delete it; this may be a binary file") from None
    except RecursionError:
        raise error(f"{origin}: the {what} is nested too deeply", remedy=f"no more than {MAX_DEPTH} levels are read") from None
    except _TooMuch as failure:
        raise error(f"{origin}, line {failure.line}: {failure.message}", remedy="write the values out instead of using anchors") from None
    return Document(origin=origin, value=value, lines=walk.lines, mistakes=tuple(walk.mistakes))


def _reason(failure: yaml.MarkedYAMLError) -> str:
    problem = failure.problem or "the text is cut short"
    if "\\t" in problem:
        return "a tab stands where spaces must stand"
    if "expected a single document" in f"{failure.context} {problem}":
        return "there is more than one document in it"
    return problem


def _remedy(failure: yaml.MarkedYAMLError) -> str:
    if "expected a single document" in f"{failure.context} {failure.problem}":
        return "keep one and put the others into files of their own"
    return "correct the indentation and the punctuation around this line"


class _TooMuch(Exception):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class _Walk:
    """One pass over the node tree. Aliases are unfolded under a limit, so the billion laughs end early."""

    def __init__(self, reader: _Reader) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.mistakes: list[Mistake] = []
        self._reader = reader
        self._values = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Value:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self._values += 1
        if self._values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise _TooMuch("the aliases unfold into too many values", line)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in (*_SCALARS, _STR):
            return self._scalar(node, path)
        self.mistakes.append(Mistake(path, line, f"the tag {_short(node.tag)} is not allowed", "write the plain value"))
        return None

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.mistakes.append(Mistake(path, line, "a key must be text, not a list or a mapping", "write the key as a word"))
                continue
            key = str(key_node.value)
            if key_node.tag != _STR:
                self.mistakes.append(Mistake((*path, key), line, f"the key {key or 'null'} is not text", "put it in quotes"))
                continue
            child = (*path, key)
            if key in found:
                first = self.lines[child]
                self.mistakes.append(Mistake(child, line, f"the key is written twice, first in line {first}", "keep one of the two"))
                continue
            self.lines[child] = line
            found[key] = self.value(value_node, child)
        return found

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Value:
        """A tag may be forced onto text that it does not fit (``!!int x``); PyYAML then fails in its own ways."""
        try:
            made = self._reader.construct_object(node)
        except (ValueError, KeyError, yaml.YAMLError):
            made = self
        if made is None or isinstance(made, bool | int | float | str):
            return made
        line = node.start_mark.line + 1
        self.mistakes.append(Mistake(path, line, f"{node.value!r} does not fit the tag {_short(node.tag)}", "write the plain value"))
        return None


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
