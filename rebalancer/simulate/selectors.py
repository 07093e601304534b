"""Label and field selectors, in the two forms in which they reach an API server: as query strings, and as JSON objects in specs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rebalancer.simulate.kinds import Json

Matcher = Callable[[Mapping[str, str]], bool]

_SET = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s+\(([^)]*)\)\s*$")
_EQUAL = re.compile(r"^\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([^\s!=,()]+)\s*$")


def _split(text: str) -> list[str]:
    """The parts between the commas that are not inside brackets."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _requirement(part: str) -> Matcher:
    if match := _SET.match(part):
        key, operator, listed = match.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUAL.match(part):
        key, operator, value = match.groups()
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _EXISTS.match(part):
        absent, key = match.groups()
        if absent:
            return lambda labels: key not in labels
        return lambda labels: key in labels
    raise ValueError(f"unable to parse the selector part {part.strip()!r}")


def parse_label_selector(text: str) -> Matcher:
    """``a=b,c!=d,e in (f,g),h,!i``. Raises ValueError that quotes the part which is none of these."""
    requirements = [_requirement(part) for part in _split(text)]
    return lambda labels: all(requirement(labels) for requirement in requirements)


def _field(value: Json, path: str) -> str:
    current: object = value
    for step in path.split("."):
        if not isinstance(current, dict):
            return ""
        current = current.get(step)
    return "" if current is None else str(current)


def parse_field_selector(text: str) -> Callable[[Json], bool]:
    """``metadata.name=x,status.phase!=Running``; an absent field is an empty string, as in the real one. Raises ValueError."""
    wanted: list[tuple[str, bool, str]] = []
    for part in _split(text):
        match = _EQUAL.match(part)
        if match is None:
            raise ValueError(f"invalid field selector {part.strip()!r}")
        wanted.append((match.group(1), match.group(2) != "!=", match.group(3)))
    return lambda value: all((_field(value, path) == expected) is equal for path, equal, expected in wanted)


def matches(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector object against labels: an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(expression_matches(expression, labels) for expression in selector.get("matchExpressions") or ())


def expression_matches(expression: Json, labels: Mapping[str, str]) -> bool:
    """One expression of a selector or of a node selector term, ``Gt`` and ``Lt`` included (scheduler rules: 64-bit integers)."""
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
    present = key in labels
    if operator == "In":
        return present and labels[key] in values
    if operator == "NotIn":
        return not present or labels[key] not in values
    if operator == "Exists":
        return present
    if operator == "DoesNotExist":
        return not present
    if operator in ("Gt", "Lt") and present and len(values) == 1:
        try:
            left, right = int(labels[key]), int(values[0])
        except ValueError:
            return False
        return left > right if operator == "Gt" else left < right
    return False
