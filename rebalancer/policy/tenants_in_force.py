"""The quotas of all tenants at one moment, as numbers: windows by time of the day applied, shares of the cluster worked out.

Times of a window are those of its zone. A window that ends at or before its beginning ends on the next day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from rebalancer.policy.tenants import DAYS, Amounts, Quotas, QuotaWindow, Tenant, TenantSpec, amount_of

NO_LIMIT = math.inf


@dataclass(frozen=True, slots=True)
class TenantNow:
    """Amounts by resource in base units; NaN: a share of a capacity that is not known. Absent: nothing guaranteed, no limit, no floor."""

    name: str
    parent: int
    """Row among the tenants in force; -1 for the first level."""
    leaf: bool
    weight: float
    priority: int
    borrow: bool
    guaranteed: Mapping[str, float]
    limit: Mapping[str, float]
    floor: Mapping[str, float]


def tenants_in_force(spec: TenantSpec, *, at: float, capacity: Mapping[str, float]) -> tuple[TenantNow, ...]:
    """Each tenant above those below it, in the order of the file. ``at``: unix seconds; ``capacity``: of the cluster, by resource."""
    found: list[TenantNow] = []

    def add(tenant: Tenant, parent: int) -> None:
        row = len(found)
        found.append(_now(tenant, parent, at=at, capacity=capacity))
        for below in tenant.tenants:
            add(below, row)

    for top in spec.tenants:
        add(top, -1)
    return tuple(found)


def _now(tenant: Tenant, parent: int, *, at: float, capacity: Mapping[str, float]) -> TenantNow:
    said: list[Quotas] = [tenant, *(window for window in tenant.windows if holds(window, at=at))]

    def last(key: str) -> Mapping[str, float]:
        amounts: Amounts = {}
        for quotas in said:
            amounts |= getattr(quotas, key) or {}
        return {name: amount_of(value, capacity.get(name, math.nan)) for name, value in amounts.items()}

    guaranteed = last("guaranteed")
    weight = next((quotas.weight for quotas in reversed(said) if quotas.weight is not None), 1.0)
    return TenantNow(
        name=tenant.name,
        parent=parent,
        leaf=not tenant.tenants,
        weight=weight,
        priority=tenant.priority,
        borrow=tenant.borrow,
        guaranteed=guaranteed,
        limit=last("limit"),
        floor=last("floor") if tenant.lend else dict(guaranteed),
    )


def moments(spec: TenantSpec, *, at: float) -> tuple[float, ...]:
    """``at``, and each beginning and end of a window within the week after it: whatever quotas hold together do so at one of these."""
    found = {at}
    for start, zone in {each for tenant in spec.all() for each in _turns(tenant)}:
        today = datetime.fromtimestamp(at, tz=UTC).astimezone(ZoneInfo(zone)).date()
        found |= {datetime.combine(today + timedelta(days=day), _time(start), tzinfo=ZoneInfo(zone)).timestamp() for day in range(8)}
    return tuple(sorted(found))


def _turns(tenant: Tenant) -> list[tuple[str, str]]:
    """Times of the day with their zones at which its windows begin or end."""
    return [(clock, window.time_zone) for window in tenant.windows for clock in (window.start, window.end)]


def holds(window: QuotaWindow, *, at: float) -> bool:
    """Whether the moment is within the window."""
    now = datetime.fromtimestamp(at, tz=UTC).astimezone(ZoneInfo(window.time_zone))
    for back in (0, 1):  # a window of yesterday may last into today
        day = (now - timedelta(days=back)).date()
        if DAYS[day.weekday()] not in window.days:
            continue
        start = datetime.combine(day, _time(window.start), tzinfo=now.tzinfo)
        end = datetime.combine(day + timedelta(days=window.end <= window.start), _time(window.end), tzinfo=now.tzinfo)
        if start <= now < end:
            return True
    return False


def _time(text: str) -> time:
    hours, minutes = text.split(":")
    return time(int(hours), int(minutes))
