"""Quantities, durations and percentages: read from what people write, written as people read them.

Canonical units everywhere inside: cores, bytes, seconds, ratios. Kubernetes quantities follow the apimachinery grammar:
a decimal number, then a binary suffix (``Ki`` .. ``Ei``), a decimal suffix (``n``, ``u``, ``m``, ``k`` .. ``E``) or an exponent.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache

_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([KMGTPE]i|[numkMGTPE]))?$")
_SUFFIX = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
    "Pi": 2.0**50,
    "Ei": 2.0**60,
}
_DURATION = re.compile(r"^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?$")
_DIVIDED = {"n": 1e9, "u": 1e6, "m": 1e3}


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> float:
    """The value of a Kubernetes quantity in its base unit (``"250m"`` is 0.25, ``"1Gi"`` is 1073741824.0).

    Raises ValueError that names the text when it is not a quantity.
    """
    match = _QUANTITY.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity such as 500m, 2 or 4Gi")
    number, exponent, suffix = match.groups()
    if exponent:
        return float(number + exponent)
    if suffix in _DIVIDED:  # dividing keeps 100m exactly 0.1, multiplying by 1e-3 would not
        return float(number) / _DIVIDED[suffix]
    return float(number) * _SUFFIX[suffix] if suffix else float(number)


def parse_duration(text: str | float) -> float:
    """Seconds of ``90s``, ``5m``, ``1h30m``, ``2d``, or of a plain number of seconds. Raises ValueError."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds = float(text)
    else:
        match = _DURATION.match(str(text).strip())
        if match is None or not any(match.groups()):
            raise ValueError(f"{text!r} is not a duration such as 90s, 5m, 1h30m or 6h")
        days, hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = days * 86400 + hours * 3600 + minutes * 60 + rest
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{text!r} is not a duration: it must be finite and not negative")
    return seconds


@lru_cache(maxsize=4096)
def format_duration(seconds: float) -> str:
    """The shortest exact form: 90 -> ``1m30s``, 3600 -> ``1h``, 0.5 -> ``0.5s``, NaN -> ``unknown``."""
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 60:
        return f"{seconds:g}s" if seconds == round(seconds) else f"{seconds:.1f}s"
    whole = round(seconds)
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


def format_percent(ratio: float | None, *, digits: int = 0) -> str:
    """``0.914`` -> ``91 %``; unknown -> ``?``."""
    if ratio is None or not math.isfinite(ratio):
        return "?"
    return f"{ratio * 100:.{digits}f} %"


def format_bytes(value: float | None) -> str:
    """``2147483648`` -> ``2.0 GiB``; unknown -> ``?``."""
    if value is None or not math.isfinite(value):
        return "?"
    sign, size = ("-", -value) if value < 0 else ("", value)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{sign}{size:.0f} {unit}" if unit == "B" else f"{sign}{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def format_cores(value: float | None) -> str:
    """``2.5`` -> ``2.50``; unknown -> ``?``."""
    return "?" if value is None or not math.isfinite(value) else f"{value:.2f}"


def format_quantity(value: float | None, unit: str) -> str:
    """A value in a signal's unit (``cores``, ``bytes`` or the user's own word), for people."""
    if unit == "cores":
        return f"{format_cores(value)} cores" if value is not None and math.isfinite(value) else "?"
    if unit == "bytes":
        return format_bytes(value)
    return "?" if value is None or not math.isfinite(value) else f"{value:.3g} {unit}".rstrip()


def format_time(unix_s: float) -> str:
    """RFC 3339 in UTC with seconds, as Kubernetes writes it."""
    return datetime.fromtimestamp(unix_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> float:
    """Unix seconds of an RFC 3339 time; raises ValueError."""
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if parsed.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return parsed.timestamp()
