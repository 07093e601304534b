"""A text that does not say what it should, and the few ways to read one that never guess."""

from __future__ import annotations

import math
import re

from rebalancer.units import parse_quantity

_WHOLE = re.compile(r"[0-9]{1,18}")
_SHOWN = 40


class Unreadable(ValueError):
    """Raised by the adapters; its text is a clause that names the key and what it holds."""


class Disagreement(Unreadable):
    """Each of two texts can be read, and they do not go together."""


def shown(text: str) -> str:
    """A foreign text, short enough for a sentence and without line breaks."""
    plain = repr(text)
    return plain if len(plain) <= _SHOWN else f"{plain[: _SHOWN - 1]}…"


def quantity(name: str, text: str) -> float:
    """A Kubernetes quantity that is finite and not negative. Raises Unreadable that names ``name``."""
    try:
        value = parse_quantity(text)
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise Unreadable(f"{name} is {shown(text)}, which is no quantity")
    return value


def whole(name: str, text: str) -> int:
    """A quantity that is a whole number. Raises Unreadable."""
    value = quantity(name, text)
    if value != math.floor(value) or value > 1e18:
        raise Unreadable(f"{name} is {shown(text)}, not a whole number")
    return int(value)


def digits(name: str, text: str) -> int:
    """Decimal digits and nothing else. Raises Unreadable."""
    if _WHOLE.fullmatch(text.strip()) is None or not text.isascii():
        raise Unreadable(f"{name} is {shown(text)}, not a whole number")
    return int(text)


def decimal(name: str, text: str) -> float:
    """A plain finite number. Raises Unreadable."""
    try:
        value = float(text) if len(text) <= _SHOWN and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Unreadable(f"{name} is {shown(text)}, not a number")
    return value
