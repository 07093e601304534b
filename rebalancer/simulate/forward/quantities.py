"""The field types of scenario files beyond those of policies: quantities, ranges, shares, spreads."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from rebalancer.policy.quantities import Duration, MisplacedValue, Strict
from rebalancer.units import parse_quantity


def _quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a Kubernetes quantity such as 500m, 2 or 4Gi")
    amount = parse_quantity(value) if isinstance(value, str) else float(value)
    if not 0 <= amount < 1e18:
        raise ValueError(f"{value} is not an amount that a machine may have; write 0 or more")
    return amount


Quantity = Annotated[
    float,
    BeforeValidator(_quantity),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "number", "minimum": 0}], "examples": ["500m", "2", "4Gi"]}),
]
"""Cores, bytes or pieces; written as a Kubernetes quantity or a plain number."""


class Whole(Strict):
    """A whole number, drawn evenly between two, both included."""

    from_: int = Field(alias="from", ge=1, le=100_000)
    """The least."""
    to: int = Field(ge=1, le=100_000)
    """The most."""

    @model_validator(mode="after")
    def _ordered(self) -> Whole:
        if self.from_ > self.to:
            raise MisplacedValue(f"from {self.from_} is more than to {self.to}; exchange the two", at=("from",))
        return self


class Times(Strict):
    """A duration, drawn evenly between two."""

    from_: Duration = Field(alias="from")
    """The shortest."""
    to: Duration
    """The longest."""

    @model_validator(mode="after")
    def _ordered(self) -> Times:
        if self.from_ > self.to:
            raise MisplacedValue("from is longer than to; exchange the two", at=("from",))
        return self


class LogNormal(Strict):
    """A log-normal share: half of the draws are under the median, about two thirds within ``median * e^(-sigma) .. e^sigma``."""

    median: float = Field(gt=0, le=1000, allow_inf_nan=False)
    """As a share of the request, 1 for all of it."""
    sigma: float = Field(default=0.0, ge=0, le=3, allow_inf_nan=False)
    """Standard deviation of the logarithm; 0 makes all alike."""
    alike: float = Field(default=0.0, ge=0, le=1)
    """Share of the variance that the pods of one workload have in common: with 1 siblings use the same, with 0 each what it likes."""
    most: float = Field(default=10.0, gt=0, le=1000, allow_inf_nan=False)
    """No pod uses more than so many times its request."""
