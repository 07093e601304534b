"""Text from a cluster, made safe and short enough for a terminal.

Names, annotations and messages of a cluster are written by whoever may create a pod. On a terminal they must not move the cursor, change
colours, set a title or turn the reading direction; in a spreadsheet they must not become a formula. Shortening happens in the middle, since
Kubernetes names differ at both ends.
"""

from __future__ import annotations

import re
import textwrap

ELLIPSIS = "…"
LIMIT = 600
"""Longest piece of foreign text that a table shows."""

_ESCAPES = re.compile(
    r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]                      # CSI: colours, cursor
    | (?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?  # OSC: titles, links
    | (?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)?  # DCS, SOS, PM, APC
    | \x1b[ -/]*[0-~]                                       # all other two-character sequences
    """,
    re.VERBOSE,
)
_NUMBER_AND_UNIT = re.compile(r"(?<=[0-9?]) (?=(?:%|cores|[KMGT]?i?B)(?![A-Za-z]))")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_SUFFIX = 17
"""Length of ``-7d9c8b6f5-x2x4z``: what tells the pods of one workload apart."""


def clean(text: str, *, limit: int | None = LIMIT) -> str:
    """``text`` without escape sequences, control, formatting and bidirectional characters; line breaks and tabs become spaces."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + ELLIPSIS
    if text.isprintable():
        return text
    text = _ESCAPES.sub("", text)
    return "".join(char if char.isprintable() else " " if char.isspace() else "" for char in text)


def to_ascii(text: str) -> str:
    """For streams that cannot say more: one ASCII character for each other one, so that columns stay aligned."""
    return text.translate({0x2026: "~", 0x2500: "-", 0x2192: ">", 0xA0: " "}).encode("ascii", "replace").decode("ascii")


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width``, broken between words, never between a number and its unit; at least one line."""
    kept = _NUMBER_AND_UNIT.sub("\xa0", text)
    lines = textwrap.wrap(kept, max(width, 20), break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines] or [""]


def counted(number: int, noun: str) -> str:
    """``1 move``, ``1,234 moves``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters, cut in the middle. A namespace keeps a third; a host name keeps its first label where that fits."""
    if len(text) <= width:
        return text
    if width < 4:
        return text[:width]
    namespace, slash, name = text.partition("/")
    if slash and width >= 16:
        share = max(width // 3, width - 1 - len(name))
        head = _cut(namespace, min(len(namespace), share))
        return f"{head}/{_cut(name, width - len(head) - 1)}"
    return _cut(text, width)


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    room = width - len(ELLIPSIS)
    if room < 2:
        return text[:width]
    first_label, dot, _ = text.partition(".")
    keeps_label = bool(dot) and len(first_label) <= room
    tail = room - len(first_label) if keeps_label else max(room // 2, min(_SUFFIX, room - 6))
    return text[: room - tail] + ELLIPSIS + (text[-tail:] if tail else "")


def guard_formula(text: str) -> str:
    """A spreadsheet reads a cell that starts with ``= + - @`` or a tab as a formula; a leading quote makes it text."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
