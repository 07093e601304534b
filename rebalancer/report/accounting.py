"""Accounts of a period: hours of each resource that tenants requested, used, wasted and borrowed, and what they cost."""

from __future__ import annotations

import msgspec

from rebalancer.plan.model import API_VERSION


class AccountRow(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Hours of base units: core-hours, byte-hours, device-hours. Null: nothing is recorded."""

    tenant: str
    resource: str
    requested_hours: float | None
    used_hours: float | None
    wasted_hours: float | None
    borrowed_hours: float | None
    guaranteed_hours: float | None
    coverage: float
    """Share of the period in which the tenant's request is recorded; nothing is added for the rest."""
    measured: float | None
    """Share of the requested hours whose use is known: what is used and wasted is of these alone. Null where none is known."""
    cost: float | None = None
    """Of what was requested; null without a price."""


class AccountingReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    api_version: str = API_VERSION
    kind: str = "AccountingReport"
    since: str
    until: str
    step_seconds: float
    currency: str = ""
    rows: tuple[AccountRow, ...]
    notes: tuple[str, ...] = ()
