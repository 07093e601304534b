"""A price list: what an hour of a resource costs, so that accounts can be money."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from rebalancer.errors import PolicyError
from rebalancer.policy.document import parse_document, read_text
from rebalancer.policy.loader import check_header, validated
from rebalancer.policy.quantities import Strict
from rebalancer.policy.tenants import ResourceName, TenantMetadata

GIB = 2.0**30
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PriceSpec(Strict):
    """Prices of an hour of what was requested, whether it was used or not."""

    currency: str = Field(default="", max_length=16)
    """What the prices are in."""
    per_hour: dict[ResourceName, Price] = Field(default_factory=dict)
    """Of a core, of a GiB of memory, of a device (``gpu``, or ``gpu/MODEL``, which counts instead of ``gpu`` where it is given)."""


class Prices(Strict):
    """A price list."""

    api_version: Literal["rebalancer.dev/v1alpha1"] = "rebalancer.dev/v1alpha1"
    """The version of the format; a file must give it."""
    kind: Literal["Prices"] = "Prices"
    """A file must give it."""
    metadata: TenantMetadata = TenantMetadata()
    """What the list is called."""
    spec: PriceSpec = PriceSpec()
    """The prices; a file must give it."""

    def of(self, resource: str) -> float | None:
        """The price of an hour of one base unit; None for what has none."""
        price = self.spec.per_hour.get(resource)
        return price / GIB if price is not None and resource in ("memory", "ephemeral-storage") else price


def load_prices(path: Path) -> Prices:
    """Raises PolicyError, whose ``mistakes`` hold every mistake that was found."""
    document = parse_document(read_text(path, what="price", error=PolicyError), origin=str(path), what="price", error=PolicyError)
    check_header(document, kind="Prices", error=PolicyError)
    return validated(document, Prices, error=PolicyError)
