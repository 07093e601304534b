"""The field types of policy files: durations, percentages, counts or percentages, label selectors."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from rebalancer.units import format_duration, parse_duration


class Strict(BaseModel):
    """Base of every policy model: camelCase keys, no unknown key at any level, frozen."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        validate_default=True,
    )


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?$", "examples": ["90s", "5m", "6h"]}),
]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


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


def limit_of(value: int | str, of: int) -> int:
    """A count, or a percentage of ``of`` rounded down but at least 1 when it is above 0 (``10%`` of 3 is 1, ``0%`` is 0)."""
    if isinstance(value, int):
        return value
    share = float(value.rstrip("%")) / 100
    return 0 if share == 0 else max(1, int(share * of + 1e-9))


class LabelExpression(Strict):
    key: str = Field(min_length=1)
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

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
    match_expressions: tuple[LabelExpression, ...] = ()
