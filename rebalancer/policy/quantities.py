"""The field types of policy files: durations, percentages, counts or percentages, label selectors."""

from __future__ import annotations

import re
import zoneinfo
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from rebalancer.units import parse_duration


class MisplacedValue(ValueError):
    """A ValueError of a validator that sees more than one field: ``at`` is the path, below the model, of the one to point at."""

    def __init__(self, sentence: str, *, at: tuple[str | int, ...]) -> None:
        super().__init__(sentence)
        self.at = at


class Strict(BaseModel):
    """Base of every policy model: camelCase keys, no unknown key at any level, frozen."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        validate_default=True,
        use_attribute_docstrings=True,
    )


def write_duration(seconds: float) -> str:
    """The duration as a file may hold it, exact to the microsecond: ``parse_duration`` of it gives ``seconds`` back."""
    whole, rest = divmod(round(seconds * 1_000_000), 1_000_000)
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    if rest:
        parts.append(f"{whole}.{rest:06d}".rstrip("0") + "s")
    elif whole or not parts:
        parts.append(f"{whole}s")
    return "".join(parts)


DURATION_PATTERN = r"^(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?$"
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(write_duration, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "minLength": 2, "pattern": DURATION_PATTERN}, {"type": "number", "minimum": 0}],
            "examples": ["90s", "5m", "6h"],
        }
    ),
]
"""Seconds; written as ``90s``, ``5m``, ``1h30m``, or as a plain number of seconds."""


def _named_by(pattern: str, words: str, longest: int) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value) or len(value) > longest:
            raise ValueError(f"{value[:60]!r} is not a name of {words}, at most {longest} characters; rename it")
        return value

    return AfterValidator(check)


_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SIGNAL_NAME = r"[a-z][a-z0-9_]*"
DnsLabel = Annotated[
    str,
    _named_by(_DNS_LABEL, "lower-case letters, digits and inner hyphens", 63),
    Field(json_schema_extra={"pattern": f"^{_DNS_LABEL}$", "maxLength": 63}),
]
SignalName = Annotated[
    str,
    _named_by(_SIGNAL_NAME, "lower-case letters, digits and underscores that starts with a letter", 40),
    Field(json_schema_extra={"pattern": f"^{_SIGNAL_NAME}$", "maxLength": 40}),
]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


def _time_zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{name[:60]!r} is not a time zone; write a name such as Asia/Shanghai or Etc/UTC") from None
    return name


TimeZone = Annotated[str, AfterValidator(_time_zone)]
"""A name of the IANA database."""


def _count_or_percent(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a whole number such as 5 or a percentage such as 10%")
    if isinstance(value, int):
        if value < 0:
            raise ValueError("must not be negative")
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", value.strip())
    if match is None:
        raise ValueError("must be a whole number such as 5 or a percentage such as 10%")
    if float(match.group(1)) > 100:
        raise ValueError("must be at most 100%")
    return value.strip()


CountOrPercent = Annotated[
    int | str,
    BeforeValidator(_count_or_percent),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)?%$"}]}),
]


def _priority(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise ValueError("must be the name of a PriorityClass or a whole number; write it so")
    return value


Priority = Annotated[int | str, BeforeValidator(_priority)]
"""A PriorityClass by name, or a priority value."""


def limit_of(value: int | str, of: int) -> int:
    """A count, or a percentage of ``of`` rounded down but at least 1 when it is above 0 (``10%`` of 3 is 1, ``0%`` is 0)."""
    if isinstance(value, int):
        return value
    share = float(value.rstrip("%")) / 100
    return 0 if share == 0 else max(1, int(share * of + 1e-9))


class LabelExpression(Strict):
    """One requirement of a label selector, as in Kubernetes."""

    key: str = Field(min_length=1)
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is judged."""
    values: tuple[str, ...] = ()
    """For In and NotIn at least one; for the others none."""

    @model_validator(mode="after")
    def _values_fit_the_operator(self) -> LabelExpression:
        if self.operator in ("In", "NotIn") and not self.values:
            raise ValueError(f"operator {self.operator} needs values")
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            raise ValueError(f"operator {self.operator} takes no values")
        return self


class LabelSelector(Strict):
    """A Kubernetes label selector; an empty one selects everything."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    """Labels that must have exactly these values."""
    match_expressions: tuple[LabelExpression, ...] = ()
    """Requirements that must all hold besides."""
