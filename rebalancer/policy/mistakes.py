"""From what a validator found to sentences for people: what is wrong, in which line, at which path, and what was probably meant.

Shared by the loaders of policy, tenants and settings. Nothing of pydantic's own wording may reach an operator.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rebalancer.errors import ConfigurationError
from rebalancer.policy.document import Document, KeyPath, Mistake, Value, dotted
from rebalancer.policy.quantities import MisplacedValue

Told: TypeAlias = tuple[str, str]
"""(message, remedy)"""
ModelT = TypeVar("ModelT", bound=BaseModel)

_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "path_type": "the path of a file",
}
_BOUNDS = {
    "greater_than": ("must be more than {}", "gt"),
    "greater_than_equal": ("must be at least {}", "ge"),
    "less_than": ("must be less than {}", "lt"),
    "less_than_equal": ("must be at most {}", "le"),
    "too_short": ("needs at least {} entry", "min_length"),
    "too_long": ("must have at most {} entries", "max_length"),
    "string_too_short": ("must have at least {} characters", "min_length"),
    "string_too_long": ("must have at most {} characters", "max_length"),
    "string_pattern_mismatch": ("must match {}", "pattern"),
}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant: the same but for case and separators, else the closest one, else None."""
    plain = {_plain(candidate): candidate for candidate in known}
    close = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=0.6)
    return plain[close[0]] if close else None


def _plain(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def show(value: Value) -> str:
    """A value as it may stand in a sentence: short, and told apart from other types."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    return f"{value:g}" if isinstance(value, float) else str(value)


def unknown_key(model: type[BaseModel], path: KeyPath) -> Told:
    """What to say about a key that the model does not have at this path."""
    key = str(path[-1])
    here = tuple(keys_at(model, path[:-1]))
    close = nearest(key, here)
    if close is not None:
        return "unknown key", f"did you mean {close}?"
    elsewhere = [place for name, place in _places(model, ()) if _plain(name) == _plain(key)]
    if len(elsewhere) == 1:
        return "unknown key", f"it belongs at {elsewhere[0]}"
    return "unknown key", f"known keys here are {', '.join(here)}" if here else "delete it"


def keys_at(model: type[BaseModel], path: KeyPath) -> Iterator[str]:
    """The keys that a mapping at this path may have, as they are written in the file."""
    kind: object = model
    for step in path:
        kind = _child(kind, step)
    found = _model(kind)
    if found is not None:
        for name, field in found.model_fields.items():
            yield field.alias or name


def _child(kind: object, step: str | int) -> object:
    model = _model(kind)
    if model is not None:
        return next((field.annotation for name, field in model.model_fields.items() if (field.alias or name) == step), None)
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return get_args(kind)[0] if get_origin(kind) in (tuple, list) else None


def _model(kind: object) -> type[BaseModel] | None:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    if get_origin(kind) in (Union, types.UnionType):
        return next((model for part in get_args(kind) if (model := _model(part)) is not None), None)
    return None


def _places(kind: object, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every (key, dotted place) of the tree of models."""
    model = _model(kind)
    if model is not None:
        for name, field in model.model_fields.items():
            key = field.alias or name
            yield key, ".".join((*path, key))
            yield from _places(field.annotation, (*path, key))
    elif get_origin(kind) is dict:
        yield from _places(get_args(kind)[1], (*path, "<name>"))
    elif get_origin(kind) in (tuple, list):
        yield from _places(get_args(kind)[0], (*path[:-1], f"{path[-1]}[]"))


def sentence_of(detail: ErrorDetails, *, value: Value, model: type[BaseModel], path: KeyPath) -> Told:
    """(message, remedy) of one error of pydantic."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_key(model, path)
    if kind == "missing":
        return "the key is missing", "add it"
    if kind == "value_error":
        message, _, remedy = str(context["error"]).partition("; ")
        return message, remedy
    if kind == "json_invalid":
        return "there is a character in it that is not valid Unicode", "delete it"
    if kind in ("literal_error", "enum"):
        expected = str(context["expected"]).replace("'", "").replace("True", "true").replace("False", "false").replace(" or ", ", ")
        choices = expected.split(", ")
        close = nearest(value, choices) if isinstance(value, str) else None
        if len(choices) == 1:
            return f"can only be {choices[0]}, not {show(value)}", "write that, or leave the key out"
        return f"must be one of {', '.join(choices)}, not {show(value)}", f"did you mean {close}?" if close else "choose one of them"
    if kind in _EXPECTED:
        if value is None:
            return f"is empty, it must be {_EXPECTED[kind]}", "give it a value or delete the key"
        return f"must be {_EXPECTED[kind]}, not {show(value)}", _how_to_write(_EXPECTED[kind], value)
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        limit = context[bound]
        message = words.format(f"{limit:g}" if isinstance(limit, float) else limit)
        return (message if isinstance(value, dict | list) else f"{message}, not {show(value)}"), "correct it"
    return detail["msg"][:1].lower() + detail["msg"][1:], ""


def _how_to_write(expected: str, value: Value) -> str:
    if expected == "text" and isinstance(value, bool | int | float):
        return "put it in quotes"
    if expected in ("a number", "a whole number") and isinstance(value, str) and value.strip("+-.0123456789") == "":
        return "take the quotes away"
    if expected == "a list" and isinstance(value, str | int | float):
        return f"write [{value}]"
    return f"write {expected}"


Explain: TypeAlias = Callable[[ErrorDetails, KeyPath, Document], Told | None]
"""A loader's own words for an error; None leaves it to the common ones."""


def mistakes_of(failure: ValidationError, document: Document, model: type[BaseModel], *, explain: Explain | None = None) -> list[Mistake]:
    """One mistake for each path that pydantic complains about; a union complains once for each of its types."""
    found: dict[KeyPath, Mistake] = {}
    for detail in failure.errors(include_url=False):
        path: KeyPath = detail["loc"]
        if detail["type"] != "missing":
            while path and path not in document.lines:
                path = path[:-1]
        if detail["type"] == "too_short" and document.value_of(path):
            continue  # entries that are wrong are not counted as entries; they have sentences of their own
        error = detail.get("ctx", {}).get("error")
        at = (*path, *error.at) if isinstance(error, MisplacedValue) else path
        if at in found:
            continue
        told = explain(detail, path, document) if explain is not None else None
        if told is None:
            told = sentence_of(detail, value=document.value_of(path), model=model, path=path)
        found[at] = Mistake(at, document.line_of(at), *told)
    return list(found.values())


def failure_of(mistakes: Iterable[Mistake], *, origin: str, error: type[ConfigurationError]) -> ConfigurationError:
    """The one error for all mistakes of a file: it tells the first one and how many more there are."""
    ordered = sorted(mistakes, key=lambda mistake: (mistake.line or 0, dotted(mistake.path)))
    first = ordered[0]
    more = len(ordered) - 1
    count = f" (and {more} more mistake{'s' if more > 1 else ''})" if more else ""
    return error(
        f"{_sentence(first, origin)}{count}",
        remedy=first.remedy,
        mistakes=tuple(f"{_sentence(m, origin)}{': ' if m.remedy else ''}{m.remedy}" for m in ordered),
    )


def _sentence(mistake: Mistake, origin: str) -> str:
    where = origin if mistake.line is None else f"{origin}, line {mistake.line}"
    return f"{where}, {dotted(mistake.path)}: {mistake.message}" if mistake.path else f"{where}: {mistake.message}"
