"""Between the state's dataclasses and JSON, by their own type annotations: a column that is added to a table is in the file by that alone.

JSON has no NaN and no infinity, and both carry meaning here: NaN is written as ``null``, infinity as ``"inf"``. An array is its shape and
its flat values. A mapping with other keys than text is a list of pairs. Reading checks every type; `Malformed` says where it went wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

_NUMBERS = {"inf": math.inf, "-inf": -math.inf}


class Malformed(ValueError):
    """A value that is not what its place asks for. ``path`` grows outwards: ``pods.usage``."""

    def __init__(self, expected: str, found: object, path: str = "") -> None:
        super().__init__(f"{path or 'the state'} is not {expected}: {type(found).__name__}")
        self.expected, self.found, self.path = expected, found, path

    def inside(self, name: str) -> Malformed:
        return Malformed(self.expected, self.found, f"{name}.{self.path}" if self.path else name)


@dataclass(frozen=True, slots=True)
class Codec:
    """``encode`` makes what the JSON encoder takes, ``decode`` checks what the JSON decoder gave. Any: the boundary to untyped data."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


@cache
def codec(hint: Any) -> Codec:
    """The codec of a type annotation. Raises TypeError for a kind of type that the state does not use."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is float:
        return Codec(_encode_float, _decode_float)
    if hint in (str, int, bool):
        return _plain(hint)
    if origin is np.ndarray:
        return _array(get_args(arguments[1])[0])
    if origin is UnionType:
        return _optional(codec(next(each for each in arguments if each is not NoneType)))
    if origin is tuple:
        return _repeated(codec(arguments[0])) if arguments[-1] is Ellipsis else _fixed(tuple(codec(each) for each in arguments))
    if origin is frozenset:
        return _set(codec(arguments[0]))
    if origin is Mapping:
        return _mapping(codec(arguments[1])) if arguments[0] is str else _pairs(codec(arguments[0]), codec(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint)
    raise TypeError(f"no snapshot codec for {hint!r}")


def _typed(raw: Any, kind: type[Any], expected: str) -> Any:
    if type(raw) is not kind:
        raise Malformed(expected, raw)
    return raw


def _plain(kind: type[Any]) -> Codec:
    return Codec(lambda value: value, lambda raw: _typed(raw, kind, f"of type {kind.__name__}"))


def _encode_float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return str(value) if math.isinf(value) else value


def _decode_float(raw: Any) -> float:
    if raw is None:
        return math.nan
    if type(raw) in (int, float):
        return float(raw)
    if isinstance(raw, str) and raw in _NUMBERS:
        return _NUMBERS[raw]
    raise Malformed("a number", raw)


def _array(scalar: type[np.generic]) -> Codec:
    dtype = np.dtype(scalar)

    def encode(array: Any) -> Any:
        flat = array.ravel().tolist()
        if dtype.kind == "f" and not np.isfinite(array).all():
            flat = [_encode_float(value) for value in flat]
        return {"shape": list(array.shape), "values": flat}

    def decode(raw: Any) -> Any:
        values = _typed(_typed(raw, dict, "an array").get("values"), list, "an array")
        kinds = {"f": (float, int, str, NoneType), "i": (int,), "b": (bool,)}[dtype.kind]
        if not {type(value) for value in values}.issubset(kinds):
            raise Malformed(f"an array of {dtype.name}", values)
        try:
            flat = np.array([_decode_float(value) for value in values] if dtype.kind == "f" else values, dtype=dtype)
            return flat.reshape(tuple(_typed(raw.get("shape"), list, "an array")))
        except (ValueError, TypeError, OverflowError):
            raise Malformed("an array of its shape", values) from None

    return Codec(encode, decode)


def _optional(inner: Codec) -> Codec:
    return Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda raw: None if raw is None else inner.decode(raw),
    )


def _repeated(inner: Codec) -> Codec:
    encode, decode = inner.encode, inner.decode
    return Codec(
        lambda value: [encode(each) for each in value],
        lambda raw: tuple([decode(each) for each in _typed(raw, list, "a list")]),
    )


def _fixed(inner: tuple[Codec, ...]) -> Codec:
    def decode(raw: Any) -> Any:
        if type(raw) is not list or len(raw) != len(inner):
            raise Malformed(f"a list of {len(inner)}", raw)
        return tuple([each.decode(part) for each, part in zip(inner, raw, strict=True)])

    return Codec(lambda value: [each.encode(part) for each, part in zip(inner, value, strict=True)], decode)


def _set(inner: Codec) -> Codec:
    return Codec(
        lambda value: sorted(inner.encode(each) for each in value),
        lambda raw: frozenset(inner.decode(each) for each in _typed(raw, list, "a list")),
    )


def _mapping(inner: Codec) -> Codec:
    encode, decode = inner.encode, inner.decode
    return Codec(
        lambda value: {key: encode(each) for key, each in value.items()},
        lambda raw: {key: decode(each) for key, each in _typed(raw, dict, "a mapping").items()},
    )


def _pairs(key: Codec, inner: Codec) -> Codec:
    pair = _fixed((key, inner))
    return Codec(
        lambda value: [pair.encode(item) for item in value.items()],
        lambda raw: dict(pair.decode(each) for each in _typed(raw, list, "a list of pairs")),
    )


def _enum(kind: type[Enum]) -> Codec:
    members = {member.value: member for member in kind}

    def decode(raw: Any) -> Enum:
        if not isinstance(raw, str | int) or raw not in members:
            raise Malformed(f"a {kind.__name__}", raw)
        return members[raw]

    return Codec(lambda value: value.value, decode)


def _record(kind: type[Any]) -> Codec:
    """A dataclass as an object by the names of its fields; one that has a default may be absent, one that is unknown is skipped."""
    hints = get_type_hints(kind)
    columns: list[tuple[Field[Any], Codec]] = [(each, codec(hints[each.name])) for each in fields(kind) if each.init]

    def decode(raw: Any) -> Any:
        found: dict[str, Any] = {}
        for column, inner in columns:
            if column.name in _typed(raw, dict, "an object"):
                try:
                    found[column.name] = inner.decode(raw[column.name])
                except Malformed as error:
                    raise error.inside(column.name) from None
            elif column.default is MISSING and column.default_factory is MISSING:
                raise Malformed("present", None, column.name)
        return kind(**found)

    return Codec(lambda value: {column.name: inner.encode(getattr(value, column.name)) for column, inner in columns}, decode)
