"""The words and the tree of PromQL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class PromqlError(ValueError):
    """The query cannot be parsed, or uses what this evaluator leaves out. ``execution``: it parses, and cannot be carried out."""

    def __init__(self, message: str, *, execution: bool = False) -> None:
        super().__init__(message)
        self.execution = execution


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """number, string, name, duration, operator, end"""
    text: str
    position: int


_TOKENS = re.compile(
    r"""
    (?P<skip>\s+|\#[^\n]*)
  | (?P<duration>(?:\d+(?:ms|[smhdwy]))+)(?![\w.])
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>[a-zA-Z_][a-zA-Z0-9_:]*)
  | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
  | (?P<operator>=~|!~|!=|==|>=|<=|[-+*/%^=<>(){}\[\],:@])
    """,
    re.VERBOSE,
)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


def tokens_of(text: str) -> list[Token]:
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise PromqlError(f"parse error: unexpected character {text[position]!r} at position {position}")
        if match.lastgroup != "skip":
            found.append(Token(str(match.lastgroup), match.group(), position))
        position = match.end()
    found.append(Token("end", "", position))
    return found


def duration_s(text: str) -> float:
    return sum(float(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)(ms|[smhdwy])", text))


def unquoted(text: str) -> str:
    body = text[1:-1]
    if text[0] == "`":
        return body
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), "\\" + match.group(1)), body)


# ---- the tree -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Matcher:
    """``operator``: ``=``, ``!=``, ``=~``, ``!~``; regular expressions are anchored at both ends."""

    name: str
    operator: str
    value: str

    def admits(self, word: str) -> bool:
        if self.operator == "=":
            return word == self.value
        if self.operator == "!=":
            return word != self.value
        found = re.fullmatch(self.value, word) is not None
        return found if self.operator == "=~" else not found


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Selector:
    """An instant vector selector, or with ``range_s`` a range vector selector."""

    name: str
    matchers: tuple[Matcher, ...]
    range_s: float | None = None
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Subquery:
    inner: Expression
    range_s: float
    step_s: float | None
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    operator: str
    inner: Expression
    parameter: Expression | None
    labels: tuple[str, ...]
    without: bool


@dataclass(frozen=True, slots=True)
class Matching:
    """How the series of two vectors find each other. ``on`` None: all labels; ``group``: left or right for many-to-one."""

    labels: tuple[str, ...] = ()
    on: bool = False
    group: str = ""
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression
    as_bool: bool = False
    matching: Matching = field(default_factory=Matching)


@dataclass(frozen=True, slots=True)
class Negation:
    inner: Expression


Expression = Number | Text | Selector | Subquery | Call | Aggregation | Binary | Negation
